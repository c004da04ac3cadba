"""Tasks that read a file, a folder or the hub."""

import re
from pathlib import Path

import pytest

from rewards import REWARDS
from rl.tasks import Countdown, Gsm8k, Math500, Sudoku4, assert_disjoint


def test_gsm8k_of_the_real_files(shared_data: Path):
    task = Gsm8k(path=str(shared_data / "gsm8k"))
    train, validation, test = (task.rows(s) for s in ("train", "validation", "test"))
    assert len(test) == 1319
    assert len(train) + len(validation) == 7473
    assert len(validation) == pytest.approx(747, abs=110)  # 4 standard errors are 104
    assert_disjoint(train, test)
    assert_disjoint(train, validation)
    assert len({row["id"] for row in train + validation + test}) == 7473 + 1319
    for row in test:
        assert "<<" not in row["completion"]
        assert REWARDS["gsm8k"](row["completion"], answer=row["answer"]) == 1.0
        assert REWARDS["strict_format"](row["completion"]) == 1.0
        wrong = row["answer"][:-1] + str((int(row["answer"][-1]) + 1) % 10)
        assert REWARDS["gsm8k"](row["completion"], answer=wrong) == 0.0
    assert task.rows("test", limit=7) == test[:7]
    assert test[0]["answer"] == "18"
    assert test[0]["prompt"][0]["content"].endswith("at the farmers' market?")


def test_math500_of_the_real_file(shared_data: Path):
    rows = Math500(path=str(shared_data / "math500" / "test.jsonl")).rows("test")
    assert len(rows) == 500
    assert rows[0]["answer"] == r"\left( 3, \frac{\pi}{2} \right)"
    assert all(REWARDS["math"](row["completion"], answer=row["answer"]) == 1.0 for row in rows)
    assert all(r"\boxed{" in row["prompt"][0]["content"] for row in rows)


@pytest.mark.parametrize(
    ("name", "count", "first"),
    [
        ("d1_cd3_test.jsonl", 256, ([30, 100, 93], 23)),
        ("dream_cd3_test.jsonl", 1000, ([15, 44, 79], 50)),
        ("dream_cd4_test.jsonl", 1000, ([86, 28, 13, 31], 96)),
    ],
)
def test_countdown_of_the_real_files(shared_data: Path, name: str, count: int, first: tuple):
    rows = Countdown(path=str(shared_data / "countdown" / name)).rows("test")
    assert len(rows) == count
    assert (rows[0]["numbers"], rows[0]["target"]) == first
    assert REWARDS["countdown"]("1", numbers=rows[0]["numbers"], target=rows[0]["target"]) == 0.0
    assert "completion" not in rows[0]


@pytest.mark.parametrize(
    ("name", "count"), [("spg_test_sudoku_split_new.csv", 256), ("d1_4x4_test_sudoku.csv", 500)]
)
def test_sudoku4_of_the_real_files(shared_data: Path, name: str, count: int):
    task = Sudoku4(path=str(shared_data / "sudoku4x4" / name), format="chat")
    rows = task.rows("test")
    assert len(rows) == count
    assert all(REWARDS["sudoku"](r["completion"], puzzle=r["puzzle"]) == 1.0 for r in rows)


def question(i: int) -> dict[str, str]:
    return {"question": f"What is {i} + 0?", "answer": f"It is <<{i}+0={i}>>{i}.\n#### {i}"}


def test_one_file_is_train_and_test_file_and_training_on_both_is_refused(jsonl):
    task = Gsm8k(path=jsonl(*map(question, range(200))))
    train, validation, test = (task.rows(s) for s in ("train", "validation", "test"))
    assert len(test) == 200
    assert len(train) + len(validation) == 200
    assert 5 < len(validation) < 40
    assert_disjoint(train, validation)
    with pytest.raises(ValueError, match=rf"{len(train)} of 200 test prompts.*What is 0 \+ 0"):
        assert_disjoint(train, test)


def test_folder_without_the_split(jsonl, tmp_path: Path):
    jsonl(question(1), name="test.jsonl")
    task = Gsm8k(path=str(tmp_path))
    assert task.rows("test")[0]["id"] == "test-0"
    with pytest.raises(ValueError, match=r"has no train\.jsonl or train\.csv; it has test\.jsonl"):
        task.rows("train")


@pytest.mark.parametrize(
    ("task", "lines", "message"),
    [
        (
            Gsm8k,
            [question(1), {"question": "?"}],
            "line 2: field 'answer' is missing; it has 'question'",
        ),
        (Gsm8k, [{"question": "?", "answer": ""}], "line 1: field 'answer' is ''. A text"),
        (
            Gsm8k,
            [{"question": "?", "answer": "so 5"}],
            "line 1: field 'answer' must end in '#### <n",
        ),
        (Gsm8k, [{"question": "?", "answer": "#### five"}], "got ...'#### five'"),
        (Math500, [{"problem": "?", "answer": 5}], "line 1: field 'answer' is 5. A text"),
        (Math500, ["{not json}"], "line 1: not JSON"),
        (Math500, ["[1, 2]"], "line 1: one JSON object a line is expected"),
        (Countdown, [{"input": "3,4"}], "line 1: field 'output' is missing; it has 'input'"),
        (Countdown, [{"input": "3;4", "output": "7"}], "field 'input' must be whole numbers"),
        (Countdown, [{"input": "3,4", "output": "seven"}], "field 'output' must be the target"),
        (Sudoku4, [{"Puzzle": "12", "Solution": "1"}], "field 'Puzzle' must be 16 digits [0-4]"),
    ],
)
def test_a_bad_line_is_named(jsonl, task, lines: list, message: str):
    path = jsonl(*lines)
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        task(path=path).rows("test")
    assert f"{path}, line " in str(error.value)


@pytest.mark.parametrize("task", [Gsm8k, Math500, Countdown, Sudoku4])
@pytest.mark.parametrize("path", ["nowhere/at/all", "./data", "missing.jsonl", "data/test.jsonl"])
def test_a_path_that_is_not_there(task, path: str):
    with pytest.raises(
        ValueError, match=rf"'{task.name}': there is nothing at '{path}'\. A .* is exp"
    ):
        task(path=path).validate()


def test_a_path_of_another_kind(tmp_path: Path):
    with pytest.raises(ValueError, match=r"'gsm8k': the path is empty\. A folder"):
        Gsm8k(path="").validate()
    (tmp_path / "test.parquet").touch()
    with pytest.raises(ValueError, match=r"no \.jsonl or \.csv file in .*it has test\.parquet\. A"):
        Gsm8k(path=str(tmp_path)).validate()
    (tmp_path / "test.jsonl.gz").touch()
    with pytest.raises(ValueError, match=r"test\.jsonl\.gz, test\.parquet, to be unpacked first"):
        Gsm8k(path=str(tmp_path)).validate()
    with pytest.raises(ValueError, match=r"is neither \.jsonl nor \.csv"):
        Gsm8k(path=str(tmp_path / "test.parquet")).validate()


def test_hub_names_pass_without_a_look_at_the_network():
    Gsm8k().validate()
    Math500().validate()


def test_rows_of_a_hub_data_set(monkeypatch: pytest.MonkeyPatch):
    asked = []

    def load_dataset(path: str, config: str | None, *, split: str) -> list[dict[str, str]]:
        asked.append((path, config, split))
        return [question(i) for i in range(100)]

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    task = Gsm8k()
    assert len(task.rows("test")) == 100
    assert len(task.rows("train")) + len(task.rows("validation")) == 100
    assert asked == [("openai/gsm8k", "main", s) for s in ("test", "train", "train")]


@pytest.mark.parametrize("failure", [FileNotFoundError, ConnectionError, ValueError])
def test_a_hub_data_set_that_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
):
    def load_dataset(*_: object, split: str) -> list[dict[str, str]]:
        raise failure(f"no {split} for you")

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    with pytest.raises(
        ValueError, match=r"'train' of the hub data set 'HuggingFaceH4/MATH-500'.*no train"
    ):
        Math500().rows("train")
