"""What every task without a data set promises."""

import re
import zlib
from itertools import permutations

import pytest

from rewards import REWARDS, required_columns
from rl.tasks import TASKS, Countdown, FreeSudoku4, Sudoku4, assert_disjoint
from rl.tasks.base import split_of
from rl.tasks.countdown import OPERATIONS
from rl.tasks.grids import all_grids, count_solutions

DRAWN = [FreeSudoku4(), Sudoku4(), Countdown()]
by_name = pytest.mark.parametrize("task", DRAWN, ids=lambda task: task.name)


def test_registry_names_graders_that_exist():
    for name, task in TASKS.items():
        assert task.name == name
        assert task.grader in REWARDS or name.startswith("preference_")  # graded in the data


@by_name
def test_its_own_answers_are_right_and_its_columns_are_the_graders(task):
    score = REWARDS[task.grader]
    for row in task.rows("train", limit=300):
        columns = {column: row[column] for column in required_columns(score)}
        assert score(row["completion"], **columns) == 1.0
        assert score(row["completion"][:-1], **columns) == 0.0


@by_name
def test_the_same_call_gives_the_same_rows_and_a_longer_one_continues_them(task):
    rows = task.rows("train", limit=200)
    assert task.rows("train", limit=200) == rows
    assert task.rows("train", limit=100) == rows[:100]
    assert type(task)().rows("train", limit=200) == rows
    other = task.rows("train", limit=200, seed=1)
    assert [row["id"] for row in other] != [row["id"] for row in rows]


@by_name
def test_sizes_are_the_default_limits(task):
    small = type(task)(train_size=5, validation_size=4, test_size=3)
    assert [len(small.rows(split)) for split in ("train", "validation", "test")] == [5, 4, 3]
    assert task.rows("test", limit=0) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "size"),
    [(FreeSudoku4(), 50_000), (Sudoku4(), 10_000), (Countdown(), 10_000)],
    ids=["free_sudoku4", "sudoku4", "countdown"],
)
def test_splits_share_no_prompt(task, size: int):
    train, validation, test = task.rows("train", size), task.rows("validation"), task.rows("test")
    assert [len(validation), len(test)] == [600, 1000]
    ids = [row["id"] for row in train + validation + test]
    assert len(set(ids)) == len(ids) == size + 1600
    assert_disjoint(train, validation + test + task.rows("test", seed=7))
    assert_disjoint(validation, test)


def test_split_is_a_hash_of_the_prompt():
    for key, bucket, split in (
        ("f0000000000000010=", 0, "test"),
        ("f0000000000000006=", 1, "validation"),
        ("f0000000000000001=", 2, "train"),
        ("f0000000000000000=", 9, "train"),
    ):
        assert zlib.crc32(f"free_sudoku4:{key}".encode()) % 10 == bucket
        assert split_of("free_sudoku4", key) == split
    keys = [str(i) for i in range(10_000)]
    counts = {s: sum(split_of("t", k) == s for k in keys) for s in ("train", "validation", "test")}
    assert counts["train"] == pytest.approx(8000, abs=150)  # 4 standard errors are 160
    assert counts["test"] == pytest.approx(1000, abs=120)


def test_all_grids_are_those_of_a_brute_force_search():
    rows = ["".join(row) for row in permutations("1234")]
    found = {
        a + b + c + d
        for a in rows
        for b in rows
        if {*a[:2], *b[:2]} == {*a[2:], *b[2:]} == set("1234")
        for c in rows
        for d in rows
        if {*c[:2], *d[:2]} == {*c[2:], *d[2:]} == set("1234")
        and all(len(set(column)) == 4 for column in zip(a, b, c, d, strict=True))
    }
    assert set(all_grids()) == found
    assert len(all_grids()) == 288


def test_count_solutions():
    def brute_force(puzzle: str) -> int:
        return sum(
            all(p in ("0", g) for p, g in zip(puzzle, grid, strict=True)) for grid in all_grids()
        )

    for row in FreeSudoku4().rows("train", limit=100):
        assert count_solutions(row["puzzle"]) == brute_force(row["puzzle"]) >= 1
    assert count_solutions("0" * 16) == 288
    assert count_solutions("11" + "0" * 14) == 0


def test_free_sudoku_leaves_two_to_five_clues():
    rows = FreeSudoku4().rows("train", limit=3000)
    assert {row["puzzle"].count("0") for row in rows} == {11, 12, 13, 14}
    assert all(re.fullmatch(r"f[0-4]{16}=", row["prompt"]) for row in rows)
    assert len({row["completion"] for row in rows}) == 288
    assert sum(count_solutions(row["puzzle"]) > 1 for row in rows) > 2600


def test_sudoku4_has_one_solution():
    rows = Sudoku4().rows("train", limit=2000)
    assert {row["puzzle"].count("0") for row in rows} == set(range(6, 12))
    assert all(re.fullmatch(r"s[0-4]{16}=", row["prompt"]) for row in rows)
    assert all(count_solutions(row["puzzle"]) == 1 for row in rows)


def test_countdown_rows():
    for row in Countdown(count=4, max_number=20, max_target=50).rows("train", limit=300):
        assert row["prompt"] == f"c{','.join(map(str, row['numbers']))}:{row['target']}="
        assert row["id"] == f"{','.join(map(str, sorted(row['numbers'])))}:{row['target']}"
        assert len(row["numbers"]) == 4
        assert all(1 <= number <= 20 for number in row["numbers"])
        assert 1 <= row["target"] <= 50
    operators = "".join(row["completion"] for row in Countdown().rows("train", limit=300))
    assert set("+-*/") <= set(operators)


def test_operations_stay_in_the_whole_numbers():
    assert [OPERATIONS[sign](6, 2) for sign in "+-*/"] == [8, 4, 12, 3]
    assert OPERATIONS["/"](2, 6) is None
    assert OPERATIONS["/"](2, 0) is None


@pytest.mark.parametrize("task", [Sudoku4(format="chat"), Countdown(format="chat")])
def test_chat_asks_for_the_shape_that_its_completions_have(task):
    score = REWARDS[task.grader]
    plain = type(task)().rows("test", limit=20)
    for row, same in zip(task.rows("test", limit=20), plain, strict=True):
        (message,) = row["prompt"]
        assert message["role"] == "user"
        assert "<reasoning>" in message["content"]
        assert REWARDS["strict_format"](row["completion"]) == 1.0
        assert REWARDS["xml_count"](row["completion"]) == 0.5
        assert score(row["completion"], **{c: row[c] for c in required_columns(score)}) == 1.0
        assert row["id"] == same["id"]  # the same problems, asked in another way


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (FreeSudoku4(min_empty=15, max_empty=14), "min_empty <= max_empty <= 16; got 15 and 14"),
        (Sudoku4(max_empty=17), "got 6 and 17"),
        (Countdown(count=1), "count is 2 to 8 numbers"),
        (Countdown(max_target=0), "at least 1; got 3, 99 and 0"),
        (FreeSudoku4(test_size=-1), "test_size is a number of rows, 0 or more; got -1"),
    ],
)
def test_impossible_fields(task, message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        task.validate()
    with pytest.raises(ValueError, match=re.escape(message)):
        task.rows("train")


def test_more_rows_than_there_are_prompts():
    with pytest.raises(
        ValueError, match=r"asked for 1000 distinct prompts in split 'test' but has"
    ):
        FreeSudoku4(min_empty=0, max_empty=0).rows("test")
