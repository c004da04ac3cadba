"""Complete a 4 x 4 Sudoku of which only a few clues are left; any valid completion is right.

With 11 to 14 of the 16 cells empty a puzzle has many solutions, so tokens that are decoded in one
step must agree with each other: the task that few-step decoding finds hard. All 288 grids occur in
training; what is held out is prompts. For a character-level model: "f" + 16 digits + "=".
"""

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from rl.tasks.base import Row, Split
from rl.tasks.drawing import DrawnTask
from rl.tasks.grids import check_empty, draw_puzzle


@dataclass(frozen=True, kw_only=True)
class FreeSudoku4(DrawnTask):
    """`completion` is the grid that the puzzle was made from, one right answer of many."""

    name: ClassVar[str] = "free_sudoku4"
    grader: ClassVar[str] = "sudoku"

    min_empty: int = 11
    max_empty: int = 14

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        return self.draw_rows(self._draw, split, limit, seed)

    def validate(self) -> None:
        check_empty(self.name, self.min_empty, self.max_empty)
        self.check_sizes()

    def _draw(self, rng: Random, tries: int) -> list[Row]:
        rows: list[Row] = []
        for _ in range(tries):
            puzzle, grid = draw_puzzle(rng, self.min_empty, self.max_empty)
            prompt = f"f{puzzle}="
            rows.append({"id": prompt, "prompt": prompt, "completion": grid, "puzzle": puzzle})
        return rows
