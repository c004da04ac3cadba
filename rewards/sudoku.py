"""Is this a solved Sudoku that keeps its clues? Any valid solution counts, not one stored solution.

d1's reward pays for each empty cell that equals the stored solution: a grid of fours earns 26 %, a
changed clue costs nothing and a longer answer is cut to size. Here a grid is solved or it is not.
"""

import re
from math import isqrt

from rewards.extraction import first_turn, last_tag


def sudoku_solved(completion: str, puzzle: str) -> float:
    """1.0 or 0.0. `puzzle` is n x n digits, row by row, 0 or . for an empty cell (n = 1, 4, 9).

    The answer is the last <answer> block if there is one, else the whole completion: n x n digits,
    white space allowed and nothing else.
    """
    clues = "".join(puzzle.split()).replace(".", "0")
    n = isqrt(len(clues))
    if n not in (1, 4, 9) or not re.fullmatch(rf"[0-{n}]{{{n * n}}}", clues):
        raise ValueError(
            f"column 'puzzle' must be 16 digits 0-4 or 81 digits 0-9, row by row, 0 or . for an "
            f"empty cell; got {puzzle!r:.200}"
        )
    text = first_turn(completion)
    block = last_tag(text, "answer")
    grid = "".join((text if block is None else block).split())
    if not re.fullmatch(rf"[1-{n}]{{{n * n}}}", grid):
        return 0.0
    kept = all(clue in ("0", cell) for clue, cell in zip(clues, grid, strict=True))
    return float(kept and is_solved(grid, n))


def is_solved(grid: str, n: int) -> bool:
    """Whether each row, column and box of the n x n grid has n different digits."""
    box = isqrt(n)
    rows = [grid[n * row : n * (row + 1)] for row in range(n)]
    columns = [grid[column::n] for column in range(n)]
    boxes = [
        "".join(rows[top + row][left : left + box] for row in range(box))
        for top in range(0, n, box)
        for left in range(0, n, box)
    ]
    return all(len(set(unit)) == n for unit in rows + columns + boxes)
