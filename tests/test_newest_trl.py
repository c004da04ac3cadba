"""Two optimizer steps with the newest TRL that pyproject.toml allows, whatever is installed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rl.models.tiny_checkpoint import make_tiny_checkpoint

ROOT = Path(__file__).parents[1]
RECIPE = """\
model: {name: roberta_prelayernorm, path: tiny}
task: {name: free_sudoku4, train_size: 16}
rewards: [sudoku]
sampler: {name: low_confidence, steps: 4}
estimator: mean_field
objective: clipped
trainer:
  output_dir: out
  max_steps: 2
  per_device_train_batch_size: 8
  num_generations: 4
  max_completion_length: 16
"""
PROGRAM = """\
import sys, trl
import rl.train
print("TRL", trl.__version__, trl.__file__)
sys.exit(rl.train.main(["R.yaml"]))
"""


@pytest.mark.slow
def test_two_steps_with_the_newest_trl(tmp_path: Path) -> None:
    window = re.search(r'"(trl[^"]+)"', (ROOT / "pyproject.toml").read_text())
    assert window
    newest = tmp_path / "newest"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    subprocess.run([*install, "--target", str(newest), window[1]], check=True)
    (installed,) = newest.glob("trl-*.dist-info")
    version = installed.name.removeprefix("trl-").removesuffix(".dist-info")

    make_tiny_checkpoint("roberta_prelayernorm", tmp_path / "tiny")
    (tmp_path / "R.yaml").write_text(RECIPE)
    path = os.pathsep.join((str(newest), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"TRL {version} {newest}" in done.stdout
    history = json.loads((tmp_path / "out/log_history.json").read_text())
    assert [entry["step"] for entry in history if "loss" in entry] == [1, 2]
