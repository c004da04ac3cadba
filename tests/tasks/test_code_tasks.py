"""HumanEval and MBPP: their rows are what the grader needs, and nothing runs without permission."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rewards import per_completion
from rl.reward_binding import bind_reward
from rl.task_grader import task_grader
from rl.tasks import TASKS, Gsm8k, HumanEval, Mbpp, Sudoku4
from rl.tasks.base import Row

ORIGINAL = [
    {
        "text": f"Write a function to add {i} to a number.",
        "code": f"import math\r\ndef add(x):\r\n    return x + {i}",
        "test_list": [f"assert add(1) == {i + 1}", f"assert add(math.floor(0.5)) == {i}"],
        "test_setup_code": "import math",
        "challenge_test_list": [],
    }
    for i in range(40)
]


def written(path: Path, records: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def humaneval(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    with gzip.open(shared_data / "humaneval" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as all:
        text = all.read()
    path = tmp_path_factory.mktemp("humaneval") / "test.jsonl"
    path.write_text(text, encoding="utf-8")
    return str(path)


def scores(task: Any, rows: list[Row], completions: list[str]) -> list[Any]:
    reward = per_completion(task_grader(task))
    columns = {key: [row[key] for row in rows] for key in rows[0] if key not in ("id", "prompt")}
    columns.pop("completion", None)
    return reward([row["prompt"] for row in rows], completions, **columns)


@pytest.mark.parametrize("form", ["chat", "plain"])
def test_humaneval(humaneval: str, form: str):
    task = HumanEval(path=humaneval, format=form, execute_code=True, wall_s=60.0)
    rows = task.rows("test")
    assert len(rows) == len({row["id"] for row in rows}) == 164
    first = rows[0]
    assert first["entry_point"] == "has_close_elements"
    text = first["prompt"] if form == "plain" else first["prompt"][0]["content"]
    assert "def has_close_elements(" in text
    assert "assert" not in text
    some = rows[:4]
    assert scores(task, some, [row["completion"] for row in some]) == [1.0] * 4
    assert scores(task, some, ["    return None\n"] * 4) == [0.0] * 4
    assert task.rows("test", limit=3) == rows[:3]


@pytest.mark.parametrize("split", ["train", "validation"])
def test_humaneval_is_for_evaluation_only(humaneval: str, split: Any):
    with pytest.raises(ValueError, match="for evaluation only"):
        HumanEval(path=humaneval).rows(split)


def test_mbpp_in_its_original_form(tmp_path: Path):
    path = written(tmp_path / "mbpp.jsonl", ORIGINAL)
    task = Mbpp(path=path, execute_code=True, wall_s=60.0)
    rows = task.rows("test")
    text = rows[3]["prompt"][0]["content"]
    assert "add 3 to a number" in text
    assert "assert add(1) == 4" in text
    assert "math.floor" not in text
    assert scores(task, rows[:3], [row["completion"] for row in rows[:3]]) == [1.0] * 3
    assert scores(task, rows[:2], [rows[1]["completion"], rows[0]["completion"]]) == [0.0] * 2
    parts = {split: {row["id"] for row in task.rows(split)} for split in ("train", "validation")}
    assert not parts["train"] & parts["validation"]
    assert len(parts["train"] | parts["validation"]) == 40
    assert parts["validation"]
    both = Mbpp(path=path, shown_tests=2).rows("test")[3]["prompt"][0]["content"]
    assert "math.floor" in both


def test_mbpp_in_multipl_e_form(shared_data: Path):
    task = Mbpp(path=str(shared_data / "mbpp" / "mbpp-py_reflexion.jsonl"), execute_code=True)
    rows = task.rows("test")
    assert len(rows) == 397
    assert rows[0]["entry_point"] == "volume_cube"
    assert "27" not in rows[0]["prompt"][0]["content"]
    right, wrong = (f"```python\ndef volume_cube(l): return l ** {n}\n```" for n in (3, 2))
    assert scores(task, [rows[0]] * 2, [right, wrong]) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "t", "test_list": []}, "'test_list' is empty"),
        ({"text": "t", "test_list": "assert f(1)"}, "must be a list of texts"),
        ({"test_list": ["assert f(1)"]}, "'prompt' is missing"),
        ({"prompt": "def f():", "test": ""}, "'test' is ''"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, record: dict[str, Any], message: str):
    path = written(tmp_path / "mbpp.jsonl", [record])
    with pytest.raises(ValueError, match=message) as error:
        Mbpp(path=path).rows("test")
    assert "line 1" in str(error.value)


def test_bad_settings():
    with pytest.raises(ValueError, match="show at least 1"):
        Mbpp(shown_tests=0).rows("test")
    with pytest.raises(ValueError, match="there is nothing at"):
        HumanEval(path="no/such/file.jsonl").rows("test")
    assert TASKS["humaneval"] is HumanEval
    assert TASKS["mbpp"] is Mbpp


def test_an_evaluation_needs_the_permission_of_the_task():
    with pytest.raises(ValueError, match=r"task humaneval: .*execute_code: true") as error:
        task_grader(HumanEval())
    assert "programs that the model has written" in str(error.value)
    with pytest.raises(ValueError, match="wall_s is 0"):
        task_grader(HumanEval(execute_code=True, wall_s=0.0))
    assert task_grader(HumanEval(execute_code=True, wall_s=3.0)).keywords == {
        "execute_code": True,
        "allow_weak_isolation": False,
        "wall_s": 3,
    }
    for task in (Sudoku4(), Gsm8k()):
        assert callable(task_grader(task))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("unit_tests", "execute_code: true"),
        ({"name": "unit_tests", "execute_code": False}, "programs that the model has written"),
        ({"name": "unit_tests", "execute_code": True, "cpu_s": 0}, "cpu_s is 0"),
        ({"name": "unit_tests", "execute_code": "yes"}, "expected true or false"),
    ],
)
def test_a_recipe_must_allow_execution_by_name(entry: Any, message: str):
    problems: list[str] = []
    bound = bind_reward(entry, "rewards.0", Path(), lambda where, why: problems.append(why))
    assert bound is None
    assert len(problems) == 1
    assert message in problems[0]


def test_a_recipe_that_allows_execution():
    problems: list[str] = []
    entry = {"name": "unit_tests", "execute_code": True, "weight": 2.0, "wall_s": 60}
    bound = bind_reward(entry, "rewards.0", Path(), lambda where, why: problems.append(why))
    assert problems == []
    texts = ["def f(x): return x", "def f(x): return 0"]
    assert bound.function([""] * 2, texts, test_list=[["assert f(3) == 3"]] * 2) == [1.0, 0.0]
