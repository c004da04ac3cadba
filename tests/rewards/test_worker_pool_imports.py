"""What a worker imports: failures are told, threads are no harm, neighbours are found."""

import os
from pathlib import Path
from typing import Any

import pytest

from rewards import WorkerPool
from tests.rewards.test_worker_pool import until_gone


def importing(tmp_path: Path, code: str, **options: Any) -> WorkerPool:
    (tmp_path / "plug.py").write_text(code + "\ndef act(x): return x + 1\n")
    return WorkerPool(f"{tmp_path / 'plug.py'}:act", limit=30, **options)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import time; time.sleep(1000)", "its import was not done after 1 s"),
        ("import os; os._exit(3)", "it ended with exit code 3"),
        ("import os; os.close(3); import time; time.sleep(1000)", "it ended with exit code -9"),
        ("import sys; sys.exit('bye')", "SystemExit: bye"),
        ("raise ValueError('x')", "ValueError: x"),
        ("import not_there", "ModuleNotFoundError: No module named 'not_there'"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "it ended with exit code -11"),
    ],
)
def test_an_import_that_fails_is_told(tmp_path: Path, code: str, why: str) -> None:
    pool = importing(tmp_path, code, start_limit=1.0)
    for _ in range(2):
        with pytest.raises(RuntimeError) as error:
            pool.run([(1,)])
        assert f"did not start: {why}" in str(error.value)
    pool.close()


THREAD = (
    "import threading, time; threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()"
)
CHILD = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1)"
)


@pytest.mark.parametrize("code", [THREAD, CHILD], ids=["thread", "child"])
def test_what_cannot_be_forked_is_imported_by_every_worker(tmp_path: Path, code: str) -> None:
    more = "\ndef work(x):\n    import os\n    return x + 1 if x else os._exit(5)"
    (tmp_path / "plug.py").write_text(code + more)
    pool = WorkerPool(f"{tmp_path / 'plug.py'}:work", limit=30)
    outcomes = pool.run([(1,), (0,), (2,), (3,), (0,), (4,)])
    assert [outcome.value for outcome in outcomes] == [2, None, 3, 4, None, 5]
    assert outcomes[1].detail == "its process ended with exit code 5"
    everything = pool.processes()
    pool.close()
    assert until_gone(everything, 5) == []


def test_a_file_imports_its_neighbours_and_nothing_of_python_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "near.py").write_text("ONE = 1\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('not the real one')\n")
    pool = importing(tmp_path, "import json, near; assert near.ONE == 1 and json.dumps")
    assert pool.run([(1,)])[0].value == 2
    pool.close()


def test_what_the_trainer_can_import_a_worker_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_on_sys_path.py").write_text("def act(x): return x + 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    pool = WorkerPool("only_on_sys_path:act", limit=30)
    assert pool.run([(1,)])[0].value == 2
    pool.close()


def test_a_worker_is_no_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RUN_ID"):
        monkeypatch.setenv(name, "1")
    pool = WorkerPool("os:getenv", limit=30)
    outcomes = pool.run([("RANK",), ("WORLD_SIZE",), ("TORCHELASTIC_RUN_ID",), ("PATH",)])
    assert [outcome.value for outcome in outcomes] == [None, None, None, os.environ["PATH"]]
    pool.close()
