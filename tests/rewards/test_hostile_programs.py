"""Programs that try to get out, in bounded form; they print ESCAPED where they can tell.

What is checked is what is left outside: files, sockets, processes, the secret in a report.
"""

import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewards import sandbox
from rewards.sandbox import Limits, Result, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's isolation is tested")
LIMITS = Limits(wall_s=20, cpu_s=15)


@pytest.fixture(params=[None, "fallback"], ids=["namespaces", "fallback"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(sandbox, "_forced", request.param)
    yield request.param or "namespaces"
    sandbox.close()


def attempt(body: str, **limits: float) -> Result:
    """Run statements of which each is tried, and none may succeed."""
    lines = "\n".join(
        f"try:\n    {line}\n    print('ESCAPED', {line!r})\nexcept BaseException as e:\n    "
        f"print('refused', type(e).__name__, e)"
        for line in body.strip().splitlines()
    )
    prelude = "import ctypes, os, resource, signal, socket, subprocess, sys\n"
    wanted = {"wall_s": 20, "cpu_s": 15} | limits
    return run(prelude + lines, limits=Limits(**wanted))


def refused(body: str) -> None:
    result = attempt(body)
    assert "ESCAPED" not in result.stdout, result.stdout
    assert result.stdout.count("refused") == len(body.strip().splitlines()), result


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


def test_writing_outside(mode: str, tmp_path: Path):
    secret = tmp_path / "mine.txt"
    secret.write_text("untouched")
    os.chmod(tmp_path, 0o777)
    os.chmod(secret, 0o666)
    packages = Path(pytest.__file__).parent.parent
    refused(
        f"""
open({str(secret)!r}, 'w').write('x')
open({str(tmp_path / "new")!r}, 'x').write('x')
open({str(packages / "planted.py")!r}, 'w').write('x')
open(os.path.join(os.path.dirname(os.__file__), 'planted.py'), 'w').write('x')
open('/usr/planted', 'w').write('x')
open('/planted', 'w').write('x')
open('/etc/planted', 'w').write('x')
open('/dev/planted', 'w').write('x')
open('/var/tmp/planted', 'w').write('x')
os.unlink({str(secret)!r})
os.rename({str(secret)!r}, {str(secret)!r} + '2')
os.mkdir({str(tmp_path / "folder")!r})
os.symlink({str(secret)!r}, 'link') or open('link', 'w').write('x')
os.symlink({str(tmp_path)!r}, 'folder') or open('folder/new', 'w').write('x')
os.link({str(secret)!r}, 'hard') or open('hard', 'w').write('x')
os.link(os.__file__, 'hard2') or open('hard2', 'a').write('x')
os.chmod({str(secret)!r}, 0o000)
os.chmod(os.__file__, 0o777)
os.utime({str(secret)!r}, (0, 0))
os.truncate({str(secret)!r}, 0)
open('../' * 20 + {str(secret)[1:]!r}, 'w').write('x')
open('/proc/self/root' + {str(secret)!r}, 'w').write('x')
open('/proc/1/root' + {str(secret)!r}, 'w').write('x')
open('/proc/self/cwd/../../' + {str(secret)[1:]!r}, 'w').write('x')
open('/proc/sys/kernel/hostname', 'w').write('x')
os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000')
os.mknod('device', 0o600 | 0o020000, os.makedev(1, 1))
os.chroot('.')
"""
    )
    assert secret.read_text() == "untouched"
    assert secret.stat().st_mode & 0o777 == 0o666
    assert secret.stat().st_mtime > 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert not list(packages.glob("planted*"))
    assert not Path("/var/tmp/planted").exists()


def test_inherited_files_are_closed(mode: str, tmp_path: Path):
    secret = tmp_path / "open.txt"
    with secret.open("w") as file:
        os.set_inheritable(file.fileno(), True)
        source = """
import os
for descriptor in range(3, 4096):
    try: os.write(descriptor, b"ESCAPED")
    except OSError: continue
    print("ESCAPED through", descriptor)
for descriptor in (0, 1, 2):
    try:
        with open(f"/proc/self/fd/{descriptor}", "w") as again: again.write("\\n")
    except OSError: pass
"""
        result = run(source, limits=LIMITS)
    assert result.exit_code == 0, result
    assert "ESCAPED" not in result.stdout
    assert secret.read_text() == ""


def test_sockets(mode: str, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        server.settimeout(0.2)
        unix.bind(str(tmp_path / "socket"))
        unix.listen()
        unix.settimeout(0.2)
        port = server.getsockname()[1]
        refused(
            f"""
socket.create_connection(('127.0.0.1', {port}), 2)
socket.create_connection(('localhost', {port}), 2)
socket.socket(socket.AF_INET6).connect(('::1', {port}))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))
socket.socket(socket.AF_UNIX).connect({str(tmp_path / "socket")!r})
socket.socket(socket.AF_UNIX).bind(chr(0) + 'abstract')
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((2, {port}))
socket.create_server(('127.0.0.1', 0))
"""
        )
        for listener in (server, unix):
            with pytest.raises(TimeoutError):
                listener.accept()


def test_environments_and_memory_of_others(mode: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET_TOKEN", "s3cr3t-in-env")
    source = f"""
import glob
for path in ["/proc/1/environ", "/proc/{os.getpid()}/environ", *glob.glob("/proc/*/environ"),
             *glob.glob("/proc/*/task/*/environ"), *glob.glob("/proc/*/cmdline"),
             *glob.glob("/proc/*/mem"), *glob.glob("/proc/*/maps")]:
    try: print(path, open(path, "rb").read(10000))
    except (OSError, ValueError) as error: print(path, error)
import os
try: print(open(f"/proc/{{os.getppid()}}/environ").read())
except OSError as error: print("refused", error)
"""
    result = run(source, limits=LIMITS)
    assert result.exit_code == 0, result
    assert "s3cr3t" not in result.stdout
    assert "pytest" not in result.stdout


def test_tracing_and_other_calls_of_the_kernel(mode: str):
    result = run(
        """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, arguments in [
    ("ptrace", (16, os.getppid(), 0, 0)),
    ("mount", (b"none", b"/tmp", b"tmpfs", 0, None)),
    ("mount", (b"/", b"/tmp", None, 4096, None)),
    ("umount2", (b"/tmp", 2)),
    ("umount2", (b"/usr", 2)),
    ("unshare", (0x10000000,)),
    ("unshare", (0x20000,)),
    ("setns", (0, 0)),
    ("chroot", (b"/tmp",)),
    ("setuid", (0,)) if os.getuid() else ("sethostname", (b"x", 1)),
    ("sethostname", (b"x", 1)),
    ("kill", (1, 9)) if os.getpid() != 2 else ("reboot", (0,)),
]:
    result = getattr(libc, name)(*arguments)
    print("refused" if result < 0 else "ESCAPED", name, os.strerror(ctypes.get_errno()))
CLONE_NEWUSER = 0x10000000
result = libc.syscall(56, CLONE_NEWUSER | 17, 0, 0, 0, 0)
if result == 0: os._exit(0)
print("refused" if result < 0 else "ESCAPED", "clone")
""",
        limits=LIMITS,
    )
    assert "ESCAPED" not in result.stdout, result.stdout
    assert result.stdout.count("refused") == 13, result


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
    before = set(os.listdir("/tmp"))
    source = """
import os
for i in range(3000):
    os.mkdir("d"); os.chdir("d")
open("f", "w").write("x")
"""
    assert run(source, limits=LIMITS).status in ("ok", "disk")
    new = set(os.listdir("/tmp")) - before
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
