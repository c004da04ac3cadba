"""Shared fixtures. The benchmark data is not part of the repository: it lies beside it."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the benchmark files; its README says where they come from."""
    folder = Path(os.environ.get("UNMASK_DATA", BESIDE))
    assert (folder / "gsm8k").is_dir(), (
        f"the benchmark data is not at {folder}; set UNMASK_DATA to the folder that holds gsm8k/, "
        f"math500/, countdown/ and sudoku4x4/"
    )
    return folder


@pytest.fixture(scope="session")
def shared_cases(shared_data: Path) -> Path:
    """The folder with the reward cases, beside the data."""
    folder = shared_data.parent / "cases"
    assert folder.is_dir(), f"the reward cases are not at {folder}, beside the benchmark data"
    return folder
