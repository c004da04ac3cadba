"""Two processes under DDP, ZeRO-2 and ZeRO-3: the same losses, whatever is partitioned."""

from pathlib import Path
from typing import Any

import pytest

from rl.models.loading import load, save_native
from rl.models.source import ModelSource

from .launch import launch

CONFIG = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 64, "initializer_range": 0.3,
}  # fmt: skip
REWARD = '''
import rl.models.denoiser

rl.models.denoiser.LOGITS_PER_CHUNK = 400  # several chunks a forward, as with a real vocabulary


def graded(prompts, completions, **_):
    """Many values; groups of some prompts are equal, so that ranks keep unequal numbers of rows."""
    return [
        1.0 if prompt.count("0") % 2 else sum(ord(c) % 7 for c in text) / 48
        for prompt, text in zip(prompts, completions)
    ]
'''
RECIPE = """
model: {{name: bert, path: {model}}}
task: {{name: free_sudoku4, train_size: 256}}
rewards: ["{reward}:graded"]
sampler: {{name: low_confidence, steps: 4}}
estimator: {{name: elbo, samples: 2}}
objective: {{name: clipped, beta: 0.1, kl: k2}}
trainer:
  max_steps: 3
  num_generations: 4
  num_iterations: 2
  per_device_train_batch_size: 4
  gradient_accumulation_steps: 2
  max_completion_length: 16
  learning_rate: 1.0e-3
  save_strategy: "no"
"""
# views are steps: 4 at most on one rank in the first rollout, and 5 on the other
STEPS = [
    "sampler={name: threshold, steps: 8, threshold: 0.03}",
    "estimator={name: trajectory, segments: null}",
]
CASES = {"full": [], "lora": ["model.lora={r: 4, alpha: 8}", *STEPS]}
# several forwards and recomputed layers in one backward pass
SPLIT = ["trainer.gradient_checkpointing=true", "trainer.scoring_batch_size=3"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strategies")
    loaded = load(ModelSource(name="bert", config=CONFIG), training=False)
    save_native(loaded.model, loaded.tokenizer, folder / "model")
    (folder / "reward.py").write_text(REWARD)
    path = folder / "recipe.yaml"
    path.write_text(RECIPE.format(model=folder / "model", reward=folder / "reward.py"))
    return path


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, recipe: Path, tmp_path_factory: Any) -> Any:
    """A way of fine-tuning, with what plain DDP makes of it, view by view."""
    overrides = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    return overrides, launch("ddp", folder, recipe, *overrides)


@pytest.mark.parametrize("strategy", ["zero2", "zero3"])
def test_losses_equal_ddp(strategy: str, case: Any, recipe: Path, tmp_path: Path) -> None:
    overrides, expected = case
    got = launch(strategy, tmp_path, recipe, *overrides, *(SPLIT if strategy == "zero3" else ()))
    assert len(got) == len(expected) == 3
    for a, b in zip(got, expected, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=1e-4)
        assert a["reward"] == b["reward"] if "reward" in b else "reward" not in a
    assert expected[1]["kl"] > 0, "the reference policy moved along"


def test_two_processes_equal_one(case: Any, recipe: Path, tmp_path: Path) -> None:
    """Which runs all views in one graph."""
    overrides, expected = case
    one = launch(
        "cpu", tmp_path, recipe, *overrides, "trainer.per_device_train_batch_size=8",
        "trainer.backward=joint", processes=1,
    )  # fmt: skip
    for a, b in zip(one, expected, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=1e-4)
