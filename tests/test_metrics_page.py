"""docs/metrics.md names what a real step logs, and all of it."""

import json
import re
from pathlib import Path

import rl.train
from rl.models.tiny_checkpoint import make_tiny_checkpoint

PAGE = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text(encoding="utf-8")
RECIPE = """\
model: {name: roberta_prelayernorm, path: model}
task: {name: sudoku4, train_size: 16, test_size: 8, validation_size: 4}
rewards: [sudoku, "parts.py:parts"]
sampler: {name: low_confidence, steps: 4}
estimator: {name: trajectory, segments: null}
objective: {name: clipped, beta: 0.1}
trainer: {output_dir: out, max_steps: 1, per_device_train_batch_size: 8, num_generations: 4,
          max_completion_length: 16, num_iterations: 2}
"""
PARTS = (
    "def parts(completion): return {'long': len(completion) / 9, 'ones': completion.count('1')}\n"
)
OF_TRANSFORMERS = {"epoch", "step", "loss", "grad_norm", "learning_rate"}


def named() -> set[str]:
    """Patterns of the page's first columns; `_50` stands for the name before it with `_25`."""
    found: set[str] = set()
    for row in re.findall(r"^\| (`[^|]*) \|", PAGE, re.M):
        for name in re.findall(r"`([^`]+)`", row):
            if name.startswith("_"):
                found |= {re.sub(r"_25", name, known) for known in found if "_25" in known}
            else:
                found.add(name)
    return found


def test_the_page_names_what_a_step_logs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_tiny_checkpoint("roberta_prelayernorm", tmp_path / "model")
    Path("parts.py").write_text(PARTS)
    Path("R.yaml").write_text(RECIPE)
    assert rl.train.main(["R.yaml"]) == 0
    history = json.loads(Path("out/log_history.json").read_text())
    logged = {name for entry in history if "reward" in entry for name in entry} - OF_TRANSFORMERS
    assert len(logged) > 30
    patterns = [re.sub("NAME|COMPONENT", r"\\w+", name) for name in named()]
    unnamed = [name for name in logged if not any(re.fullmatch(p, name) for p in patterns)]
    assert sorted(unnamed) == []
