"""A tag such as <answer>...</answer>, in any case, with attributes or spaces around its name."""

import re
from dataclasses import dataclass
from functools import lru_cache

PREFILLED = 40  # characters of an answer whose opening tag stands in the prompt
PREFILLED_GRID = 400


@dataclass(frozen=True)
class Blocks:
    """The blocks of one tag.

    complete: what stands inside the complete ones, in order; a tag that opens again begins anew.
    end: where the last complete one ends. open_at: where the content of an opening tag that is
    never closed begins, if there is no complete block after it.
    """

    complete: list[str]
    end: int
    open_at: int | None


@lru_cache(maxsize=64)
def _pattern(tag: str) -> re.Pattern[str]:
    name = re.escape(tag)
    return re.compile(
        rf"(?<!/)<\s*+(?P<closing>/?)\s*+{name}(?:\s[^<>]{{0,200}})?>", re.IGNORECASE | re.ASCII
    )


def tag_blocks(text: str, tag: str) -> Blocks:
    complete: list[str] = []
    end, open_at = 0, None
    for mark in _pattern(tag).finditer(text):
        if not mark["closing"]:
            open_at = mark.end()
        elif open_at is not None:
            complete.append(text[open_at : mark.start()])
            end, open_at = mark.end(), None
    return Blocks(complete, end, open_at)


def last_tag(text: str, tag: str) -> str | None:
    """What stands inside the last complete <tag>...</tag>, or None."""
    complete = tag_blocks(text, tag).complete
    return complete[-1] if complete else None


def prefilled_answer(text: str, tag: str) -> str | None:
    """The answer in a completion that begins inside the tag, since the prompt ends with it.

    The text alone shows that only if it has no opening tag and the closing one comes at once: after
    a single line of a few words, or a block without letters (a grid). After more than that the
    opening tag may as well have been forgotten, and the text before the closing tag be reasoning.
    """
    mark = _pattern(tag).search(text)
    if mark is None or not mark["closing"]:
        return None
    before = text[: mark.start()].strip()
    line = len(before) <= PREFILLED and "\n" not in before
    grid = len(before) <= PREFILLED_GRID and not re.search(r"[A-Za-z=]", before)
    return before if before and (line or grid) and not re.search(r"[<>]", before) else None
