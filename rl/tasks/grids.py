"""All 288 solved 4 x 4 Sudokus, puzzles made from them, and the solutions of a puzzle."""

from functools import cache, reduce
from itertools import permutations
from operator import and_
from random import Random

from rewards.sudoku import is_solved


@cache
def all_grids() -> tuple[str, ...]:
    """Each as 16 digits, row by row, in ascending order."""
    rows = ["".join(row) for row in permutations("1234")]
    grids = [""]
    for height in range(1, 5):
        grids = [
            grid + row
            for grid in grids
            for row in rows
            if all(len(set((grid + row)[column::4])) == height for column in range(4))
        ]
    return tuple(grid for grid in grids if is_solved(grid, 4))


@cache
def _agreeing(cell: int, digit: str) -> int:
    """The grids with that digit in that cell, as a set of bits."""
    return sum(1 << i for i, grid in enumerate(all_grids()) if grid[cell] == digit)


def count_solutions(puzzle: str) -> int:
    """How many solved grids keep the clues of a puzzle (16 digits, 0 for an empty cell)."""
    clues = (_agreeing(cell, digit) for cell, digit in enumerate(puzzle) if digit != "0")
    return reduce(and_, clues, (1 << len(all_grids())) - 1).bit_count()


def draw_puzzle(rng: Random, low: int, high: int) -> tuple[str, str]:
    """(puzzle, its grid): a random grid of which `low` to `high` random cells are set to 0."""
    grid = rng.choice(all_grids())
    puzzle = list(grid)
    for cell in rng.sample(range(16), rng.randint(low, high)):
        puzzle[cell] = "0"
    return "".join(puzzle), grid


def check_empty(task: str, low: int, high: int) -> None:
    if not 0 <= low <= high <= 16:
        raise ValueError(
            f"task {task!r}: min_empty and max_empty count empty cells of 16, "
            f"0 <= min_empty <= max_empty <= 16; got {low} and {high}"
        )
