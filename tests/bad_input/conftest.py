"""A folder with small recipes and a small model, and the command lines to run in it."""

import os
import shutil
from pathlib import Path

import pytest

import rl.evaluate
import rl.sft
import rl.train
from rl.models.tiny_checkpoint import make_tiny_checkpoint

RECIPE = """\
model: {name: roberta_prelayernorm, path: tiny}
task: {name: free_sudoku4, train_size: 16, test_size: 8, validation_size: 4}
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
SFT = """\
kind: sft
model: {name: roberta_prelayernorm, path: tiny}
task: {name: free_sudoku4, train_size: 16}
sft: {pad_to: 16}
trainer: {output_dir: out, max_steps: 2, per_device_train_batch_size: 8}
"""
REWARDS = """\
import sys
def short(prompts, completions, **columns): return [1.0]
def raises(completion, **columns): raise KeyError("foo")
def nan(completion, **columns): return float("nan")
def text(completion, **columns): return "good"
def leaves(completion, **columns): sys.exit(3)
def interrupts(completion, **columns): raise KeyboardInterrupt
"""
MAIN = {"train": rl.train.main, "sft": rl.sft.main, "evaluate": rl.evaluate.main}


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_checkpoint("roberta_prelayernorm", tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture
def here(tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    shutil.copytree(checkpoint, "tiny")
    Path("R.yaml").write_text(RECIPE)
    Path("S.yaml").write_text(SFT)
    Path("r.py").write_text(REWARDS)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], command: str, *arguments: str, code: int = 2) -> str:
    """What the command says on stderr before it ends with `code`."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        MAIN[command](arguments)
    said = capsys.readouterr().err
    assert ended.value.code == code, said
    assert "Traceback" not in said
    return said.replace(os.getcwd(), "HERE").removeprefix("error: ").strip()
