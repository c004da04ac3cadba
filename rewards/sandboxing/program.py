"""One program: the process that prepares it, and what is left of it here (pipes, exit status)."""

import contextlib
import fcntl
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field

import hardening
import kernel
import namespaces
from plan import Limits, Plan

FIRST_FREE = 3
MOST_FILES = 4096  # the launcher has far fewer open
# the program's text is in file 3; the rest of the command line is where packages lie
BOOT = """
import sys
with open(3, encoding="utf-8", errors="surrogatepass") as file:
    text = file.read()
sys.path += sys.argv[1:]
sys.argv = ["main.py"]
code = compile(text, "main.py", "exec")
del file, text, sys
exec(code)
"""
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",  # their start would reserve memory for each core
}


@dataclass
class Program:
    """What to run: the text of a Python program, or a function of the launcher's own.

    channel: file descriptors that the program gets as 4, 5, ... (a function: as they are).
    """

    source: str | Callable[[], None]
    stdin: str = ""
    files: dict[str, str] = field(default_factory=dict[str, str])
    channel: tuple[int, ...] = ()


@dataclass
class Running:
    pid: int  # of the namespace's first process, or of the program
    out: int
    err: int
    status: int  # one line of JSON when the program has ended
    verdict: int = -1  # of a checker: one line of JSON

    def close(self) -> None:
        for descriptor in (self.out, self.err, self.status, self.verdict):
            if descriptor >= 0:
                os.close(descriptor)


def start(program: Program, plan: Plan, limits: Limits, folder: str) -> Running:
    """folder: an empty one for the program, used without namespaces only."""
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    status, status_end = os.pipe()
    go, go_end = os.pipe()
    stdin = readable_file(program.stdin)
    source = readable_file(program.source if isinstance(program.source, str) else "")
    pid = namespaces.clone() if plan.namespaces else os.fork()
    if pid == 0:
        os.close(go_end)
        _live(program, plan, limits, folder, (stdin, out_end, err_end, source), status_end, go)
    for descriptor in (out_end, err_end, status_end, go, stdin, source):
        os.close(descriptor)
    with contextlib.suppress(ProcessLookupError, FileNotFoundError, BrokenPipeError):
        if plan.namespaces:
            namespaces.write_maps(pid, plan.uid)
        os.write(go_end, b"1")
    os.close(go_end)
    return Running(pid, out, err, status)


def readable_file(text: str) -> int:
    """A file without a name, open for reading only."""
    writer, path = tempfile.mkstemp()
    with open(writer, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
        file.write(text)
    reader = os.open(path, os.O_RDONLY)
    os.unlink(path)
    return reader


def _live(
    program: Program,
    plan: Plan,
    limits: Limits,
    folder: str,
    standard: tuple[int, int, int, int],
    status: int,
    go: int,
) -> None:
    """In the child; never returns."""
    try:
        if sys.platform == "linux":
            kernel.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: die with the launcher
        if os.read(go, 1) != b"1":
            os._exit(1)
        if plan.namespaces:
            _enter_namespaces(plan, limits)
            folder = namespaces.FOLDER
        _supervise(program, plan, limits, folder, standard, status)
    except BaseException as error:
        _tell(status, {"broken": f"{type(error).__name__}: {error}"})
    os._exit(1)


def _enter_namespaces(plan: Plan, limits: Limits) -> None:
    sources = namespaces.open_sources(plan)
    namespaces.become_inside_user()
    kernel.prctl(1, signal.SIGKILL)  # becoming a user has cleared it
    namespaces.build_root(sources, limits)
    kernel.libc.sethostname(b"sandbox", 7)


def _supervise(
    program: Program,
    plan: Plan,
    limits: Limits,
    folder: str,
    standard: tuple[int, int, int, int],
    status: int,
) -> None:
    """Start the program, wait for it and tell how it ended. As process 1, bury orphans too."""
    pid = os.fork()
    if pid == 0:
        try:
            _become(program, plan, limits, folder, standard)
        except BaseException as error:
            _tell(status, {"broken": f"{type(error).__name__}: {error}"})
        os._exit(1)
    os.closerange(0, status)
    os.closerange(status + 1, MOST_FILES)
    if sys.platform == "linux":
        hardening.drop_capabilities()
        kernel.prctl(4, 0)  # PR_SET_DUMPABLE: the program may not look into this process
    while True:
        ended, how = os.waitpid(-1, 0)
        if ended == pid:
            _tell(status, {"exit": os.waitstatus_to_exitcode(how)})
            os._exit(0)


def _become(
    program: Program,
    plan: Plan,
    limits: Limits,
    folder: str,
    standard: tuple[int, int, int, int],
) -> None:
    """Give up everything, then be the program."""
    os.setsid()
    for ignored in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):  # as Python and launcher do
        signal.signal(ignored, signal.SIG_DFL)
    os.umask(0o077)
    os.chdir(folder)
    stdin, out, err, source = standard
    for at, descriptor in enumerate((stdin, out, err)):
        os.dup2(descriptor, at)
    if isinstance(program.source, str):
        high = [_above(each) for each in (source, *program.channel)]
        for at, descriptor in enumerate(high, FIRST_FREE):
            os.dup2(descriptor, at)
        os.closerange(FIRST_FREE + len(high), MOST_FILES)
    _restrict(plan, limits, folder)
    for name, text in program.files.items():
        _write(os.path.join(folder, name), text)
    if isinstance(program.source, str):
        environment = ENVIRONMENT | {"HOME": folder, "TMPDIR": folder}
        os.execve(plan.python, [plan.python, "-I", "-S", "-c", BOOT, *plan.packages], environment)
    program.source()
    os._exit(0)


def _above(descriptor: int) -> int:
    """The same file under a number out of the way of those that are about to be set."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 32)


def _restrict(plan: Plan, limits: Limits, folder: str) -> None:
    tasks = limits.processes
    if sys.platform != "linux":
        tasks = None
    elif not plan.namespaces:
        uid = os.geteuid() if plan.uid is None else plan.uid
        tasks += hardening.own_processes(uid) + 64
        if plan.uid is not None:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
    hardening.limit_resources(limits, tasks)
    if sys.platform == "linux":
        hardening.drop_capabilities()
        hardening.refuse(plan, folder)
        kernel.prctl(1, signal.SIGKILL)


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)


def _tell(status: int, message: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        os.write(status, json.dumps(message).encode() + b"\n")
