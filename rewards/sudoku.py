"""Is this a solved Sudoku that keeps its clues? Any valid solution counts, not one stored solution.

d1's reward pays for each empty cell that equals the stored solution: a grid of fours earns 26 %, a
greedy filler 85 %, a changed clue costs nothing and a longer answer is cut to size. Here a grid is
solved or it is not. With `shaped: true` a grid that keeps the clues earns

    (quality - trivial) / (1 - trivial), at least 0

where quality is the share of the empty cells whose number no other cell of its row, column or box
has, and trivial is the quality of the best filler that does not think (`fillers`). So a constant
and a greedy filler earn nothing, unless they happen to solve the puzzle, and solved is 1.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from rewards.declared import declared_or_whole
from rewards.extraction import Mode, reads_answer
from rewards.sudoku_layouts import BOXES, read_grid, read_puzzle


@reads_answer
def sudoku_solved(
    completion: str,
    puzzle: Any,
    *,
    shaped: bool = False,
    style: str = "auto",
    mode: Mode = "strict",
) -> float:
    """1.0 or 0.0; between them if `shaped`.

    `puzzle`: n x n cells (n = 4, 6, 9, 16, 25; boxes of 6 x 6 are 2 rows high), as text in any
    layout of `rewards.sudoku_layouts` or as rows of numbers. The answer is what the completion
    declares; if it declares nothing, its whole text: a grid and nothing else.
    """
    clues, n = read_puzzle(puzzle)
    grid = read_grid(declared_or_whole(completion, style, mode), n)
    if grid is None or any(clue not in (0, cell) for clue, cell in zip(clues, grid, strict=True)):
        return 0.0
    if is_solved(grid, n):
        return 1.0
    if not shaped or 0 not in clues:
        return 0.0
    trivial = trivial_quality(tuple(clues), n)
    return 0.0 if trivial == 1 else max(0.0, (quality(grid, clues, n) - trivial) / (1 - trivial))


def is_solved(grid: Sequence[Any], n: int) -> bool:
    """Whether each row, column and box of the n x n grid has n different symbols."""
    return all(len({grid[cell] for cell in unit}) == n for unit in units(n))


@lru_cache(maxsize=len(BOXES))
def units(n: int) -> tuple[tuple[int, ...], ...]:
    """The cells of each row, column and box, as places in the grid row by row."""
    high, wide = BOXES[n]
    rows = [tuple(range(n * row, n * row + n)) for row in range(n)]
    columns = [tuple(range(column, n * n, n)) for column in range(n)]
    boxes = [
        tuple(n * (top + i) + left + j for i in range(high) for j in range(wide))
        for top in range(0, n, high)
        for left in range(0, n, wide)
    ]
    return (*rows, *columns, *boxes)


@lru_cache(maxsize=len(BOXES))
def peers(n: int) -> tuple[frozenset[int], ...]:
    """For each cell the other cells of its row, column and box."""
    return tuple(
        frozenset(other for unit in units(n) if cell in unit for other in unit) - {cell}
        for cell in range(n * n)
    )


def quality(grid: Sequence[int], clues: Sequence[int], n: int) -> float:
    """The share of the empty cells whose number none of their peers has."""
    blank = [cell for cell, clue in enumerate(clues) if clue == 0]
    fine = [cell for cell in blank if all(grid[cell] != grid[peer] for peer in peers(n)[cell])]
    return len(fine) / len(blank)


def fillers(clues: Sequence[int], n: int) -> Iterator[list[int]]:
    """The grids of policies that do not think: each constant; one greedy pass; rows filled up."""
    for number in range(1, n + 1):
        yield [clue or number for clue in clues]
    yield greedy(clues, n)
    rows: list[int] = []
    for row in range(0, n * n, n):
        missing = iter(sorted(set(range(1, n + 1)) - set(clues[row : row + n])))
        rows += [clue or next(missing, 1) for clue in clues[row : row + n]]
    yield rows


def greedy(clues: Sequence[int], n: int) -> list[int]:
    """One pass: the lowest number that no peer has yet; where there is none, 1."""
    grid = list(clues)
    for cell, clue in enumerate(clues):
        if clue == 0:
            taken = {grid[peer] for peer in peers(n)[cell]}
            grid[cell] = next((number for number in range(1, n + 1) if number not in taken), 1)
    return grid


@lru_cache(maxsize=4096)
def trivial_quality(clues: tuple[int, ...], n: int) -> float:
    """The quality of the best of the `fillers`."""
    return max(quality(grid, clues, n) for grid in fillers(clues, n))
