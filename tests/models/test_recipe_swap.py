"""The 8B recipe with another family's tiny checkpoint: name and path are what changes."""

import json
from pathlib import Path

import pytest
import yaml

import rl.train
from rl.models.loading import family_of
from rl.models.tiny_checkpoint import make_tiny_checkpoint

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "llada_8b_gsm8k_mean_field.yaml"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "steps"), [("dream", 4), ("llada_moe", 4), ("sdar", 8)])
def test_two_optimizer_steps(name: str, steps: int, tmp_path: Path, shared_data: Path) -> None:
    """Shifted, with experts, and in blocks of 4. The rest makes it fit a CPU and a test."""
    make_tiny_checkpoint(name, tmp_path / name)
    lines = (shared_data / "gsm8k" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "train.jsonl").write_text("\n".join(lines[:64]), encoding="utf-8")
    overrides = [
        f"model.name={name}",
        f"model.path={tmp_path / name}",
        "model.load_in_4bit=false",  # bitsandbytes needs a GPU
        f"task.path={tmp_path / 'train.jsonl'}",
        f"trainer.output_dir={tmp_path / 'run'}",
        "trainer.max_steps=2",
        "trainer.num_iterations=2",  # passes over a rollout, 12 in the recipe
        "trainer.max_completion_length=32",  # one block of the sampler
        f"sampler.steps={steps}",
    ]
    assert rl.train.main([str(RECIPE), *overrides]) == 0
    history = json.loads((tmp_path / "run" / "log_history.json").read_text())
    logged = [entry for entry in history if "grad_norm" in entry]
    assert len(logged) == 2
    assert logged[0]["ratio/mean"] == pytest.approx(1.0, abs=1e-3)
    names = [reward["name"] for reward in yaml.safe_load(RECIPE.read_text())["rewards"]]
    assert {f"rewards/{reward}" for reward in names} <= set(logged[0])
    assert (tmp_path / "run" / "adapter_config.json").is_file()
    assert family_of(str(tmp_path / "run")) == name
