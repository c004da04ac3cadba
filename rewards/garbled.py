r"""Answers whose markup came out broken, as parallel decoding breaks it.

    \boxed{36>   \boxed{30\n</answer>   boxed{5}   \.boxed{18}   \boxed{}101   \boxed(5)
    <answer>145</answer}   <answer\n76</answer>   </reasoning>\n<>\n18\n</>

Each was seen in real outputs. A text that may simply have been cut off is not repaired: "\boxed{36"
at the very end may have become 360.
"""

import re

from rewards.boxes import complete_boxes
from rewards.placeholders import is_placeholder

WINDOW = 400  # characters of an answer that may be repaired
BOX_START = re.compile(r"(?:boxed|fbox)\s*+\{|\\(?:boxed|fbox)\s*+(?:[(\[]|(?=[-\d]))")
BOX_STOP = re.compile(
    r"\\[{}$]|(?P<brace>[{}])"
    r"|(?P<stop>\n|<(?=/|\||>|\s*+answer|\Z)|>(?=\s*+(?:\Z|\n|<))|\\[\])]|\$|(?<!\\)[)\]](?=\s*+\Z))"
)
TAGGED = re.compile(
    r"""(?: <\s{0,3}(?P<tag>answer)\b[^<>\n]{0,20}>? | (?<![\w<>/])answer> | <>
      | </(?:reasoning|think)> )
    \s*+ (?P<said>[^\s<>][^<>\n]{0,200}+) \s*+ (?P<close></?|\Z)""",
    re.IGNORECASE | re.VERBOSE,
)


def last_box_intact(text: str) -> bool:
    """Whether the last thing that looks like a box is a box, or there is none."""
    start = _last_start(text)
    return start is None or any(b.start < start <= b.end for b in complete_boxes(text))


def broken_box(text: str, ended: bool) -> str | None:
    """What the last box was meant to hold, up to where it closes or to what stands for its brace;
    None if the text may be cut off inside it. ended: the text was not cut off."""
    start = _last_start(text)
    assert start is not None
    rest = text[start : start + WINDOW].lstrip()
    depth = 0
    for token in BOX_STOP.finditer(rest):
        if token["stop"] or (token["brace"] == "}" and depth == 0):
            return rest[: token.start()].strip() + "}" * depth
        depth += {"{": 1, "}": -1}.get(token["brace"] or "", 0)
    if len(text) > start + WINDOW or not ended:
        return None
    return rest.strip() + "}" * depth


def _last_start(text: str) -> int | None:
    """Where the content of the last box begins, intact or not."""
    start = None
    for match in BOX_START.finditer(text):
        start = match.end()
    return start


def beside_empty_box(block: str) -> str | None:
    r"""The text of a block whose box was left empty: `\boxed{}101`; None without such a box."""
    boxes = complete_boxes(block)
    if not boxes or not all(is_placeholder(box.content) for box in boxes):
        return None
    rest = block[: boxes[0].start] + block[boxes[-1].end :]
    return None if is_placeholder(rest) or "\n" in rest.strip() else rest.strip()


def broken_tag(text: str, ended: bool) -> str | None:
    """What stands after an answer tag that is broken, or in one whose closing tag is."""
    found = None
    for match in TAGGED.finditer(text):
        if match["close"] or (ended and match["tag"]):
            found = match["said"].strip()
    return found
