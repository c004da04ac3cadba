r"""A Sudoku grid as people and models write it -> its cells, row by row.

Read are digits in a row, rows on lines, cells apart by spaces, commas, pipes or slashes, drawn
grids with rules of dashes, brackets and JSON lists, LaTeX arrays, and "Row 1: 1234" if the rows are
labelled 1 to n in order. Cells above 9 are numbers (10) or letters (A = 10). An empty cell is 0, .
or _. Nothing is padded, cut or dropped: other words, other symbols or another count are no grid.
"""

import re
from collections.abc import Iterable
from typing import Any, cast

from rewards.digits import ascii_digits

# n -> rows and columns of a box
BOXES = {1: (1, 1), 4: (2, 2), 6: (2, 3), 9: (3, 3), 16: (4, 4), 25: (5, 5)}
LONGEST = 12_000  # characters: a drawn 25 x 25 grid has about 4,000
LABEL = re.compile(
    r"\b(?:row|r)[ \t#_]*(\d{1,2})\b[ \t]*[*\"']*[ \t]*[:=)\-][*\"']*", re.IGNORECASE
)
LATEX = re.compile(r"\\(?:begin|end)\{[a-z]+\*?\}(?:\{[^{}]{0,200}\})?|\\hline|\\(?:left|right)\b")
RULE = re.compile(r"[-+=|:\s\u2500-\u257f*#~]*")  # a line that only draws
BETWEEN = re.compile(r"[\s,;|&/\[\](){}\"'`$*\u2500-\u257f]+")
CELL = re.compile(r"[1-9]\d?|[a-p]")
EMPTY = "0._"


def read_grid(text: str, n: int, *, empty: bool = False) -> list[int] | None:
    """The n x n cells, 1 to n, and 0 for an empty cell if there may be any; None if it is none."""
    if len(text) > LONGEST:
        return None
    lines = [_tokens(line) for line in _lines(text, n) if not RULE.fullmatch(line)]
    if "".join(token for line in lines for token in line) == "":
        return None
    for of_line in (_whole, _letters):
        rows = [of_line(line) for line in lines if line]
        if sum(map(len, rows)) == n * n:
            break
    else:
        return None
    if len({len(row) for row in rows}) > 1 and any(len(row) % n for row in rows):
        return None  # ragged lines
    cells = [_number(cell, n, empty) for row in rows for cell in row]
    return None if None in cells else cast("list[int]", cells)


def read_puzzle(value: Any) -> tuple[list[int], int]:
    """(cells, n) of a column with a puzzle: text in any layout above, or rows of cells."""
    text = value if isinstance(value, str) else _as_text(value)
    for n in BOXES:
        cells = read_grid(text, n, empty=True)
        if cells is not None:
            return cells, n
    raise ValueError(
        f"column 'puzzle' must be 16 digits 0-4 or 81 digits 0-9, row by row, 0 or . for an empty "
        f"cell, or n rows of n cells (n = {', '.join(map(str, BOXES))}); got {value!r:.200}"
    )


def _lines(text: str, n: int) -> list[str]:
    text = ascii_digits(text).casefold()
    text = re.sub(r"\\\\?(?![a-z])", "\n", LATEX.sub(" ", text))
    labels = [int(number) for number in LABEL.findall(text)]
    if labels == list(range(1, n + 1)):
        text = LABEL.sub("\n", text)
    # the rows of a list stand on lines of their own
    text = re.sub(r"\][\s,;]*\[", "\n", text)
    return re.sub(r"```[a-z]*", "", text).splitlines()


def _tokens(line: str) -> list[str]:
    return [token for token in BETWEEN.split(line) if token]


def _whole(line: list[str]) -> list[str]:
    """Each token is a cell."""
    return line


def _letters(line: list[str]) -> list[str]:
    """Each character is a cell."""
    return list("".join(line))


def _number(cell: str, n: int, empty: bool) -> int | None:
    if empty and cell in EMPTY:
        return 0
    if not CELL.fullmatch(cell):
        return None
    number = int(cell) if cell.isdigit() else ord(cell) - ord("a") + 10
    return number if number <= n else None


def _as_text(value: Any) -> str:
    """Rows of cells, None for an empty one, as lines of text."""
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        return ""
    rows: list[str] = []
    for row in cast("Iterable[Any]", value):
        cells = cast("Iterable[Any]", row) if isinstance(row, Iterable) else [row]
        rows.append(" ".join("0" if cell is None else str(cell) for cell in cells))
    return "\n".join(rows)
