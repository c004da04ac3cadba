"""The sandbox on honest programs, and that each limit ends a program and all it started."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rewards import sandbox
from rewards.sandbox import Limits, SandboxError, run

ROOT = Path(__file__).resolve().parents[2]
# patient on a busy machine; what is tested ends long before
LIMITS = Limits(wall_s=30, cpu_s=20)


def test_a_program_runs(mode: str):
    source = "import sys; print(sys.stdin.read().upper()); print('e', file=sys.stderr); sys.exit(3)"
    result = run(source, stdin="grüße\n", limits=LIMITS)
    assert (result.status, result.exit_code) == ("error", 3)
    assert (result.stdout, result.stderr) == ("GRÜSSE\n\n", "e\n")
    assert run("", limits=LIMITS).status == "ok"
    assert run("import os; os.kill(os.getpid(), 9)", limits=LIMITS).exit_code == -9


def test_a_program_begins_in_an_empty_folder_of_its_own_and_leaves_nothing(mode: str):
    source = """
import os, pathlib, tempfile
assert os.listdir() == ["given"] and os.listdir("given") == ["a.txt"], os.listdir()
assert pathlib.Path.home() == pathlib.Path.cwd() == pathlib.Path(tempfile.gettempdir())
assert open("given/a.txt").read() == "hello"
open("b.txt", "w").write("x" * 1000)
with tempfile.NamedTemporaryFile() as file: file.write(b"1")
print(open("b.txt").read(3))
"""
    before = set(os.listdir(tempfile.gettempdir()))
    assert run(source, files={"given/a.txt": "hello"}, limits=LIMITS).stdout == "xxx\n"
    left = [
        name
        for name in set(os.listdir(tempfile.gettempdir())) - before
        if name.startswith("sandbox-")
    ]
    assert left == []
    assert run("import os; print(os.listdir())", limits=LIMITS).stdout == "[]\n"


@pytest.mark.parametrize("path", ["../a", "/etc/a", "a/../../b", ""])
def test_files_stay_in_the_folder(path: str):
    with pytest.raises(ValueError, match="no path inside"):
        run("", files={path: "x"})


def test_installed_packages_can_be_imported_and_processes_started(mode: str):
    source = """
import subprocess, sys, threading, multiprocessing
import yaml
assert yaml.safe_load("[1, 2]") == [1, 2]
threads = [threading.Thread(target=print, args=(i,)) for i in range(3)]
for thread in threads: thread.start(); thread.join()
print(subprocess.run([sys.executable, "-I", "-S", "-c", "print(6 * 7)"], capture_output=True,
                     text=True).stdout)
"""
    result = run(source, limits=LIMITS)
    assert result.stdout.split() == ["0", "1", "2", "42"], result.stderr


def test_the_environment_is_empty(mode: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET_TOKEN", "s3cr3t-in-env")
    result = run("import os; print(dict(os.environ))", limits=LIMITS)
    assert result.status == "ok"
    assert "s3cr3t" not in result.stdout
    assert "SECRET_TOKEN" not in result.stdout


def test_nothing_of_one_run_is_left_for_the_next(mode: str):
    run("import builtins, sys; builtins.print = None; sys.modules['json'] = None", limits=LIMITS)
    assert run("import json; print(json.dumps([1]))", limits=LIMITS).stdout == "[1]\n"


@pytest.mark.slow
def test_each_limit_is_told_apart(mode: str):
    def status(source: str, **limits: float) -> str:
        return run(source, limits=Limits(**{"wall_s": 30, "cpu_s": 20} | limits)).status

    assert status("import time; time.sleep(100)", wall_s=1) == "timeout"
    assert status("while True: print('x' * 10000)", output_kib=64) == "output"
    burn = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
    assert status(burn, cpu_s=1) == "cpu"
    hold = "import os, time\nfor _ in range(3): os.fork()\nx = b'x' * 90_000_000\ntime.sleep(60)"
    assert status(hold, memory_mib=300) == "memory"


def test_memory_of_one_process_is_refused_before_it_is_used(mode: str):
    result = run("x = bytearray(2 * 2**30)", limits=LIMITS)
    assert result.exit_code == 1
    assert "MemoryError" in result.stderr


def test_many_forks_that_share_their_memory_use_it_once(mode: str):
    source = """
import os, time
x = b"x" * 100_000_000
pids = []
for _ in range(8):
    pid = os.fork()
    if pid == 0: time.sleep(1); os._exit(0)
    pids.append(pid)
for pid in pids: os.waitpid(pid, 0)
print("done")
"""
    assert run(source, limits=LIMITS).stdout == "done\n"


def test_several_programs_at_once_from_threads(mode: str):
    with ThreadPoolExecutor(4) as threads:
        source = "import os; open('own', 'x').write('{}'); print(open('own').read())"
        results = list(threads.map(lambda i: run(source.format(i), limits=LIMITS), range(16)))
    assert [result.stdout for result in results] == [f"{i}\n" for i in range(16)]


def test_a_launcher_leaks_nothing_from_run_to_run(mode: str):
    from rewards.sandbox_launchers import launchers
    from rewards.unit_tests import grade_program

    def open_files() -> int:
        (launcher,) = launchers.idle
        return len(os.listdir(f"/proc/{launcher.process.pid}/fd"))

    sandbox.close()
    run("pass", limits=LIMITS)
    before = open_files()
    for _ in range(3):
        run("import os; os._exit(3)", limits=LIMITS)
        grade_program(["def f(x): return x"], ["assert f(1) == 1"], limits=LIMITS)
    assert open_files() == before


def test_a_thread_that_ends_takes_no_program_of_another_with_it(mode: str):
    results: list[str] = []
    for _ in range(3):
        thread = threading.Thread(
            target=lambda: results.append(run("print(1)", limits=LIMITS).stdout)
        )
        thread.start()
        thread.join()
    assert results == ["1\n"] * 3


def test_the_log_line_names_what_isolates(mode: str):
    line = str(sandbox.isolation())
    if mode == "fallback":
        assert "network: refused sockets" in line
    assert "WEAK" not in line


def test_a_machine_that_cannot_isolate_needs_an_explicit_setting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "_forced", "none")
    assert sandbox.isolation().weak
    assert "WEAK" in str(sandbox.isolation())
    with pytest.raises(SandboxError, match="allow_weak_isolation: true"):
        run("print(1)", limits=LIMITS)
    assert run("print(1)", limits=LIMITS, allow_weak=True).stdout == "1\n"


@pytest.mark.parametrize(
    ("limits", "message"),
    [({"wall_s": 0}, "wall_s is 0"), ({"processes": -1}, "-1"), ({"memory_mib": 1}, "64 MiB")],
)
def test_limits_are_checked(limits: dict[str, float], message: str):
    with pytest.raises(ValueError, match=message):
        Limits(**limits)


def marked(mark: str) -> list[int]:
    """Processes that are running with this text in their command line."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in line:
            found.append(int(entry))
    return found


def until_gone(mark: str, seconds: float = 20) -> list[int]:
    deadline = time.monotonic() + seconds
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return marked(mark)


DAEMON = """
import os, subprocess, sys, time
code = "import time; time.sleep(600)"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        subprocess.Popen([sys.executable, "-I", "-S", "-c", code, "{mark}"], close_fds=False)
        time.sleep(600)
    os._exit(0)
time.sleep({wait})
print("ended")
"""


@pytest.mark.parametrize("wait", [1, 600], ids=["program ends", "program is killed"])
def test_daemonised_grandchildren_end_with_the_program(mode: str, wait: int):
    mark = f"daemon-{mode}-{wait}-{os.getpid()}"
    result = run(DAEMON.format(mark=mark, wait=wait), limits=Limits(wall_s=3, cpu_s=20))
    assert result.status == ("ok" if wait == 1 else "timeout")
    assert until_gone(mark, 5) == []


@pytest.mark.parametrize("forced", [None, "fallback"])
def test_programs_end_with_a_killed_parent(forced: str | None, tmp_path: Path):
    mark = f"orphan-{forced}-{os.getpid()}"
    code = (
        "import sys; from rewards import sandbox; "
        f"sandbox._forced = {forced!r}; "
        f"sandbox.run({DAEMON.format(mark=mark, wait=600)!r}, "
        "limits=sandbox.Limits(wall_s=120, cpu_s=20))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    deadline = time.monotonic() + 60
    while len(marked(mark)) < 2 and time.monotonic() < deadline:  # the parent has it as well
        time.sleep(0.05)
    assert len(marked(mark)) >= 2
    parent.kill()
    parent.wait()
    assert until_gone(mark) == []
