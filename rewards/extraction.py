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
    regex:PATTERN  the last match: its group `answer`, or its first group, or all of it

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

Pure, total, linear in the length of the text.
"""

import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from rewards.boxes import all_boxes, boxed_answer, last_boxed
from rewards.placeholders import is_placeholder
from rewards.tags import last_tag, prefilled_answer, tag_blocks
from rewards.turn import first_turn

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
G = TypeVar("G", bound=Callable[..., Any])

LONGEST_ANSWER = 20_000  # characters; a longer block is not an answer
STYLES = ("auto", "tag", "box", "hash", "last_number")
WITH_ARGUMENT = ("tag", "json", "regex")
NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})++|\d++)(?:\.\d++)?+(?:/\d++)?+", re.ASCII)
HASH = re.compile(r"####[ \t]*+([^\n]*+)")
MARKER = re.compile(
    r"""(?<!\bif\ the\ )(?<!\bwhether\ the\ )(?<!\bsuppose\ the\ )
    (?: \#\#\#\#
      | \b(?:final|correct|right)?[ ]?answer\b (?:\ (?:choice|option))? [*_"\ ]{0,4}
        (?: (?:\ ?(?:to|for|of)\ [^.:\n=]{1,80}?)? \ ?\b(?:is|are)\b(?!n't) [*_"\ ]{0,4}:? | [:=] )
      | \bfinal\ answer\b [*_]{0,3}[ \t]*(?=\n|\Z) )
    [*_ \t]*+ \n{0,2} [*_ \t]*+ (?P<said>[^\s][^\n]*+)?""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True)
class Extraction:
    """text: the declared answer, None where there is none to grade.
    boxes: complete boxes of the first turn that hold something."""

    text: str | None
    status: Status
    boxes: int = 0


def extract(completion: str, *, style: str = "auto", mode: Mode = "strict") -> Extraction:
    """The answer that a completion commits itself to, by the rules above."""
    text = first_turn(completion)
    name, _, argument = style.partition(":")
    found: str | None
    if name in ("json", "regex", "hash", "last_number"):
        found = _by_pattern(text, name, argument)
        status: Status = "no_answer" if found is None else "ok"
    else:
        found, status = _by_markup(text, name, argument or "answer")
    if found is not None and is_placeholder(found):
        found, status = None, "template_echo"
    if found is not None and len(found) > LONGEST_ANSWER:
        found, status = None, "garbled"
    return Extraction(found, status, len(all_boxes(text)))


def _by_markup(text: str, style: str, tag: str) -> tuple[str | None, Status]:
    """Styles auto, tag and box."""
    after = 0
    if style != "box":
        blocks = tag_blocks(text, tag)
        if blocks.complete:
            block = next((b for b in reversed(blocks.complete) if not _is_echo(b)), None)
            if block is not None:
                return _in_block(block), "ok"
            after = blocks.end  # of the last copy of the template
        elif blocks.open_at is not None:
            after = blocks.open_at
        elif (whole := prefilled_answer(text, tag)) is not None and not is_placeholder(whole):
            return _in_block(whole), "ok"
        if style == "tag":
            return None, _missing(text, after, blocks.open_at)
    boxes = [box for box in all_boxes(text) if box.start >= after]
    if boxes:
        return boxed_answer(text, boxes), "ok"
    if style == "auto" and not after and (said := _declared(text)) is not None:
        return said, "ok"
    return None, _missing(text, after, after or None)


def _missing(text: str, after: int, open_at: int | None) -> Status:
    if open_at is not None and open_at >= after:
        return "truncated"
    return "template_echo" if after or re.search(r"\\boxed\s*\{[\s.]*\}", text) else "no_answer"


def _is_echo(block: str) -> bool:
    return is_placeholder(re.sub(r"\\(?:boxed|fbox)(?![A-Za-z])", "", block))


def _in_block(block: str) -> str:
    boxes = all_boxes(block)
    if boxes:
        return boxed_answer(block, boxes)
    said = _declared(block)
    return said if said is not None else block.strip()


def _declared(text: str) -> str | None:
    """What the last line that declares an answer says ("#### 7", "**Final Answer:** 7")."""
    said = [match["said"] for match in MARKER.finditer(text) if match["said"]]
    return _without_coda(said[-1]) if said else None


def _without_coda(line: str) -> str:
    """The sentence without the next one, if that cannot hold an answer ("I hope it is correct.")"""
    line = line.strip().strip("*_").strip()
    sentence, end, rest = line.partition(". ")
    return sentence + end.strip() if end and not re.search(r"[\d$\\]", rest) else line


def _by_pattern(text: str, style: str, argument: str) -> str | None:
    if style == "json":
        return _json_field(text, argument)
    pattern = {"hash": HASH, "last_number": NUMBER}.get(style) or re.compile(argument)
    last = None
    for match in pattern.finditer(text):
        last = match
    if last is None:
        return None
    if "answer" in pattern.groupindex:
        return last["answer"]
    return (last[1] if pattern.groups else last[0] or "").strip()


def _json_field(text: str, field: str) -> str | None:
    """The field of the last JSON object that has it, searched in the last characters only."""
    text = text[-LONGEST_ANSWER:]
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    at, found, tries = text.find("{"), None, 0
    while at >= 0 and tries < 200:
        tries += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict) and field in value:
                found = cast("dict[str, Any]", value)[field]
        at = text.find("{", end)
    return found if found is None or isinstance(found, str) else json.dumps(found)


def final_answer(text: str) -> str | None:
    """The answer that a completion commits itself to, or None: `extract` as training uses it."""
    return extract(text).text


def check_style(style: str) -> None:
    """Raise ValueError for a style that `extract` does not know."""
    name, colon, argument = style.partition(":")
    if style in STYLES or (name in WITH_ARGUMENT and colon and argument):
        if name == "regex":
            try:
                re.compile(argument)
            except re.error as error:
                raise ValueError(f"style {style!r}: not a regular expression: {error}") from None
        return
    raise ValueError(
        f"style is {style!r}; use one of {', '.join(STYLES)}, tag:NAME, json:FIELD, regex:PATTERN"
    )


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
    """What the grader reads as the answer, with the settings bound to it; None if it reads none."""
    settings: dict[str, Any] = {}
    while isinstance(grader, functools.partial):
        settings = dict(grader.keywords) | settings
        grader = grader.func
    read = getattr(grader, "extraction", None)
    if read is None:
        return None
    chosen = {key: settings[key] for key in ("style", "mode") if key in settings}
    return functools.partial(read, **chosen)
