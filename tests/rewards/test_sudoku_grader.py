import csv
import functools
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from rewards import sudoku_solved
from rewards.sudoku import greedy, is_solved, trivial_quality

PUZZLE = "1204041020400321"
SOLUTION = "1234341221434321"
NINE = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        (SOLUTION, 1.0),
        ("1234\n3412\n2143\n4321\n", 1.0),
        ("1 2 3 4 3 4 1 2 2 1 4 3 4 3 2 1", 1.0),
        (f"<reasoning>4444444444444444</reasoning><answer>\n{SOLUTION}\n</answer>", 1.0),
        (f"<answer>{SOLUTION}</answer><|eot_id|><answer>1</answer>", 1.0),
        (rf"<answer>\boxed{{{SOLUTION}}}</answer>", 1.0),
        (rf"The grid is \boxed{{{SOLUTION}}}.", 1.0),
        (f"<answer>{SOLUTION}", 0.0),  # cut off
        ("2234341221434321", 0.0),  # a clue was changed
        ("1243341221344321", 0.0),  # rows are right, clues and boxes are not
        ("4444444444444444", 0.0),
        (SOLUTION + "1", 0.0),
        (SOLUTION[:-1], 0.0),
        (PUZZLE, 0.0),
        (f"The solution is {SOLUTION}", 0.0),
        (f"{SOLUTION} <answer>none</answer>", 0.0),  # the block decides
        (SOLUTION.replace("1", "\N{SUPERSCRIPT ONE}"), 0.0),
        ("", 0.0),
    ],
)
def test_one_puzzle(completion: str, score: float):
    assert sudoku_solved(completion, puzzle=PUZZLE) == score


LAYOUTS = [
    "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1",
    "1,2,3,4\n3,4,1,2\n2,1,4,3\n4,3,2,1",
    "1234, 3412, 2143, 4321",
    "1234/3412/2143/4321",
    "1234 3412\n2143 4321",
    "1234\\\n3412\\\n2143\\\n4321",
    "\n".join(SOLUTION),
    "[[1, 2, 3, 4], [3, 4, 1, 2], [2, 1, 4, 3], [4, 3, 2, 1]]",
    '["1234", "3412", "2143", "4321"]',
    "[1,2,3,4,3,4,1,2,2,1,4,3,4,3,2,1]",
    "+---+---+\n|1 2|3 4|\n|3 4|1 2|\n+---+---+\n|2 1|4 3|\n|4 3|2 1|\n+---+---+",
    "1 2 | 3 4\n3 4 | 1 2\n---------\n2 1 | 4 3\n4 3 | 2 1",
    "1 2 | 3 4\n3 4 | 1 2\n------+------\n2 1 | 4 3\n4 3 | 2 1",
    "| 1 | 2 | 3 | 4 |\n|---|---|---|---|\n| 3 | 4 | 1 | 2 |\n| 2 | 1 | 4 | 3 |\n| 4 | 3 | 2 | 1 |",
    "\u250c\u2500\u2500\u252c\u2500\u2500\u2510\n\u250212\u250234\u2502\n\u250234\u250212\u2502\n"
    "\u251c\u2500\u2500\u253c\u2500\u2500\u2524\n\u250221\u250243\u2502\n\u250243\u250221\u2502",
    "Row 1: 1234\nRow 2: 3412\nRow 3: 2143\nRow 4: 4321",
    "Row 1: 1 2 3 4, Row 2: 3 4 1 2, Row 3: 2 1 4 3, Row 4: 4 3 2 1",
    "**Row 1:** 1, 2, 3, 4\n**Row 2:** 3, 4, 1, 2\n**Row 3:** 2, 1, 4, 3\n**Row 4:** 4, 3, 2, 1",
    "R1 = [1,2,3,4]\nR2 = [3,4,1,2]\nR3 = [2,1,4,3]\nR4 = [4,3,2,1]",
    "- Row 1: 1234\n- Row 2: 3412\n- Row 3: 2143\n- Row 4: 4321",
    "```\n1234\n3412\n2143\n4321\n```",
    "\\begin{array}{|cc|cc|}\\hline 1&2&3&4\\\\3&4&1&2\\\\\\hline 2&1&4&3\\\\4&3&2&1\\end{array}",
    "\uff11\uff12\uff13\uff14\uff13\uff14\uff11\uff12\uff12\uff11\uff14\uff13\uff14\uff13\uff12\uff11",
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str):
    assert sudoku_solved(f"<answer>\n{layout}\n</answer>", puzzle=PUZZLE) == 1.0
    digits = [i for i, letter in enumerate(layout) if letter == "4" and "row" not in layout.lower()]
    for at in digits[-1:]:  # one cell less is not filled up
        shorter = layout[:at] + layout[at + 1 :]
        assert sudoku_solved(f"<answer>{shorter}</answer>", puzzle=PUZZLE) == 0.0
    assert sudoku_solved(f"<answer>{layout}\n1</answer>", puzzle=PUZZLE) == 0.0


@pytest.mark.parametrize(
    "grid",
    [
        "Row 2: 1234\nRow 1: 3412\nRow 3: 2143\nRow 4: 4321",  # which row is which?
        "Row 1: 1234\nRow 2: 3412\nRow 3: 2143\n4321",
        "123\n43412\n2143\n4321",  # ragged
        "  1 2 3 4\n1 1 2 3 4\n2 3 4 1 2\n3 2 1 4 3\n4 4 3 2 1",  # numbered rows and columns
        "The grid is 1234341221434321",
        "1234341221434321 or 1243341221344321",
        "12.34341221434321",
        "-1234341221434321-",
        "1234 3412 2143 432l",
        "1 2 3 4 3 4 1 2 2 1 4 3 4 3 2 01",
        "1234" * 5000,
    ],
)
def test_what_is_no_grid(grid: str):
    assert sudoku_solved(f"<answer>{grid}</answer>", puzzle=PUZZLE) == 0.0


def pattern(n: int, high: int, wide: int) -> list[list[int]]:
    """A solved grid by the shift construction, with no look at the grader."""
    return [
        [(wide * (row % high) + row // high + column) % n + 1 for column in range(n)]
        for row in range(n)
    ]


@pytest.mark.parametrize(("n", "high", "wide"), [(6, 2, 3), (9, 3, 3), (16, 4, 4), (25, 5, 5)])
def test_larger_grids(n: int, high: int, wide: int):
    rows = pattern(n, high, wide)
    puzzle = [[cell if (i + j) % 3 else 0 for j, cell in enumerate(r)] for i, r in enumerate(rows)]
    letters = "0123456789ABCDEFGHIJKLMNOP"
    spaced = "\n".join(" ".join(map(str, row)) for row in rows)
    compact = "\n".join("".join(letters[cell] for cell in row) for row in rows)
    for grid in (spaced, compact, compact.lower().replace("\n", ""), str(rows)):
        for column in (puzzle, str(puzzle), [[cell or None for cell in row] for row in puzzle]):
            assert sudoku_solved(f"<answer>{grid}</answer>", puzzle=column) == 1.0
    rows[0], rows[high - 1] = rows[high - 1], rows[0]  # rows of one band: only the clues are wrong
    swapped = " ".join(str(cell) for row in rows for cell in row)
    assert sudoku_solved(swapped, puzzle=[[0] * n] * n) == 1.0
    assert sudoku_solved(swapped, puzzle=puzzle) == 0.0
    rows[0], rows[high] = rows[high], rows[0]  # rows of two bands: boxes are wrong
    assert sudoku_solved(str(rows), puzzle=[[0] * n] * n) == 0.0


def test_six_by_six_boxes_are_two_rows_high():
    upright = [list(column) for column in zip(*pattern(6, 2, 3), strict=True)]  # 3 x 2 boxes
    assert sudoku_solved(str(pattern(6, 2, 3)), puzzle="0" * 36) == 1.0
    assert sudoku_solved(str(upright), puzzle="0" * 36) == 0.0


def test_any_valid_completion_counts():
    for grid in ("1234341221434321", "1243431221343421", "4321123434122143"):
        assert sudoku_solved(grid, puzzle="." * 16) == 1.0


def test_a_latin_square_whose_boxes_are_wrong_does_not_count():
    assert sudoku_solved("1234234134124123", puzzle="0" * 16) == 0.0


def test_nine_by_nine():
    assert sudoku_solved(NINE, puzzle="5" + "." * 80) == 1.0
    assert sudoku_solved(NINE[1:] + NINE[0], puzzle="." * 81) == 0.0


@pytest.mark.parametrize(
    "puzzle", ["", "120", "1204041020400325", "7" * 36, "0" * 25, "x" * 16, None, 7, [[1, 2], [3]]]
)
def test_puzzle_that_is_none_is_refused(puzzle: str):
    with pytest.raises(ValueError, match="column 'puzzle' must be 16 digits"):
        sudoku_solved(SOLUTION, puzzle=puzzle)


@pytest.mark.parametrize(
    ("name", "count"), [("spg_test_sudoku_split_new.csv", 256), ("d1_4x4_test_sudoku.csv", 500)]
)
def test_stored_solutions_of_real_puzzles(shared_data: Path, name: str, count: int):
    with (shared_data / "sudoku4x4" / name).open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == count
    for i, row in enumerate(rows):
        solution, cell = row["Solution"], i % 16
        wrong = solution[:cell] + str(int(solution[cell]) % 4 + 1) + solution[cell + 1 :]
        assert sudoku_solved(solution, puzzle=row["Puzzle"]) == 1.0
        assert sudoku_solved(wrong, puzzle=row["Puzzle"]) == 0.0


def test_shaped_credit_where_a_filler_solves_the_puzzle():
    """0000341221434321: filling the first row with 1234 solves it, so no part of it is worth
    anything, and all of it is still right."""
    score = functools.partial(sudoku_solved, puzzle="0000341221434321", shaped=True)
    assert score("1234341221434321") == 1.0
    assert score("1243341221434321") == 0.0


def test_shaped_credit_by_hand():
    """Two empty cells in each of four rows of a puzzle that the greedy pass does not solve."""
    puzzle, solution = "0100301010022340", "4123321414322341"
    assert trivial_quality(tuple(map(int, puzzle)), 4) == pytest.approx(best_by_hand(puzzle))
    assert sudoku_solved(solution, puzzle=puzzle, shaped=True) == 1.0


def best_by_hand(puzzle: str) -> float:
    """The best quality of the constants, the greedy pass and the rows, counted anew."""
    fills = [puzzle.replace("0", digit) for digit in "1234"]
    greedy, rows = list(puzzle), list(puzzle)
    for i in range(16):
        if puzzle[i] != "0":
            continue
        seen = {greedy[j] for j in range(16) if touches(i, j)}
        greedy[i] = min(set("1234") - seen, default="1")
        rows[i] = min(set("1234") - set(rows[i - i % 4 : i - i % 4 + 4]))
    return max(share_without_conflict(puzzle, fill) for fill in [*fills, greedy, rows])


def touches(i: int, j: int) -> bool:
    return i != j and (
        i // 4 == j // 4 or i % 4 == j % 4 or (i // 8 == j // 8 and (i % 4) // 2 == (j % 4) // 2)
    )


def share_without_conflict(puzzle: str, grid: Sequence[str]) -> float:
    empty = [i for i in range(16) if puzzle[i] == "0"]
    fine = [i for i in empty if not any(touches(i, j) and grid[i] == grid[j] for j in range(16))]
    return len(fine) / len(empty)


def test_shaped_credit_is_what_is_better_than_the_best_trivial_filler(shared_data: Path):
    rows = puzzles(shared_data, "spg_test_sudoku_split_new.csv")
    between = 0
    for row in rows:
        puzzle, solution = row["Puzzle"], row["Solution"]
        cells = [i for i in range(16) if puzzle[i] == "0"]
        near = list(solution)
        near[cells[0]] = str(int(near[cells[0]]) % 4 + 1)  # one cell is wrong
        trivial = best_by_hand(puzzle)
        due = (share_without_conflict(puzzle, near) - trivial) / (1 - trivial) if trivial < 1 else 0
        score = sudoku_solved("".join(near), puzzle=puzzle, shaped=True)
        assert score == pytest.approx(max(0.0, due))
        between += 0 < score < 1
        assert sudoku_solved(solution, puzzle=puzzle, shaped=True) == 1.0
        assert sudoku_solved("".join(near), puzzle=puzzle) == 0.0
    assert between > 20


@pytest.mark.parametrize("shaped", [False, True])
def test_trivial_policies_earn_nothing_that_they_do_not_solve(shared_data: Path, shaped: bool):
    """On d1's own 500 puzzles, where d1's reward pays them 26 % and 85 %."""
    rows = puzzles(shared_data, "d1_4x4_test_sudoku.csv")
    for row in rows:
        puzzle = row["Puzzle"]
        for digit in "1234":
            for grid in (digit * 16, puzzle.replace("0", digit)):
                assert sudoku_solved(grid, puzzle=puzzle, shaped=shaped) == 0.0
        clues = list(map(int, puzzle))
        filled = greedy(clues, 4)
        score = sudoku_solved(str(filled), puzzle=puzzle, shaped=shaped)
        assert score == float(is_solved(filled, 4))


def puzzles(shared_data: Path, name: str) -> list[dict[str, str]]:
    with (shared_data / "sudoku4x4" / name).open() as lines:
        return list(csv.DictReader(lines))


def test_real_generations(shared_data: Path):
    """Of 3 x 256 real outputs one solves its puzzle (d1's parser: 11.7, 6.7 and 5.5 %)."""
    solved: Counter[int] = Counter()
    with gzip.open(shared_data / "d1_llada_generations.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            if row["task"] == "sudoku":
                puzzle = row["question"].split(":")[1].strip()
                score = sudoku_solved(row["generation"], puzzle=puzzle)
                assert 0 <= score <= sudoku_solved(row["generation"], puzzle=puzzle, shaped=True)
                solved[row["gen_length"]] += int(score)
    assert solved == {128: 1, 256: 0, 512: 0}
