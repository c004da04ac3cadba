from collections.abc import Iterator

import pytest

from rewards import WorkerPool


@pytest.fixture(scope="session")
def math_pool() -> Iterator[WorkerPool]:
    """Patient workers: for pairs that must be decided on a busy machine too."""
    pool = WorkerPool("rewards.equivalence:equal", workers=1, limit=60)
    yield pool
    pool.close()
