"""Where in a completion the answer stands. Extraction decides nothing about right or wrong."""

import re

END_OF_TURN = re.compile(r"<\|(?:eot_id|endoftext|im_end|end_of_text)\|>")
BOX_TOKEN = re.compile(r"(?P<box>\\(?:boxed|fbox)\s*\{)|\\.|(?P<brace>[{}])", re.DOTALL)
PLACEHOLDERS = frozenset({"", "...", "\N{HORIZONTAL ELLIPSIS}", r"\ldots", r"\dots", r"\cdots"})
DECLARED = re.compile(
    r"(?:####|\bfinal answer(?:\s+is)?\b\s*:?|\banswer is\b\s*:?)[ \t]*(\S[^\n]*)", re.IGNORECASE
)


def last_tag(text: str, tag: str) -> str | None:
    """What stands inside the last complete <tag>...</tag>, or None."""
    blocks = re.findall(rf"<{tag}>((?:(?!</?{tag}>).)*)</{tag}>", text, re.DOTALL)
    return blocks[-1] if blocks else None


def last_boxed(text: str) -> str | None:
    r"""What stands inside the last \boxed{...} or \fbox{...} whose braces balance, or None.

    A box that is empty or holds only an ellipsis is a copy of the instruction and does not count.
    """
    opened: list[int] = []  # where each open brace's content starts; -1 for a brace that is no box
    last, answer = -1, None
    for token in BOX_TOKEN.finditer(text):
        if token["box"]:
            opened.append(token.end())
        elif token["brace"] == "{":
            opened.append(-1)
        elif token["brace"] == "}" and opened:
            start = opened.pop()
            content = text[start : token.start()].strip() if start > last else ""
            if content not in PLACEHOLDERS:
                last, answer = start, content
    return answer


def first_turn(text: str) -> str:
    """The text up to the first end-of-turn token; what follows was never shown to anyone."""
    return END_OF_TURN.split(text, maxsplit=1)[0]


def final_answer(text: str) -> str | None:
    """The answer that a completion commits itself to, or None.

    It is the last complete <answer> block, of which the last box if it has one; without a block the
    last box of the text; without a box the last line that declares an answer ("#### 7", "the answer
    is 7"). A number that is merely mentioned is no answer.
    """
    text = first_turn(text)
    block = last_tag(text, "answer")
    if block is not None:
        return last_boxed(block) or block.strip()
    box = last_boxed(text)
    if box is not None:
        return box
    declared = DECLARED.findall(text)
    return declared[-1].strip().strip("*").strip() if declared else None
