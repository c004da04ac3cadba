r"""\boxed{...} and \fbox{...}, by counting braces.

A box that holds only a placeholder is a copy of the instruction and does not count. A box whose
braces balance only because it swallowed other markup ("\boxed{36\n</answer}") is not intact.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rewards.placeholders import is_placeholder

# the backslashes before it too: an even number of them is no box
BOX_START = re.compile(r"(?<!\\)\\++(?:boxed|fbox)")
BOX_TOKEN = re.compile(r"(?P<box>\\(?:boxed|fbox)\s*+\{)|\\.|(?P<brace>[{}])", re.DOTALL)
SWALLOWED = re.compile(r"</|<\s*+answer\b|\n[ \t]*+\n", re.IGNORECASE)
# what may stand between two boxes that are one list: "and", "or" or a comma, and no other words
JOINED = re.compile(
    r"""[\s$\\)\]]{0,20}
    (?: \\text\s{0,3}\{\s{0,3}(?:and|or)\s{0,3}\} | [,;]?\s{0,5}(?:and|or)\b
      | [,;]?\s{0,5}\\(?:lor|land)\b | [,;&] )
    (?:[\s$~]|\\[(\[,;:\x20]|\\q?quad)*+ (?:[A-Za-z]\s{0,3}=\s{0,3})? [\s$]{0,5}""",
    re.VERBOSE,
)
LONGEST_JOINT = 60  # characters


@dataclass(frozen=True)
class Box:
    """A complete box. start, end: its span from the backslash to the closing brace."""

    content: str
    start: int
    end: int


@functools.lru_cache(maxsize=4)  # one text is asked about several times
def complete_boxes(text: str) -> tuple[Box, ...]:
    """Every intact box, those with placeholders too, in order; of nested ones only the innermost
    that comes last."""
    first = BOX_START.search(text)
    if first is None:
        return ()
    opened: list[tuple[int, int]] = []  # (token, content) of an open brace; -1 for one without box
    boxes: list[Box] = []
    last = -1
    for token in BOX_TOKEN.finditer(text, first.start()):
        if token["box"]:
            opened.append((token.start(), token.end()))
        elif token["brace"] == "{":
            opened.append((-1, -1))
        elif token["brace"] == "}" and opened:
            start, content = opened.pop()
            if content <= last:
                continue
            last = content
            inside = text[content : token.start()].strip()
            if not SWALLOWED.search(inside):
                boxes.append(Box(inside, start, token.end()))
    return tuple(boxes)


@functools.lru_cache(maxsize=4)
def all_boxes(text: str) -> tuple[Box, ...]:
    """Every intact box that holds something."""
    return tuple(box for box in complete_boxes(text) if not is_placeholder(box.content))


def last_boxed(text: str) -> str | None:
    r"""What stands inside the last \boxed{...} or \fbox{...} whose braces balance, or None."""
    boxes = all_boxes(text)
    return boxes[-1].content if boxes else None


def boxed_answer(text: str, boxes: Sequence[Box]) -> str:
    r"""The last of the boxes, with those before it that one sentence joins to it.

    "\boxed{3} and \boxed{4}" is the list "3, 4"; "\boxed{3}. No, \boxed{4}" is 4.
    """
    first = len(boxes) - 1
    while first > 0:
        joint = text[boxes[first - 1].end : boxes[first].start]
        if len(joint) > LONGEST_JOINT or not JOINED.fullmatch(joint):
            break
        first -= 1
    return ", ".join(box.content for box in boxes[first:])
