import json

import pytest

from rewards import reasoning_gym
from rl.tasks import ReasoningGym, assert_disjoint

pytest.importorskip("reasoning_gym")


@pytest.mark.slow
@pytest.mark.parametrize(
    "dataset",
    ["chain_sum", "countdown", "gsm_symbolic", "knights_knaves", "mini_sudoku", "simple_equations",
     "sudoku", "zebra_puzzles", "basic_arithmetic", "products"],
)  # fmt: skip
def test_its_own_answers_are_right(dataset: str):
    task = ReasoningGym(dataset=dataset, test_size=5)
    rows = task.rows("test")
    assert len(rows) == 5
    for row in rows:
        columns = {key: row[key] for key in ("metadata", "answer", "question")}
        assert json.loads(row["metadata"])["source_dataset"] == dataset
        assert row["question"].strip() in row["prompt"][0]["content"]
        assert reasoning_gym(row["completion"], **columns) == 1.0
        near = row["completion"].replace("\n</answer>", "0\n</answer>")
        assert reasoning_gym(near, **columns) == 0.0


def test_splits_are_disjoint_whatever_the_seed_and_repeat():
    task = ReasoningGym(dataset="chain_sum", test_size=40, validation_size=40, train_size=60,
                        config={"max_terms": 2, "max_digits": 1})  # fmt: skip
    test, validation = task.rows("test", seed=3), task.rows("validation", seed=4)
    assert (len(test), len(validation)) == (40, 40)
    assert test == task.rows("test")
    assert_disjoint(validation, test)
    train = {}
    for seed in range(4):
        train[seed] = task.rows("train", seed=seed)
        assert len(train[seed]) == len({row["question"] for row in train[seed]}) == 60
        assert_disjoint(train[seed], test)
        assert_disjoint(train[seed], validation)
    assert train[0] != train[1]
    assert task.rows("train", limit=20, seed=1) == train[1][:20]
    assert task.rows("test", limit=9) == test[:9]
    assert task.rows("test", limit=100) == test  # held out is what the sizes say, not more


def test_overlap_would_happen_without_care():
    """The questions of the held-out stretches do come up in training's: they are left out."""
    config = {"max_terms": 2, "max_digits": 1}
    careless = ReasoningGym(dataset="chain_sum", test_size=0, validation_size=0, config=config)
    careful = ReasoningGym(dataset="chain_sum", test_size=40, validation_size=0, config=config)
    held = {row["question"] for row in careful.rows("test")}
    assert held & {row["question"] for row in careless.rows("train", limit=100)}
    assert not held & {row["question"] for row in careful.rows("train", limit=100)}


def test_config_reaches_the_data_set():
    rows = ReasoningGym(dataset="mini_sudoku", config={"min_empty": 3, "max_empty": 3}).rows(
        "test", limit=3
    )
    for row in rows:
        puzzle = json.loads(row["metadata"])["puzzle"]
        assert sum(cell == 0 for line in puzzle for cell in line) == 3


def test_too_few_questions():
    task = ReasoningGym(dataset="chain_sum", test_size=0, validation_size=0,
                        config={"min_terms": 2, "max_terms": 2, "max_digits": 1})  # fmt: skip
    with pytest.raises(ValueError, match="too few for 5000 rows"):
        task.rows("train")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dataset": "mini_sudku"}, "did you mean 'mini_sudoku'"),
        ({"dataset": "composite"}, r"reasoning-gym's.* Known: .*complex_arithmetic, count"),
        ({"test_size": -1}, "numbers of rows"),
        ({"config": {"seed": 3}}, "config sets seed"),
        ({"config": {"min_empty": 9, "max_empty": 3}}, "refuses config"),
        ({"config": {"empties": 3}}, "refuses config"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        ReasoningGym(**settings).validate()


def test_without_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'unmask-rl\[reasoning\]'"):
        ReasoningGym().validate()
