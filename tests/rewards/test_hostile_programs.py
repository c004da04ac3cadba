"""Programs that try to get out, in bounded form; they print ESCAPED where they can tell.

What is checked is what is left outside: files, sockets, processes, the secret in a report.
"""

import os
import tempfile
import threading
from pathlib import Path

import pytest

from rewards.sandbox import Limits, run
from tests.rewards.hostile import LIMITS, refused


def test_a_fork_bomb_that_would_stop_at_100_processes(mode: str):
    source = """
import os, time
made = 0
while made < 100:
    try: pid = os.fork()
    except OSError as error: print("refused at", made); break
    if pid == 0: time.sleep(10); os._exit(0)
    made += 1
    time.sleep(0.01)
else:
    print("ESCAPED")
"""
    result = run(source, limits=Limits(wall_s=10, cpu_s=8, processes=16))
    assert result.status == "processes" or "refused at 1" in result.stdout, result
    assert "ESCAPED" not in result.stdout


def test_a_doubling_fork_bomb_leaves_nothing(mode: str):
    source = """
import os, time
for _ in range(6):  # 64 processes
    try: os.fork()
    except OSError: pass
time.sleep(30)
"""
    result = run(source, limits=Limits(wall_s=3, cpu_s=15, processes=16))
    assert result.status in ("processes", "timeout")
    assert children_of_launchers() == []


def children_of_launchers() -> list[str]:
    """What runs below this process, the launchers aside."""
    from rewards.sandboxing import watch

    names = []
    for pid in watch.below(os.getpid()):
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"launch.main" not in line:
            names.append(line.decode(errors="replace"))
    return [name for name in names if "sandbox" in name or "main.py" in name or "-I" in name]


def test_an_infinite_loop(mode: str):
    assert run("while True: pass", limits=Limits(wall_s=1, cpu_s=30)).status == "timeout"
    stubborn = """
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True:
    try:
        while True: pass
    except BaseException: pass
"""
    assert run(stubborn, limits=Limits(wall_s=1, cpu_s=30)).status == "timeout"


@pytest.mark.slow
def test_memory_bombs_of_two_gib(mode: str):
    one = "x = []\nfor _ in range(200): x.append(bytearray(10 * 2**20))\nprint('ESCAPED')"
    result = run(one, limits=Limits(wall_s=20, cpu_s=15, memory_mib=256))
    assert "ESCAPED" not in result.stdout
    assert result.status in ("error", "memory")
    many = """
import os, time
for _ in range(9):
    if os.fork() == 0:
        x = bytearray(os.urandom(1)) * (200 * 2**20)
        time.sleep(20); print("ESCAPED"); os._exit(0)
time.sleep(20)
"""
    result = run(many, limits=Limits(wall_s=19, cpu_s=15, memory_mib=512))
    assert result.status == "memory"


@pytest.mark.slow
def test_shared_memory_counts_too(mode: str):
    source = """
import mmap, os, time
for _ in range(9):
    if os.fork() == 0:
        shared = mmap.mmap(-1, 200 * 2**20)
        for at in range(0, len(shared), 4096): shared[at] = 1
        time.sleep(20); os._exit(0)
time.sleep(20)
"""
    assert run(source, limits=Limits(wall_s=19, cpu_s=15, memory_mib=512)).status == "memory"
    refused("os.memfd_create('x')")


def test_signals_to_the_parent_and_to_everyone(mode: str):
    received = threading.Event()
    source = """
import os, signal
for target in (os.getppid(), -1, 1, {outside}):
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGINT):
        try: os.kill(target, number)
        except BaseException as error: print(target, error)
try: os.killpg(os.getpgid(os.getppid()), 9)
except BaseException as error: print(error)
print("alive")
"""
    bystander = os.fork()
    if bystander == 0:
        threading.Event().wait(60)
        os._exit(0)
    try:
        run(source.format(outside=bystander), limits=LIMITS)
        assert os.waitpid(bystander, os.WNOHANG) == (0, 0)
    finally:
        os.kill(bystander, 9)
        os.waitpid(bystander, 0)
    assert not received.is_set()
    assert run("print(1)", limits=LIMITS).stdout == "1\n"


def test_limits_cannot_be_raised(mode: str):
    refused(
        """
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
resource.setrlimit(resource.RLIMIT_FSIZE, (2**40, 2**40))
resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))
resource.setrlimit(resource.RLIMIT_NOFILE, (10**6, 10**6))
os.sched_setaffinity(os.getppid(), [0])
os.setpriority(os.PRIO_PROCESS, 0, -20)
"""
    )


def test_printing_a_gigabyte(mode: str):
    result = run("x = 'x' * 2**20\nfor _ in range(1024): print(x)", limits=LIMITS)
    assert result.status == "output"
    assert len(result.stdout) < 2**20
    errors = "import os\nfor _ in range(1024): os.write(2, b'x' * 2**20)"
    assert run(errors, limits=LIMITS).status == "output"


def test_filling_the_disk(mode: str):
    large = "open('x', 'wb').write(b'x' * 2**25)\nprint('ESCAPED')"
    result = run(large, limits=LIMITS)
    assert "ESCAPED" not in result.stdout
    many = """
import time
for i in range(50):
    with open(f"x{i}", "wb") as file: file.write(b"x" * 10 * 2**20)
    time.sleep(0.05)
print("ESCAPED")
"""
    result = run(many, limits=LIMITS)
    assert result.status in ("disk", "error"), result
    assert "ESCAPED" not in result.stdout
    sparse = "f = open('x', 'wb'); f.truncate(2**34); print('ESCAPED')"
    assert "ESCAPED" not in run(sparse, limits=LIMITS).stdout


def test_a_tree_of_folders_too_deep_to_remove_recursively(mode: str):
    before = set(os.listdir(tempfile.gettempdir()))
    source = """
import os
for i in range(3000):
    os.mkdir("d"); os.chdir("d")
open("f", "w").write("x")
"""
    assert run(source, limits=LIMITS).status in ("ok", "disk")
    new = set(os.listdir(tempfile.gettempdir())) - before
    assert [name for name in new if name.startswith("sandbox-")] == []


def test_stopping_itself_and_closing_everything(mode: str):
    stop = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    assert run(stop, limits=Limits(wall_s=1, cpu_s=15)).status == "timeout"
    assert run("import os; os.closerange(0, 4096)", limits=LIMITS).exit_code in (0, 1, 120)
    silent = "import os, time; os.closerange(0, 4096); time.sleep(60)"
    assert run(silent, limits=Limits(wall_s=1, cpu_s=15)).status == "timeout"


def test_crashes(mode: str):
    deep = "x = ()\nfor _ in range(10**6): x = (x,)\nhash(x)"
    assert run(deep, limits=LIMITS).exit_code == -11
    segfault = "import ctypes; ctypes.string_at(0)"
    assert run(segfault, limits=LIMITS).exit_code == -11
    assert run("import os; os.abort()", limits=LIMITS).exit_code == -6
    nested = "eval('(' * 100000 + ')' * 100000)"
    assert run(nested, limits=LIMITS).status == "error"
