"""A step of training from a recipe whose rewards hang, crash, give NaN and give components."""

import json
from pathlib import Path

import pytest

from rl.models.tiny_checkpoint import make_tiny_checkpoint
from rl.recipe import RecipeError, load_recipe

TRAINED = """
import ctypes, time
def kind(text): return 3 if set(text) <= set("1234") else sum(map(ord, text)) % 4
def hanging(completion): return time.sleep(1000) if kind(completion) == 0 else 1.0
def crashing(completion): return ctypes.string_at(0) if kind(completion) == 1 else 1.0
def nan(completion): return float("nan") if kind(completion) == 2 else 1.0
def parts(completion):
    return {"low": float(kind(completion)), "length": len(completion) / 100, "not": None}
"""
RECIPE = """
model: {name: roberta_prelayernorm, path: tiny}
task: {name: free_sudoku4, train_size: 16, test_size: 8, validation_size: 4}
rewards:
  - {name: "mine.py:hanging", timeout: 0.5, weight: 0.5}
  - {name: "mine.py:crashing"}
  - {name: "mine.py:nan"}
  - {name: "mine.py:parts", weight: 2}
sampler: {name: low_confidence, steps: 4, temperature: 1.0}
estimator: mean_field
objective: clipped
trainer: {output_dir: out, max_steps: 1, per_device_train_batch_size: 16, num_generations: 8,
          max_completion_length: 16, logging_steps: 1, report_to: none}
"""


@pytest.mark.slow
def test_a_step_of_training_with_rewards_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts in the log are those of the completions that were written."""
    from rl.train import train

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    make_tiny_checkpoint("roberta_prelayernorm", tmp_path / "tiny")
    (tmp_path / "mine.py").write_text(TRAINED)
    (tmp_path / "R.yaml").write_text(RECIPE)
    train(load_recipe("R.yaml"))
    (log,) = [e for e in json.loads(Path("out/log_history.json").read_text()) if "reward" in e]
    lines = [
        json.loads(x) for p in Path("out/completions").iterdir() for x in p.read_text().splitlines()
    ]
    texts = [line["completion"] for line in lines]
    kinds = [3 if set(text) <= set("1234") else sum(map(ord, text)) % 4 for text in texts]
    assert len(lines) == 16
    assert {*kinds} >= {0, 1, 2}, "the test needs failures"
    for name, kind, low in (
        ("hanging", "timeouts", 0), ("crashing", "crashes", 1), ("nan", "exceptions", 2),
    ):  # fmt: skip
        assert log[f"rewards/{name}/{kind}"] == pytest.approx(kinds.count(low) / 16)
        assert log[f"rewards/{name}/errors"] == kinds.count(low)
        assert log[f"rewards/{name}/not_graded"] == pytest.approx(kinds.count(low) / 16)
        given = [line["rewards"][name] for line in lines]
        assert given == [None if k == low else 1.0 for k in kinds]
    assert log["rewards/parts/low"] == pytest.approx(sum(kinds) / 16)
    assert log["rewards/parts/errors"] == 0
    assert "rewards/parts/not" not in log


def test_a_recipe_tells_all_mistakes_at_once(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TRAINED.replace("def nan", "def nun"))
    bad = RECIPE.replace("mine.py:hanging", "mine.py:nowhere").replace("weight: 2", "wait: 2")
    (tmp_path / "R.yaml").write_text(bad.replace("mine.py:crashing", "none.py:f"))
    with pytest.raises(RecipeError) as error:
        load_recipe(tmp_path / "R.yaml")
    told = [p.partition(" rewards.")[2] for p in error.value.problems]
    assert [text[:2] for text in told] == ["0:", "1:", "2:", "3."]
