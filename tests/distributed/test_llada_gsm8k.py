"""The 8B recipe with a tiny LLaDA checkpoint on real GSM8K, on two processes."""

from pathlib import Path

import pytest
import yaml

from rl.models.tiny_checkpoint import make_tiny_checkpoint

from .launch import ROOT, launch

RECIPE = ROOT / "recipes" / "llada_8b_gsm8k_mean_field.yaml"


@pytest.mark.slow
def test_three_optimizer_steps_of_the_8b_recipe(tmp_path: Path, shared_data: Path) -> None:
    """Estimator, objective, LoRA and rewards are the recipe's own."""
    make_tiny_checkpoint("llada", tmp_path / "llada", seed=0)
    history = launch(
        "cpu",
        tmp_path,
        RECIPE,
        f"model.path={tmp_path / 'llada'}",
        "model.load_in_4bit=false",  # bitsandbytes needs a GPU
        f"task.path={shared_data / 'gsm8k' / 'train.jsonl'}",
        "trainer.max_steps=3",
        "trainer.max_completion_length=64",
        "sampler.steps=16",
    )
    assert len(history) == 3
    names = [reward["name"] for reward in yaml.safe_load(RECIPE.read_text())["rewards"]]
    assert {f"rewards/{name}" for name in names} <= set(history[0])
    assert history[0]["ratio/mean"] == pytest.approx(1.0, abs=1e-3)
    assert all(entry["loss"] == entry["loss"] for entry in history)
