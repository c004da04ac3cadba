"""The main job, end to end, exactly as `scripts/quickstart.sh` runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_quickstart_reaches_what_the_readme_promises(tmp_path: Path) -> None:
    out = tmp_path / "quickstart"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "quickstart.py"), "--out", str(out)],
        env=environment, capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    summary = json.loads((out / "summary.json").read_text())
    assert summary["heldout"] >= 1000
    assert summary["overlap"] == 0
    assert summary["peak_memory_mb"] < 2000
    trained = str(summary["trained_steps"])
    before, after = summary["accuracy"]["before"], summary["accuracy"]["after"]
    assert set(before) == set(after) == {"4", "8", "16"}
    assert after[trained] - before[trained] >= 0.12
    assert after["16"] - before["16"] >= -0.04
    assert (out / "report.png").stat().st_size > 20_000
    assert (out / "rl" / "model.safetensors").is_file()
    assert any((out / "rl" / "completions").iterdir())
    assert "the picture:" in done.stdout
