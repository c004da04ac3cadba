r"""Where in a completion the answer stands. Extraction decides nothing about right or wrong.

    extract(completion, style="auto", mode="strict") -> Extraction(text, status, boxes)

styles
    auto           the last complete <answer> block (of it the last box, or what it declares);
                   without a block the last box; without a box the last line that declares an answer
    tag, tag:NAME  the last complete <answer> (<NAME>) block, of it the last box if it has one
    box            the last \boxed{...} or \fbox{...}
    hash           the last line "#### answer"
    last_number    the last number of the text, wherever it stands: for parity with other graders
    json:FIELD     the field of the last JSON object that has it
    regex:PATTERN  the last match: its group `answer`, or its first group, or all of it, in the last
                   20,000 characters; in a worker process, where it has a second

modes
    strict         an intact declared answer is required (training)
    lenient        an answer whose markup is garbled is read as well (evaluation); its status stays
                   "garbled". In neither mode is a number that is merely mentioned an answer.

statuses
    ok             an intact answer
    truncated      the text ends inside the answer
    garbled        there is an answer, and its markup is broken
    template_echo  only a copy of the instruction: \boxed{...}, <answer>answer here</answer>
    no_answer      nothing is declared

The opening <answer> may stand in the prompt, so that the completion holds the closing tag only.
The text cannot say so for certain: it is read if nothing but one short line (or a block without
letters, such as a grid) stands before the closing tag, and no box after it.

Pure, total, and but for a regex linear in the length of the text.
"""

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from rewards.answer_patterns import PATTERN_STYLES, broken_json_field, by_pattern
from rewards.boxes import all_boxes, boxed_answer, complete_boxes, last_boxed
from rewards.garbled import beside_empty_box, broken_box, broken_tag, last_box_intact
from rewards.placeholders import is_placeholder
from rewards.said import said_answer
from rewards.tags import last_tag, prefilled_answer, tag_blocks
from rewards.turn import UNFILLED, first_turn, turn

__all__ = [
    "Extraction",
    "Mode",
    "Status",
    "check_mode",
    "check_style",
    "extract",
    "extraction_of",
    "final_answer",
    "first_turn",
    "last_boxed",
    "last_tag",
    "reads_answer",
]

Status = Literal["ok", "no_answer", "template_echo", "garbled", "truncated"]
Mode = Literal["strict", "lenient"]
Found = tuple[str | None, Status]
G = TypeVar("G", bound=Callable[..., Any])

LONGEST_ANSWER = 20_000  # characters; a longer block is not an answer
STYLES = ("auto", "tag", "box", "hash", "last_number")
WITH_ARGUMENT = ("tag", "json", "regex")


@dataclass(frozen=True)
class Extraction:
    """text: the declared answer, None where there is none to grade.
    boxes: complete boxes of the first turn that hold something."""

    text: str | None
    status: Status
    boxes: int = 0


def extract(completion: str, *, style: str = "auto", mode: Mode = "strict") -> Extraction:
    """The answer that a completion commits itself to, by the rules above.

    Raises ValueError for an unknown style or mode, never for a text.
    """
    check_style(style)
    check_mode(mode)
    text, ended = turn(completion)
    name, _, argument = style.partition(":")
    if name in PATTERN_STYLES:
        found, status = _by_pattern(text, name, argument)
    else:
        found, status = _by_markup(text, ended, name, argument or "answer")
    if found is not None and is_placeholder(found):
        found, status = None, "template_echo"
    elif found is not None and (UNFILLED in found or len(found) > LONGEST_ANSWER):
        found, status = None, "garbled"
    if mode == "strict" and status != "ok":
        found = None
    return Extraction(found, status, len(all_boxes(text)))


def _by_pattern(text: str, style: str, argument: str) -> Found:
    found = by_pattern(text, style, argument)
    if found is not None:
        return found, "ok"
    broken = broken_json_field(text, argument) if style == "json" else None
    return broken, "no_answer" if broken is None else "garbled"


def _by_markup(text: str, ended: bool, style: str, tag: str) -> Found:
    """Styles auto, tag and box."""
    if style == "box":
        return _in_boxes(text, ended) or (None, _without_answer(text))
    blocks = tag_blocks(text, tag)
    block = next((b for b in reversed(blocks.complete) if not _is_echo(b)), None)
    if block is not None:
        return _in_block(block)
    if blocks.open_at is not None:
        return _in_open_block(text, text[blocks.open_at :], ended)
    if style == "auto":
        boxed = _in_boxes(text[blocks.end :], ended)
        if boxed is not None:
            return boxed
    if blocks.complete:
        return None, "template_echo"
    said = said_answer(text) if style == "auto" else None
    whole = said if said is not None else prefilled_answer(text, tag)
    if whole is not None:
        return whole, "ok"
    broken = broken_tag(text, ended)
    return broken, _without_answer(text) if broken is None else "garbled"


def _in_block(block: str) -> Found:
    """The answer of a complete block: its last box, what it declares, or all of it."""
    boxed = _in_boxes(block, ended=True)
    if boxed is not None:
        return boxed
    beside = beside_empty_box(block)
    if beside is not None:
        return beside, "garbled"
    said = said_answer(block)
    return said if said is not None else block.strip(), "ok"


def _in_open_block(text: str, inside: str, ended: bool) -> Found:
    """The answer of a block that does not close; of the text `inside` only."""
    boxed = _in_boxes(inside, ended)
    if boxed is not None:
        return boxed
    broken = broken_tag(text, ended)
    if broken is not None and not _is_echo(broken):
        return broken, "garbled"
    if broken is not None or complete_boxes(inside):
        return None, "template_echo"
    if not ended:
        return None, "truncated"
    return None, "garbled" if inside.strip() else "no_answer"


def _in_boxes(text: str, ended: bool) -> Found | None:
    """The last box, intact or not; None where there is none."""
    if not last_box_intact(text):
        meant = broken_box(text, ended)
        return meant, "truncated" if meant is None and not ended else "garbled"
    boxes = all_boxes(text)
    return (boxed_answer(text, boxes), "ok") if boxes else None


def _is_echo(block: str) -> bool:
    return is_placeholder(re.sub(r"\\(?:boxed|fbox)(?![A-Za-z])", "", block))


def _without_answer(text: str) -> Status:
    return "template_echo" if complete_boxes(text) else "no_answer"


def final_answer(text: str) -> str | None:
    """The answer that a completion commits itself to, or None: `extract` as training uses it."""
    return extract(text).text


@functools.lru_cache(maxsize=256, typed=True)
def check_style(style: str) -> None:
    """Raise ValueError for a style that `extract` does not know."""
    name, colon, argument = str(style).partition(":")
    if style in STYLES:
        return
    if name not in WITH_ARGUMENT or not colon or not argument:
        raise ValueError(
            f"style is {style!r}; use one of {', '.join(STYLES)}, tag:NAME, json:FIELD, "
            "regex:PATTERN"
        )
    if name == "tag" and not re.fullmatch(r"[\w.:-]+", argument):
        raise ValueError(f"style is {style!r}; the name of a tag is letters, digits and . : - _")
    if name == "regex":
        try:
            re.compile(argument)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"style is {style!r}, no regular expression: {error}") from None


def check_mode(mode: str) -> None:
    """Raise ValueError for a mode that `extract` does not know."""
    if mode not in ("strict", "lenient"):
        raise ValueError(f"mode is {mode!r}; use strict (training) or lenient (evaluation)")


def reads_answer(grader: G) -> G:
    """Mark a grader of a declared answer: what it reads is what `extract` finds with the grader's
    own `style` and `mode`, so that the answer and its status can be logged beside the score."""
    setattr(grader, "extraction", extract)  # noqa: B010 - a function has no declared attributes
    return grader


def extraction_of(grader: Callable[..., Any]) -> Callable[[str], Extraction] | None:
    """What the grader reads as the answer, with its own settings; None if it reads none."""
    settings: dict[str, Any] = {}
    while isinstance(grader, functools.partial):
        settings = dict(grader.keywords) | settings
        grader = grader.func
    read = getattr(grader, "extraction", None)
    if read is None:
        return None
    known = inspect.signature(grader).parameters.values()
    settings = {p.name: p.default for p in known if p.default is not p.empty} | settings
    chosen = {key: settings[key] for key in ("style", "mode") if key in settings}
    return functools.partial(read, **chosen)
