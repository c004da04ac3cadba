"""Answers to logic-grid ("zebra") puzzles: one short answer, or the whole grid as JSON.

Short: "Arnold", "the green house." or "House 2"; equal after case, articles, punctuation at the
ends and spaces are taken away. One answer only: "Arnold or Peter" is not "Arnold".

Grid: {"House 1": {"Name": "Eric", "Drink": "milk"}, ...}, or ZebraLogic's own {"header": ["House",
"Name", ...], "rows": [["1", "Eric", ...], ...]}. Every cell must be right, and none may be missing,
unknown or given twice; a field "reasoning" beside "solution" is left alone.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from rewards.declared import declared_or_whole
from rewards.extraction import Mode, reads_answer

LONGEST = 300  # characters of a short answer
LONGEST_GRID = 20_000
EDGES = " \t\r\n.,;:!\"'`*_$()[]{}\u201c\u201d\u2018\u2019"
TEXT = re.compile(r"\\(?:text(?:bf|it|rm)?|mathrm)\s*\{([^{}]*)\}")
ARTICLE = re.compile(r"^(?:the|an|a)\s+")
Cells = dict[tuple[str, str], str]  # (house, attribute) -> value


@reads_answer
def zebra(
    completion: str,
    answer: str | None = None,
    solution: Any = None,
    *,
    style: str = "auto",
    mode: Mode = "strict",
) -> float:
    """1.0 or 0.0. answer: the short answer. solution: the whole grid, a mapping or JSON; a row that
    has it asks for it."""
    if solution is not None:
        gold = _cells(json.loads(solution) if isinstance(solution, str) else solution)
        if not gold:
            raise ValueError(f"column 'solution' is no grid of a zebra puzzle: {solution!r:.200}")
        return float(_read_grid(completion, style, mode) == gold)
    if answer is None or not short(str(answer)):
        raise ValueError("one of the columns 'answer' and 'solution' must be given")
    text = declared_or_whole(completion, style, mode)
    return float(len(text) <= LONGEST and short(text) == short(str(answer)))


def short(answer: str) -> str:
    """The answer without case, article, punctuation at its ends and repeated spaces."""
    answer = TEXT.sub(r"\1", answer).casefold().strip(EDGES)
    answer = " ".join(re.sub(r"[_\s]+", " ", answer).split())
    return ARTICLE.sub("", answer).strip(EDGES)


def _read_grid(completion: str, style: str, mode: Mode) -> Cells | None:
    text = declared_or_whole(completion, style, mode).strip()
    text = re.sub(r"^```(?:json)?\s*|\s*```$", "", text)
    if len(text) > LONGEST_GRID:
        return None
    try:
        return _cells(json.loads(text, object_pairs_hook=_without_repeats))
    except (ValueError, RecursionError):
        return None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key.casefold() for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


def _cells(value: Any) -> Cells | None:
    """The cells of a grid in either form; None if it is none."""
    if not isinstance(value, Mapping):
        return None
    grid = cast("Mapping[str, Any]", value)
    if isinstance(grid.get("solution"), Mapping):
        grid = grid["solution"]
    if "header" in grid and "rows" in grid:
        grid = _from_rows(grid["header"], grid["rows"])
    cells: Cells = {}
    count = 0
    for house, attributes in grid.items():
        if not isinstance(attributes, Mapping):
            return None
        for attribute, cell in cast("Mapping[str, Any]", attributes).items():
            if not isinstance(cell, str | int):
                return None
            cells[_house(str(house)), short(str(attribute))] = short(str(cell))
            count += 1
    return cells if len(cells) == count else None


def _from_rows(header: Any, rows: Any) -> dict[str, Any]:
    if not isinstance(header, list) or not isinstance(rows, list):
        return {"": None}
    names = [str(name) for name in cast("list[Any]", header)]
    grid: dict[str, Any] = {}
    for row in cast("list[Any]", rows):
        if not names or not isinstance(row, list) or len(cast("list[Any]", row)) != len(names):
            return {"": None}
        house, *values = cast("list[Any]", row)
        grid[str(house)] = dict(zip(names[1:], values, strict=True))
    once = len(set(names)) == len(names) and len(grid) == len(cast("list[Any]", rows))
    return grid if once else {"": None}


def _house(name: str) -> str:
    return short(name).removeprefix("house").strip()
