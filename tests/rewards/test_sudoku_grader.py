import csv
from pathlib import Path

import pytest

from rewards import sudoku_solved

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


def test_any_valid_completion_counts():
    for grid in ("1234341221434321", "1243431221343421", "4321123434122143"):
        assert sudoku_solved(grid, puzzle="." * 16) == 1.0


def test_a_latin_square_whose_boxes_are_wrong_does_not_count():
    assert sudoku_solved("1234234134124123", puzzle="0" * 16) == 0.0


def test_nine_by_nine():
    assert sudoku_solved(NINE, puzzle="5" + "." * 80) == 1.0
    assert sudoku_solved(NINE[1:] + NINE[0], puzzle="." * 81) == 0.0


@pytest.mark.parametrize("puzzle", ["", "120", "1204041020400325", "0" * 36, "x" * 16])
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
