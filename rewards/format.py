"""Rewards for the shape of a completion: <reasoning>...</reasoning><answer>...</answer>.

`prefilled`: the chat template ends the prompt with the first opening tag, so that the completion
begins inside the first block. tag_format is for tags of any name, boxed_format for a box.

The other four are those of d1 (arXiv:2504.12216), in our own words and mended. Where they differ
from d1's code:

- soft and strict: `.` matches a newline, without which d1's two could not both be had and neither
  was ever earned on real output; each tag must occur once, and neither block may be blank.
- strict: the newline after </answer> is not demanded; an end-of-text token often stands there.
- soft, strict and int_answer are 1 or 0; d1's are 0.5 or 0 (give them `weight: 0.5`).
- xml_count: only what follows </answer> is charged. d1 charges the whole text when the newline
  after </answer> is missing. The sum is never below 0; d1's has no lower bound.
- int_answer: a sign and thousands commas are allowed, and only ASCII digits are digits.
"""

import re
from collections.abc import Sequence

from rewards.boxes import all_boxes
from rewards.extraction import first_turn, last_tag

TAGS = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")
# as d1 counts them: each with the newlines that its prompt shows
TAGS_ON_LINES = ("<reasoning>\n", "\n</reasoning>\n", "\n<answer>\n", "\n</answer>")
PER_TAG = 0.125
PER_TRAILING_CHARACTER = 0.002  # d1 charges 0.001 in each of the two terms of the answer tags
SOFT = re.compile(
    r"\s*<reasoning>(?=\s*[^\s<]).*</reasoning>\s*<answer>(?=\s*[^\s<]).*</answer>", re.DOTALL
)
STRICT = re.compile(
    r"\s*<reasoning>\n(?=\s*[^\s<]).*\n</reasoning>\n<answer>\n(?=\s*[^\s<]).*\n</answer>\s*",
    re.DOTALL,
)
INTEGER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)", re.ASCII)


def tag_format(
    completion: str,
    *,
    tags: Sequence[str] = ("reasoning", "answer"),
    prefilled: bool | None = None,
) -> float:
    """1.0 if the text is one block for each of the `tags`, in that order, none of them blank, and
    nothing else. prefilled: the first opening tag must be missing; None: it may be."""
    if (
        not tags
        or len(set(tags)) < len(tags)
        or not all(re.fullmatch(r"[\w:.-]+", t) for t in tags)
    ):
        raise ValueError(f"tags must be different names, at least one; got {list(tags)!r}")
    text = first_turn(completion).strip()
    first = f"<{tags[0]}>"
    if prefilled or (prefilled is None and first not in text):
        text = first + text
    if not _each_once(text, [mark for tag in tags for mark in (f"<{tag}>", f"</{tag}>")]):
        return 0.0
    for tag in tags:
        inside, _, rest = text.removeprefix(f"<{tag}>").partition(f"</{tag}>")
        if not text.startswith(f"<{tag}>") or not inside.strip():
            return 0.0
        text = rest.lstrip()
    return float(text == "")


def boxed_format(completion: str) -> float:
    r"""1.0 if the answer stands in an intact \boxed{...} or \fbox{...} that is neither empty nor a
    copy of the instruction: in the last <answer> block if there is one, else anywhere."""
    text = first_turn(completion)
    block = last_tag(text, "answer")
    return float(bool(all_boxes(text if block is None else block)))


def soft_format(completion: str, *, prefilled: bool = False) -> float:
    """1.0 if the text starts with the two blocks, in order, with any space around the tags."""
    text = _whole(completion, prefilled)
    return float(_each_once(text) and SOFT.match(text) is not None)


def strict_format(completion: str, *, prefilled: bool = False) -> float:
    """1.0 if the text is the two blocks and nothing else, each tag on a line of its own."""
    text = _whole(completion, prefilled)
    return float(_each_once(text) and STRICT.fullmatch(text) is not None)


def xml_count(completion: str, *, prefilled: bool = False) -> float:
    """0.125 for each of the four tags that occurs just once on its line, less 0.002 for each
    character after </answer>; between 0.0 and 0.5."""
    text = _whole(completion, prefilled)
    score = PER_TAG * sum(text.count(tag) == 1 for tag in TAGS_ON_LINES)
    trailing = text.rpartition("\n</answer>")[2] if "\n</answer>" in text else ""
    return max(0.0, score - PER_TRAILING_CHARACTER * len(trailing.strip()))


def int_answer(completion: str) -> float:
    """1.0 if the <answer> block (without one, the whole text) is an integer, right or wrong."""
    text = first_turn(completion)
    block = last_tag(text, "answer")
    return float(INTEGER.fullmatch((text if block is None else block).strip()) is not None)


def _whole(completion: str, prefilled: bool) -> str:
    """The first turn, with the opening tag and its newline where the prompt ends with them."""
    text = first_turn(completion)
    return f"{TAGS_ON_LINES[0]}{text.removeprefix(chr(10))}" if prefilled else text


def _each_once(text: str, marks: Sequence[str] = TAGS) -> bool:
    return all(text.count(mark) == 1 for mark in marks)
