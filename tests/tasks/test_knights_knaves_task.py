import json
import re
from itertools import product
from pathlib import Path

import pytest

from rewards.knights_knaves import agrees, knights_knaves
from rl.tasks.knights_knaves import KnightsKnaves

COLUMNS = ("names", "solution", "statements", "knight_knave")


def graded(row: dict[str, object], text: str) -> float:
    return knights_knaves(text, **{key: row[key] for key in COLUMNS})


@pytest.mark.parametrize("people", [2, 3, 5])
def test_drawn_puzzles_have_one_solution_which_is_the_completion(people: int):
    rows = KnightsKnaves(people=people).rows("train", limit=100)
    for row in rows:
        assert len(row["names"]) == people
        said = json.loads(row["statements"])
        fitting = [s for s in product([True, False], repeat=people) if agrees(s, said)]
        assert fitting == [tuple(row["solution"])]
        assert graded(row, row["completion"]) == 1.0
        flipped = [not row["solution"][0], *row["solution"][1:]]
        assert knights_knaves(row["completion"], row["names"], flipped) == 0.0
        assert graded(row, row["prompt"][0]["content"]) == 0.0
    assert 0.2 < sum(sum(row["solution"]) for row in rows) / (100 * people) < 0.8


def test_the_prompt_says_what_the_statements_say():
    task = KnightsKnaves(people=2)
    statements = [("lying", 1), ("not", ("<=>", ("telling-truth", 0), ("lying", 1)))]
    row = task._row(["Ada", "Ben"], statements, (True, False))
    text = row["prompt"][0]["content"]
    assert 'Ada says: "Ben is a knave."' in text
    assert 'Ben says: "this is false: Ada is a knight if and only if Ben is a knave."' in text


def test_splits_share_no_puzzle_whatever_the_seed():
    task = KnightsKnaves(validation_size=20, test_size=20)
    held = {row["id"] for split in ("validation", "test") for row in task.rows(split, seed=5)}
    assert len(held) == 40
    assert not held & {row["id"] for row in task.rows("train", limit=300, seed=1)}


def test_other_words_for_the_roles():
    task = KnightsKnaves(people=2, knight="angel", knave="devil")
    (row,) = task.rows("train", limit=1)
    text = row["prompt"][0]["content"] + row["completion"]
    assert "an angel" in text
    assert not re.search("knight|knave", text)
    assert graded(row, row["completion"]) == 1.0


def test_logic_rls_files(shared_data: Path):
    path = str(shared_data / "kk" / "kk_3ppl_{}.parquet")
    train = KnightsKnaves(path=path.format("train"))
    test = KnightsKnaves(path=path.format("test")).rows("test")
    rows = train.rows("train") + train.rows("validation")
    assert [len(rows), len(test)] == [900, 100]
    for row in rows[:100] + test:
        assert graded(row, row["completion"]) == 1.0
        assert all(name in row["prompt"][0]["content"] for name in row["names"])
    assert not {row["prompt"][0]["content"] for row in test} & {
        row["prompt"][0]["content"] for row in rows
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"people": 1}, "people is 2 to 8"),
        ({"people": 9}, "people is 2 to 8"),
        ({"knight": "knave"}, "two different words"),
        ({"knight": "white knight"}, "two different words"),
        ({"path": "no/such.parquet"}, "there is nothing at"),
        ({"train_size": -1}, "train_size is a number of rows"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        KnightsKnaves(**settings).rows("train", limit=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": None}, "line 1: column 'names'"),
        ({"solution": [True]}, "line 1: column 'solution'"),
        ({"statements": None}, "line 1: the fields solution and statements"),
        ({"quiz": ""}, "line 1: field 'quiz'"),
    ],
)
def test_lines_that_are_wrong_are_named(tmp_path: Path, change: dict[str, object], message: str):
    good = {"quiz": "?", "names": ["A", "B"], "solution": [True, False],
            "statements": [["lying", 1], ["lying", 0]]}  # fmt: skip
    file = tmp_path / "kk.jsonl"
    file.write_text(json.dumps(good | change))
    with pytest.raises(ValueError, match=message):
        KnightsKnaves(path=str(file)).rows("test")


def test_a_file_that_is_no_parquet(tmp_path: Path):
    file = tmp_path / "kk.parquet"
    file.write_text("no")
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        KnightsKnaves(path=str(file)).rows("test")
