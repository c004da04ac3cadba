"""Fixtures of the model tests: reference checkpoints, and folders made on the spot."""

import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest

from rl.models.tiny_checkpoint import make_tiny_checkpoint


@pytest.fixture(scope="session")
def shared_fixtures() -> Path:
    """Folder with hub_layout/: random weights, and the logits of the hub's own modelling code."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "fixtures"
    folder = Path(os.environ.get("UNMASK_FIXTURES", beside))
    assert (folder / "hub_layout").is_dir(), f"{folder} has no hub_layout/; set UNMASK_FIXTURES"
    return folder


@pytest.fixture
def llada(tmp_path: Path) -> Path:
    return make_tiny_checkpoint("llada", tmp_path / "llada", seed=1)


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return make_tiny_checkpoint("bert", tmp_path / "bert", seed=1)
