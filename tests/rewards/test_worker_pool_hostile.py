"""Calls that hang, crash, breed and lie: none changes another's result, none is left over."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewards import WorkerPool
from tests.rewards.test_worker_pool import ROOT, is_running, until_gone

CODE = """
import ctypes, json, mmap, os, signal, subprocess, sys, threading, time

def act(what, note=None):
    if isinstance(what, int):
        return what + 1
    return globals()[what](note)

def hang(_): time.sleep(1000)
def spin(_):
    while True: pass
def power(_): return 9 ** 9 ** 9
def segfault(_): ctypes.string_at(0)
def kill_parent(_):
    os.kill(os.getppid(), signal.SIGKILL); time.sleep(1000)
def kill_grandparent(_):
    with open(f"/proc/{os.getppid()}/stat") as stat: fields = stat.read().rpartition(")")[2].split()
    os.kill(int(fields[1]), signal.SIGKILL); time.sleep(1000)
def kill_self(_): os.kill(os.getpid(), signal.SIGKILL)
def leave(_): sys.exit(0)
def interrupt(_): raise KeyboardInterrupt
def hog(_): return len(bytearray(2**31))
def hog_mapped(_): return len(mmap.mmap(-1, 2**31))
def hog_slowly(_):
    kept = []
    while True: kept.append("x" * 2**26)
def deep(_):
    value = []
    for _ in range(100_000): value = [value]
    return value
def huge(_): return "x" * (65 * 2**20)
def nothing_of_json(_): return {1, 2}
def lie(_):
    from rewards.worker_frames import packed, REPLY
    for number in range(1000): os.write(3, packed(REPLY, number, b'{"status": "ok", "value": 666}'))
def lie_of_ages(_):
    from rewards.worker_frames import packed, REPLY
    reply = json.dumps({"status": "ok", "value": 1, "detail": "", "seconds": 10**400}).encode()
    at = sys._getframe()
    while not hasattr(at.f_locals.get("frame"), "number"): at = at.f_back
    os.write(3, packed(REPLY, at.f_locals["frame"].number, reply))
def as_if_of_itself(payload):
    from rewards.worker_frames import packed, STATUS
    os.write(3, packed(STATUS, 0, payload)); time.sleep(1000)
def status_of_no_json(_): as_if_of_itself(b"{")
def status_of_nothing(_): as_if_of_itself(b"[]")
def status_failed(_): as_if_of_itself(b'{"error": "cannot be imported"}')
def status_ready(_): as_if_of_itself(b'{"ready": true, "guardian": 1, "server": 1}')
def garbage(_): os.write(3, b"\\xff" * 100); time.sleep(1000)
def raw(_): os.write(3, b"R" + bytes(8) + b"\\xff" * 4 + b"{" * 1000); time.sleep(1000)
def noise(_): os.write(1, b'{"value": 1}' * 10**5); sys.stderr.write("x" * 10**6)
class Rude(Exception):
    def __str__(self): raise RuntimeError("no")
def rude(_): raise Rude
def lasting(note):
    script = (
        "import os, sys, time; os.setsid(); open(sys.argv[1], 'a').write(f'{os.getpid()} ');"
        "time.sleep(1000)"
    )
    subprocess.Popen([sys.executable, "-c", script, note])
    while not os.path.exists(note) or not open(note).read(): time.sleep(0.01)
def child_in_a_session(note): lasting(note); time.sleep(1000)
def daemon(note):
    if os.fork() == 0:
        lasting(note); os._exit(0)
    os.wait(); time.sleep(1000)
def breed(note):
    for _ in range(6): os.fork()
    open(note, "a").write(f"{os.getpid()} ")
    time.sleep(1000)
def as_argument(value): return type(value).__name__
def alarm_of_its_own(_):
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("mine")))
    signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(10)
"""


@pytest.fixture
def target(tmp_path: Path) -> str:
    (tmp_path / "hostile.py").write_text(CODE)
    return f"{tmp_path / 'hostile.py'}:act"


@pytest.fixture
def pool(target: str) -> Iterator[WorkerPool]:
    pool = WorkerPool(target, workers=2, limit=3.0, memory_gib=0.5)
    yield pool
    everything = pool.processes()
    pool.close()
    assert until_gone(everything, 5) == []


KINDS = {
    "hang": ("timeout", "not done after 3 s"),
    "spin": ("timeout", "not done after 3 s"),
    "power": ("timeout", "not done after 3 s"),
    "segfault": ("died", "its process ended with exit code -11"),
    "kill_parent": ("died", "its process ended"),
    "kill_grandparent": ("died", "its process ended"),
    "kill_self": ("died", "its process ended with exit code -9"),
    "leave": ("error", "SystemExit: 0"),
    "interrupt": ("error", "KeyboardInterrupt: "),
    "hog": ("error", "MemoryError: "),
    "hog_mapped": ("error", "OSError: [Errno 12] Cannot allocate memory"),
    "hog_slowly": ("error", "MemoryError: "),
    "deep": ("error", "RecursionError: "),
    "huge": ("error", "ValueError: the result has 68157"),
    "nothing_of_json": ("error", "TypeError: Object of type set is not JSON serializable"),
    "garbage": ("died", "its process ended by itself"),
    "raw": ("died", "its process ended by itself"),
    "lie_of_ages": ("died", "its process sent no valid reply: int"),
    "status_of_no_json": ("died", "its process ended by itself"),
    "status_of_nothing": ("died", "its process ended by itself"),
    "status_failed": ("died", "its process ended by itself"),
    "status_ready": ("died", "its process ended by itself"),
    "noise": ("ok", ""),
    "rude": ("error", "Rude: (its message raised RuntimeError)"),
    "alarm_of_its_own": ("error", "TimeoutError: mine"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_other_result_changes(pool: WorkerPool, kind: str) -> None:
    calls: list[tuple[Any, ...]] = [(i,) for i in range(30)]
    calls[10:10] = [(kind,)]
    calls[21:21] = [(kind,)]
    status, detail = KINDS[kind]
    outcomes = pool.run(calls, limit=None if status in ("timeout", "died") else 60.0)
    for at in (10, 21):
        assert (outcomes[at].status, outcomes[at].detail[: len(detail)]) == (status, detail)
    others = [outcome.value for at, outcome in enumerate(outcomes) if at not in (10, 21)]
    assert others == list(range(1, 31))


def test_forged_replies_reach_no_other_call(pool: WorkerPool) -> None:
    """A worker can lie about its own call only: replies to calls it does not have are dropped."""
    outcomes = pool.run([(1,), ("lie",), *[(i,) for i in range(40)]])
    assert [outcome.value for outcome in outcomes[2:]] == list(range(1, 41))
    assert (outcomes[0].value, outcomes[1].value) == (2, None)  # it cannot guess a number


def running(note: Path) -> list[int]:
    return [pid for pid in map(int, note.read_text().split()) if is_running(pid)]


@pytest.mark.parametrize("kind", ["child_in_a_session", "daemon", "breed"])
def test_what_an_overrun_call_started_dies_with_it(
    pool: WorkerPool, tmp_path: Path, kind: str
) -> None:
    note = tmp_path / "pids"
    outcomes = pool.run([(kind, str(note)), (1,)])
    assert [outcome.status for outcome in outcomes] == ["timeout", "ok"]
    started = list(map(int, note.read_text().split()))
    assert len(started) == (64 if kind == "breed" else 1)
    assert until_gone(started, 5) == []


def test_what_a_call_left_behind_dies_with_the_pool(target: str, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    pool = WorkerPool(target, workers=1, limit=30)
    assert pool.run([("lasting", str(note))])[0].status == "ok"
    assert len(running(note)) == 1
    pool.close()
    assert running(note) == []


PROGRAM = """
import os, signal, sys, threading
from rewards import WorkerPool
how, target, note = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
pool = WorkerPool(target, workers=2, limit=300)
pool.run([(1,), (2,)])
threading.Thread(
    target=lambda: pool.run([("child_in_a_session", note), ("daemon", note)]), daemon=True
).start()
while len((open(note).read() if os.path.exists(note) else "").split()) < 2:
    threading.Event().wait(0.05)
print(*pool.processes(), flush=True)
if how == "fork":  # a child that holds the pipes open
    if os.fork() == 0:
        import time
        time.sleep(20)
        os._exit(0)
if how in ("kill", "fork"):
    os.kill(os.getpid(), signal.SIGKILL)
pool.run([("hang",)])
"""


@pytest.mark.parametrize("how", ["kill", "fork", "interrupt"])
def test_no_orphan_not_even_in_a_session_of_its_own(target: str, tmp_path: Path, how: str) -> None:
    note = tmp_path / "pids"
    parent = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, how, target, str(note)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    with parent:
        assert parent.stdout is not None
        pids = [*map(int, parent.stdout.readline().split())]
        if how == "interrupt":
            time.sleep(0.3)
            os.killpg(parent.pid, signal.SIGINT)  # what a terminal does on Ctrl-C
        try:
            code = parent.wait(60)
        finally:
            parent.kill()
        if how == "fork":
            assert until_gone(pids, 10) == []  # before the child ends
            os.killpg(parent.pid, signal.SIGKILL)
    assert code == (-signal.SIGINT if how == "interrupt" else -signal.SIGKILL)
    pids += map(int, note.read_text().split())
    assert len(pids) >= 6 + 2  # of the pool, and what the calls started; others come and go
    assert until_gone(pids, 10) == []


def test_an_interrupted_batch_is_dropped_and_the_pool_goes_on(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a notebook: the kernel is interrupted, and the next cell grades."""
    pool = WorkerPool(target, workers=1, limit=300)
    assert pool.run([(1,)])[0].value == 2
    started = time.monotonic()
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            pool.run([("hang",), ("hang",)])
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert pool.run([(4,)])[0].value == 5
    assert time.monotonic() - started < 60
    pool.close()


def test_a_trainer_that_is_busy_makes_no_call_late(target: str) -> None:
    """It holds the interpreter's lock for longer than the limit while its calls are under way."""
    pool = WorkerPool(target, workers=1, limit=1.0)
    pool.run([(1,)])
    started = pool.start([(i,) for i in range(50)])
    busy = time.monotonic()
    while time.monotonic() - busy < 2.5:
        sum(range(10**7))
    assert [outcome.value for outcome in started.result()] == list(range(1, 51))
    pool.close()


def test_arguments_of_any_kind_and_one_that_cannot_be_sent(pool: WorkerPool) -> None:
    outcomes = pool.run([("as_argument", (1, 2)), ("as_argument", lambda: 0), ("as_argument", {1})])
    assert [outcome.value for outcome in outcomes] == ["tuple", None, "set"]
    assert outcomes[1].detail.startswith("an argument cannot be sent to a worker:")


def test_a_function_can_be_made_from_settings() -> None:
    pool = WorkerPool("functools:partial", limit=30, build={"func": "x"})
    with pytest.raises(RuntimeError, match="did not start: TypeError"):
        pool.run([()])
    pool.close()
    pool = WorkerPool("string:Template", limit=30, build={"template": "$x"})
    assert pool.run([()])[0].detail == "TypeError: 'Template' object is not callable"
    pool.close()


@pytest.mark.slow
def test_hanging_calls_cost_their_limit_and_no_more(target: str) -> None:
    """200 of 1,000 with 2 workers: at most limit * 200 / 2, and a fifth."""
    pool = WorkerPool(target, workers=2, limit=0.2)
    pool.run([(1,)])
    calls: list[tuple[Any, ...]] = [("hang",) if i % 5 == 3 else (i,) for i in range(1000)]
    started = time.monotonic()
    outcomes = pool.run(calls)
    seconds = time.monotonic() - started
    assert [o.value for o in outcomes if o.status == "ok"] == [
        i + 1 for i in range(1000) if i % 5 != 3
    ]
    assert pool.counts == {"timeout": 200, "ok": 801}
    assert 20.0 <= seconds < 20.0 * 1.2 * 2  # twice what is promised, for a machine that is busy
    pool.close()
