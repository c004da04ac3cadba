import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewards import WorkerPool
from rewards.math_answer import grade_math

ROOT = Path(__file__).resolve().parents[2]
TOWER = "9^{9^{9^{9}}}"


@pytest.fixture
def echo() -> Iterator[WorkerPool]:
    pool = WorkerPool("operator:add", workers=2, limit=30)
    yield pool
    pool.close()


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def until_gone(pids: list[int], seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return [pid for pid in pids if is_running(pid)]


def processes_of(pool: WorkerPool, count: int) -> list[int]:
    """Its processes, once there are so many: a server may still be starting."""
    deadline = time.monotonic() + 10
    while len(pool.processes()) != count and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(pool.processes()) == count
    return pool.processes()


def test_results_come_in_the_order_of_the_calls(echo: WorkerPool):
    outcomes = echo.run([(i, 1000) for i in range(200)])
    assert [outcome.value for outcome in outcomes] == list(range(1000, 1200))
    assert echo.counts == {"ok": 200}
    processes_of(echo, 2 + 2 * 2)  # supervisor, template; guardian and server, twice
    assert all(0 < outcome.seconds < 10 for outcome in outcomes)


def test_nothing_is_started_before_the_first_call():
    pool = WorkerPool("operator:add")
    assert pool.processes() == []
    pool.close()


def test_a_failed_call_is_a_value_and_the_worker_lives_on(echo: WorkerPool):
    bad, good = echo.run([(1, "a"), (1, 2)])
    assert bad.status == "error"
    assert "TypeError" in bad.detail
    assert good.value == 3


def test_what_the_function_prints_is_not_taken_for_a_reply():
    pool = WorkerPool("builtins:print", workers=1, limit=30)
    assert [o.status for o in pool.run([('{"value": 1}',), ("x",)])] == ["ok", "ok"]
    assert pool.run([("y",)])[0].value is None
    pool.close()


def test_a_worker_that_ends_is_replaced():
    pool = WorkerPool("os:_exit", workers=1, limit=30)
    outcomes = pool.run([(3,), (4,)])
    assert [outcome.status for outcome in outcomes] == ["died", "died"]
    assert [o.detail for o in outcomes] == [f"its process ended with exit code {n}" for n in (3, 4)]
    pool.close()


def test_memory_is_limited():
    pool = WorkerPool("operator:mul", workers=1, limit=30, memory_gib=0.5)
    big, small = pool.run([("x", 2**30), ("x", 3)])
    assert (big.status, big.detail) == ("error", "MemoryError: ")
    assert small.value == "xxx"
    pool.close()


def test_a_late_call_is_killed_and_the_others_are_not_affected():
    pool = WorkerPool("time:sleep", workers=2, limit=1.0)
    started = time.monotonic()
    outcomes = pool.run([(0.01,), (60,), (0.01,), (0.01,), (0.01,)])
    assert [outcome.status for outcome in outcomes] == ["ok", "timeout", "ok", "ok", "ok"]
    assert time.monotonic() - started < 30
    assert "not done after 1 s" in outcomes[1].detail
    pool.close()


def test_a_supervisor_that_is_killed_leaves_no_pipe_and_no_zombie():
    pool = WorkerPool("operator:add", workers=1)
    assert pool.run([(1, 2)])[0].value == 3
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        supervisor = pool.processes()[0]
        os.kill(supervisor, signal.SIGKILL)
        while pool.run([(1, 2)])[0].status != "ok":  # until its end has been seen
            time.sleep(0.01)
        with pytest.raises(ProcessLookupError):
            os.kill(supervisor, 0)
    assert len(os.listdir("/dev/fd")) == before
    pool.close()


def test_waiting_in_the_queue_does_not_count():
    pool = WorkerPool("time:sleep", workers=1, limit=2.0)
    outcomes = pool.run([(0.6,)] * 4)  # 2.4 s in all, on one worker
    assert [outcome.status for outcome in outcomes] == ["ok"] * 4
    pool.close()


COMPUTES = f"""
from rewards.equivalence import equal
def compare(gold, answer):
    return 9**9**9**9 == gold if answer == {TOWER!r} else equal(gold, answer)
"""


def test_a_tower_of_powers_scores_zero_from_any_thread_and_no_signal_is_touched(tmp_path: Path):
    """`equal` refuses this one at sight; others that it does not know may take as long."""

    def outer_alarm(*_: object) -> None:
        raise AssertionError("the outer alarm rang")

    (tmp_path / "computes.py").write_text(COMPUTES)
    pool = WorkerPool(f"{tmp_path / 'computes.py'}:compare", workers=1, limit=4.0)
    previous = signal.signal(signal.SIGALRM, outer_alarm)
    signal.setitimer(signal.ITIMER_REAL, 500)
    scores: list[float | None] = []
    boxes = [f"\\boxed{{{answer}}}" for answer in (TOWER, "41+x", TOWER, "43+x")]
    try:
        thread = threading.Thread(
            target=lambda: scores.extend(grade_math(boxes, ["3", "x+41", "3", "x+41"], pool=pool))
        )
        thread.start()
        thread.join(60)
        assert scores == [0.0, 1.0, 0.0, 0.0]
        assert pool.counts == {"timeout": 1, "ok": 2}  # equal pairs are asked once
        assert signal.getsignal(signal.SIGALRM) is outer_alarm
        assert signal.setitimer(signal.ITIMER_REAL, 0)[0] > 400
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    workers = processes_of(pool, 6)  # supervisor, template, the worker and a spare one since then
    pool.close()
    assert until_gone(workers, 0) == []
    assert pool.processes() == []


def test_the_worker_outlives_the_thread_that_asked_first(echo: WorkerPool):
    thread = threading.Thread(target=lambda: echo.run([(1, 2)]))
    thread.start()
    thread.join()
    before = echo.processes()
    assert echo.run([(3, 4)])[0].value == 7
    assert before
    assert set(before) <= set(echo.processes())


def test_many_threads_share_a_pool(echo: WorkerPool):
    sums: dict[int, list[int]] = {}

    def ask(i: int) -> None:
        sums[i] = [outcome.value for outcome in echo.run([(i, j) for j in range(20)])]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == {i: [i + j for j in range(20)] for i in range(8)}
    processes_of(echo, 6)


def test_close_while_calls_are_under_way_and_use_again():
    pool = WorkerPool("time:sleep", workers=1, limit=300)
    outcomes: list[str] = []
    thread = threading.Thread(target=lambda: outcomes.extend(o.status for o in pool.run([(200,)])))
    thread.start()
    while not pool.processes():
        time.sleep(0.02)
    time.sleep(0.5)
    pool.close()
    thread.join(20)
    assert not thread.is_alive()
    assert outcomes == ["died"]
    assert pool.run([(0,)])[0].status == "ok"
    pool.close()


@pytest.mark.parametrize("how", ["exit", "kill", "kill while a call runs"])
def test_no_worker_outlives_its_parent(how: str):
    program = """
import os, signal, sys, threading
from rewards import WorkerPool
pool = WorkerPool("time:sleep", workers=2, limit=300)
pool.run([(0.2,), (0.2,)])
print(*pool.processes(), flush=True)
if sys.argv[1] == "kill while a call runs":
    threading.Thread(target=lambda: pool.run([(200,), (200,)]), daemon=True).start()
    threading.Event().wait(0.5)
if sys.argv[1] != "exit":
    os.kill(os.getpid(), signal.SIGKILL)
"""
    parent = subprocess.run(
        [sys.executable, "-c", program, how], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert parent.returncode == (0 if how == "exit" else -signal.SIGKILL), parent.stderr
    workers = list(map(int, parent.stdout.split()))
    assert workers
    assert until_gone(workers, 5) == []


def test_main_of_the_user_is_not_imported_again(tmp_path: Path):
    script = tmp_path / "train.py"
    script.write_text(
        "from rewards import WorkerPool\n"
        "print('started')\n"
        "pool = WorkerPool('operator:add')\n"
        "print(pool.run([(1, 2)])[0].value)\n"
    )
    (tmp_path / "operator.py").write_text("raise RuntimeError('this is not the real one')\n")
    run = subprocess.run(
        [sys.executable, "-P", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert (run.stdout, run.stderr) == ("started\n3\n", "")


def test_a_pool_used_after_a_fork_starts_workers_of_its_own():
    program = """
import os, warnings
from rewards import WorkerPool
pool = WorkerPool("operator:add", workers=2, limit=30)
assert pool.run([(1, 2)])[0].value == 3
mine = pool.processes()
warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what this is about
child = os.fork()
if child == 0:
    good = pool.run([(3, 4)])[0].value == 7 and not set(pool.processes()) & set(mine)
    pool.close()
    os._exit(0 if good else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert pool.run([(5, 6)])[0].value == 11
assert pool.processes() == mine
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=100)
    assert run.returncode == 0


def test_function_that_is_not_there_is_named():
    pool = WorkerPool("operator:ad", workers=1)
    with pytest.raises(RuntimeError, match=r"operator:ad did not start: AttributeError.*'ad'"):
        pool.run([(1, 2)])
    pool.close()


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"limit": 0}, {"memory_gib": -1}])
def test_numbers_must_be_positive(wrong: dict[str, int]):
    with pytest.raises(ValueError, match="must be positive"):
        WorkerPool("operator:add", **wrong)
