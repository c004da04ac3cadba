from collections.abc import Iterator

import pytest

from rewards import WorkerPool, sandbox


@pytest.fixture(scope="session")
def math_pool() -> Iterator[WorkerPool]:
    """Patient workers: for pairs that must be decided on a busy machine too."""
    pool = WorkerPool("rewards.equivalence:equal", workers=1, limit=60)
    yield pool
    pool.close()


@pytest.fixture(params=[None, "fallback"], ids=["namespaces", "fallback"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both ways to isolate; a machine without namespaces tests the second one twice."""
    monkeypatch.setattr(sandbox, "_forced", request.param)
    yield request.param or "namespaces"
    sandbox.close()
