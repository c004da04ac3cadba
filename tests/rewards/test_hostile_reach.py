"""Programs that reach for files, sockets, other processes and the kernel; bounded forms.

What is checked is what is left outside: files, sockets, processes, the secret in a report.
"""

import os
import socket
from pathlib import Path

import pytest

from rewards.sandbox import run
from tests.rewards.hostile import LIMITS, refused


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
    ("mount", (b"none", b"/sandbox", b"tmpfs", 0, None)),
    ("mount", (b"/", b"/sandbox", None, 4096, None)),
    ("umount2", (b"/sandbox", 2)),
    ("umount2", (b"/usr", 2)),
    ("unshare", (0x10000000,)),
    ("unshare", (0x20000,)),
    ("setns", (0, 0)),
    ("chroot", (b"/sandbox",)),
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
