"""A scheme that writes again what failed, on two processes of which one has more to write."""

from pathlib import Path

import pytest

from rl.models.loading import load, save_native
from rl.models.source import ModelSource

from .launch import launch
from .test_strategies import CONFIG

REWARD = """
def placed(prompts, completions, **_):
    '''Some prompts are hopeless, so that ranks have unequal numbers of failed groups.'''
    return [
        0.0 if prompt.count("0") % 3 == 0 else float(sum(ord(c) % 7 for c in text) > 44)
        for prompt, text in zip(prompts, completions)
    ]
"""
RECIPE = """
model: {{name: bert, path: {folder}/model}}
task: {{name: free_sudoku4, train_size: 256}}
rewards: ["{folder}/reward.py:placed"]
sampler: {{name: random, steps: 4, temperature: 2.0}}
rollout: {{name: inpaint, min_chunk: 2, max_chunk: 3}}
estimator: {{name: mean_field}}
objective: {{name: clipped, aggregation: constant}}
advantage: {{scale: none}}
trainer:
  max_steps: 2
  num_generations: 4
  max_completion_length: 16
  learning_rate: 1.0e-3
  save_strategy: "no"
"""
pytestmark = pytest.mark.slow


def test_hints_on_two_processes_equal_those_on_one(tmp_path: Path) -> None:
    loaded = load(ModelSource(name="bert", config=CONFIG), training=False)
    save_native(loaded.model, loaded.tokenizer, tmp_path / "model")
    (tmp_path / "reward.py").write_text(REWARD)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE.format(folder=tmp_path))
    one, two = (
        launch(
            "cpu", tmp_path, recipe, f"trainer.per_device_train_batch_size={size}",
            processes=processes,
        )
        for processes, size in ((1, 12), (2, 6))  # the second of three groups is on both
    )  # fmt: skip
    assert 0 < one[0]["inpaint/failed"] < 1
    assert any(entry["grad_norm"] > 0 for entry in one)
    for a, b in zip(one, two, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-6)
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=1e-4, abs=1e-7)
        for key in ("reward", "inpaint/failed", "inpaint/replaced"):
            assert a[key] == b[key]
