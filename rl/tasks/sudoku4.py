"""Solve a 4 x 4 Sudoku that has exactly one solution.

Drawn: a random grid with 6 to 11 cells emptied, thrown back until the solution is unique (all 288
grids occur in training; what is held out is prompts). From a file: columns Puzzle and Solution, as
in the test sets of d1 and SPG; of d1's 500 puzzles 124 have more than one solution, so the grader
accepts any. `plain` is for a character-level model: "s" + 16 digits + "=".
"""

import re
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal

from rl.tasks.base import Prompt, Row, Split, ask, reply
from rl.tasks.drawing import DrawnTask
from rl.tasks.grids import check_empty, count_solutions, draw_puzzle
from rl.tasks.sources import Record, check_path, read_split

EXPECTED = "A .csv or .jsonl file with the fields Puzzle and Solution, 16 digits each, is expected"


@dataclass(frozen=True, kw_only=True)
class Sudoku4(DrawnTask):
    name: ClassVar[str] = "sudoku4"
    grader: ClassVar[str] = "sudoku"

    min_empty: int = 6
    max_empty: int = 11
    format: Literal["plain", "chat"] = "plain"
    path: str | None = None

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        if self.path is None:
            return self.draw_rows(self._draw, split, limit, seed)
        records = read_split(self.name, self.path, split, key="Puzzle")[:limit]
        return [{**self._row(*puzzle_of(r)), "id": r.id} for r in records]

    def validate(self) -> None:
        check_empty(self.name, self.min_empty, self.max_empty)
        self.check_sizes()
        if self.path is not None:
            check_path(self.name, self.path, EXPECTED)

    def _draw(self, rng: Random, tries: int) -> list[Row]:
        rows: list[Row] = []
        for _ in range(tries):
            empty = rng.randint(self.min_empty, self.max_empty)  # so each number is as frequent
            puzzle, grid = draw_puzzle(rng, empty, empty)
            while count_solutions(puzzle) != 1:
                puzzle, grid = draw_puzzle(rng, empty, empty)
            rows.append(self._row(puzzle, grid))
        return rows

    def _row(self, puzzle: str, grid: str) -> Row:
        plain = f"s{puzzle}="
        prompt: Prompt = plain
        completion = grid
        if self.format == "chat":
            prompt = ask(
                "Solve this 4x4 Sudoku. Every row, every column and every 2x2 box must hold the "
                "digits 1 to 4 once each. The puzzle is 16 digits, row by row, and 0 marks an "
                "empty cell; the clues must stay.",
                answer="the 16 digits of the solved grid, row by row",
                problem=f"Puzzle: {puzzle}",
            )
            completion = reply(f"The only grid that keeps the clues is {grid}.", grid)
        return {"id": plain, "prompt": prompt, "completion": completion, "puzzle": puzzle}


def puzzle_of(record: Record) -> tuple[str, str]:
    """(puzzle, solution) of a line of a file."""
    puzzle, solution = record.text("Puzzle").strip(), record.text("Solution").strip()
    for field, value, digits in (("Puzzle", puzzle, "[0-4]"), ("Solution", solution, "[1-4]")):
        if not re.fullmatch(digits + "{16}", value):
            raise ValueError(
                f"{record.where}: field {field!r} must be 16 digits {digits}, row by row; "
                f"got {value!r:.80}"
            )
    return puzzle, solution
