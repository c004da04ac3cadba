"""Run a Python program that nobody has read, so that it can harm nothing and ends in time.

    result = run("print(6 * 7)", limits=Limits(wall_s=5))    # Result("ok", 0, "42\\n", ...)

The program has an empty folder that vanishes with it, sees Python and the installed packages
read-only, and has no network, no environment and no privilege. What it starts dies with it. How
that is enforced depends on the machine, see `isolation`: by namespaces of its own, else by Landlock
and a filter of system calls; where there is neither (macOS, an old kernel in a strict container) a
program could write where the user can, and nothing is run unless `allow_weak` says so.
"""

import atexit
import base64
import contextlib
import json
import logging
import os
import select
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from rewards.sandboxing.plan import DEFAULT, Limits, Plan

logger = logging.getLogger(__name__)

Status = Literal[
    "ok", "error", "timeout", "cpu", "memory", "processes", "disk", "output", "unreported"
]
GRACE = 20.0  # seconds that the launcher has beyond the wall time, to clean up
PROBE = Limits(wall_s=20.0, cpu_s=10.0)
INSIDE = Path(__file__).with_name("sandboxing")
START = "import sys; sys.path.insert(0, sys.argv[1]); import launch; launch.main()"
SYSTEM_FOLDERS = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/etc/alternatives")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/localtime")
DEVICES = ("/dev/zero", "/dev/random", "/dev/urandom")


class SandboxError(RuntimeError):
    """The sandbox did not work; says nothing about the program."""


@dataclass(frozen=True)
class Result:
    """What became of a program.

    status: "ok" for exit code 0, "error" for another, else the limit that ended it; "unreported" if
    it destroyed what would have told. exit_code: negative for a signal, None if it was killed.
    stdout, stderr: as far as the limit. seconds: wall time.
    """

    status: Status
    exit_code: int | None
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True)
class Isolation:
    """What this machine offers.

    network: "namespace", "refused sockets" or "none". files: "namespace", "landlock" or "none".
    processes: "namespace", "refused signals" or "none". user: whom a program runs as.
    """

    network: str
    files: str
    processes: str
    user: str

    @property
    def weak(self) -> bool:
        """Whether a program could reach outside."""
        return "none" in (self.network, self.files, self.processes)

    def __str__(self) -> str:
        strength = "WEAK, " if self.weak else ""
        return (
            f"sandbox: {strength}network: {self.network}, files: {self.files}, processes: "
            f"{self.processes}, user: {self.user}"
        )


def run(
    source: str,
    *,
    stdin: str = "",
    files: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT,
    allow_weak: bool = False,
) -> Result:
    """Run one program. files: by relative path, in the folder that it starts in.

    Any thread may call. Raises SandboxError if this machine cannot isolate, and ValueError for a
    path that leads out of the folder.
    """
    for path in files or ():
        if os.path.isabs(path) or ".." in Path(path).parts or not path:
            raise ValueError(f"{path!r} is no path inside the program's folder")
    plan = _checked_plan(allow_weak)
    return _result(_serve(plan, limits, source=source, stdin=stdin, files=dict(files or {})))


def run_checked(
    host: str, check: Mapping[str, Any], *, limits: Limits = DEFAULT, allow_weak: bool = False
) -> tuple[Result, dict[str, Any]]:
    """`sandboxing.checking` beside a program in another sandbox, with pipes between them.

    host: the program. Returns what became of it, and the checker's verdict, {} if it gave none.
    """
    report = _serve(_checked_plan(allow_weak), limits, source=host, check=dict(check))
    return _result(report), report["verdict"]


def isolation() -> Isolation:
    """How programs are isolated here. The first call tries what works, in about 0.2 s."""
    plan = _plan()
    user = "the caller" if plan.uid is None else f"{plan.uid}, without privileges"
    return Isolation(plan.network, plan.files, plan.processes, user)


def _checked_plan(allow_weak: bool) -> Plan:
    plan = _plan()
    if isolation().weak and not allow_weak:
        raise SandboxError(
            f"this machine cannot isolate a program ({isolation()}), which could then write and "
            "delete files as you can. Use Linux 5.13 or later, in a container that allows user "
            "namespaces or Landlock and seccomp; or, where nothing is worth protecting, set "
            "allow_weak_isolation: true"
        )
    return plan


# ---------------------------------------------------------------------- what the machine allows

_forced: str | None = None  # for tests: "fallback" does without namespaces, "none" without all


@cache
def _plan_of(forced: str | None) -> Plan:
    failures: list[str] = []
    for plan in _candidates(forced):
        try:
            result = _result(_serve(plan, PROBE, source="print(6 * 7)", stdin="", files={}))
        except SandboxError as error:
            failures.append(str(error))
            continue
        if (result.status, result.stdout) == ("ok", "42\n"):
            logger.debug("not used: %s", failures)
            return plan
        failures.append(f"{result.status} {result.exit_code}: {result.stderr[-300:]}")
    raise SandboxError("no program can be run in any way: " + "; ".join(failures))


def _plan() -> Plan:
    return _plan_of(_forced)


def _candidates(forced: str | None) -> list[Plan]:
    """From the strongest to the weakest."""
    linux = sys.platform == "linux"
    nobody = 65534 if linux and os.geteuid() == 0 else None
    abi, seccomp = _kernel_features() if linux and forced != "none" else (0, False)
    best = Plan(
        namespaces=linux and forced is None,
        uid=nobody,
        landlock=abi,
        seccomp=seccomp,
        readable=_readable(),
        python=os.path.realpath(sys.executable),
        packages=_packages(),
    )
    spaces = [best, replace(best, uid=None)] if best.namespaces else []
    without = replace(best, namespaces=False)
    weaker = [replace(without, landlock=0), replace(without, landlock=0, seccomp=False)]
    return [*spaces, without, replace(without, uid=None), *weaker, replace(weaker[1], uid=None)]


def _kernel_features() -> tuple[int, bool]:
    """(Landlock's ABI, whether system calls can be filtered), asked in a process of its own."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import kernel, landlock, seccomp; "
        "kernel.prctl(38, 1); print(landlock.version(), "
        "int(seccomp.install(own_signals_only=True, files_too=True)))"
    )
    command = [os.path.realpath(sys.executable), "-I", "-S", "-c", code, str(INSIDE)]
    done = subprocess.run(command, capture_output=True, text=True, env={}, check=False)
    if done.returncode != 0:
        raise SandboxError(f"{command[0]} does not run: {done.stderr[-500:]}")
    abi, seccomp = done.stdout.split()
    return int(abi), seccomp == "1"


def _packages() -> tuple[str, ...]:
    found = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    found += [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    return tuple(dict.fromkeys(os.path.realpath(p) for p in found if os.path.isdir(p)))


def _readable() -> tuple[str, ...]:
    folders = [path for path in SYSTEM_FOLDERS if os.path.isdir(path) and not os.path.islink(path)]
    folders += [os.path.realpath(sys.base_prefix), *_packages()]
    folders.append(str(Path(os.path.realpath(sys.executable)).parent))
    outer: list[str] = []
    for path in sorted(dict.fromkeys(folders)):
        if not any(Path(path).is_relative_to(other) for other in outer):
            outer.append(path)
    files = [path for path in SYSTEM_FILES if os.path.isfile(path)]
    return (*outer, *files)


# -------------------------------------------------------------------------------- the launchers


class _Launcher:
    """One process of `sandboxing.launch`; see there."""

    def __init__(self) -> None:
        python = os.path.realpath(sys.executable)
        self.process = subprocess.Popen(
            [python, "-I", "-S", "-c", START, str(INSIDE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
        )

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise SandboxError("the launcher of sandboxes has ended") from None
        line = _read_line(self.process.stdout.fileno(), time.monotonic() + seconds)
        if not line.endswith(b"\n"):
            raise SandboxError(f"the launcher of sandboxes gave no report in {seconds:g} s")
        report: dict[str, Any] = json.loads(line)
        if "broken" in report:
            raise SandboxError(report["broken"])
        return report

    def close(self) -> None:
        """It kills what it has started when its input ends."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()


def _read_line(descriptor: int, deadline: float) -> bytes:
    poller, data = select.poll(), b""
    poller.register(descriptor, select.POLLIN)
    while not data.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not poller.poll(1000 * left):
            break
        part = os.read(descriptor, 1 << 16)
        if not part:
            break
        data += part
    return data


class _Launchers:
    """Those that are idle. Each thread that runs a program takes one, or starts one."""

    def __init__(self) -> None:
        self.owner, self.lock = os.getpid(), threading.Lock()
        self.idle: list[_Launcher] = []

    def take(self) -> _Launcher:
        if os.getpid() != self.owner:  # after a fork: the parent's are not ours
            self.__init__()
        with self.lock:
            if self.idle:
                return self.idle.pop()
        atexit.unregister(self.close)
        atexit.register(self.close)
        return _Launcher()

    def put(self, launcher: _Launcher) -> None:
        with self.lock:
            self.idle.append(launcher)

    def close(self) -> None:
        if os.getpid() != self.owner:
            return
        with self.lock:
            idle, self.idle = self.idle, []
        for launcher in idle:
            launcher.close()


_launchers = _Launchers()


def close() -> None:
    """End the idle launcher processes; a later `run` starts new ones."""
    _launchers.close()


def _serve(plan: Plan, limits: Limits, **request: Any) -> dict[str, Any]:
    launcher = _launchers.take()
    try:
        whole = {**request, "plan": asdict(plan), "limits": asdict(limits)}
        report = launcher.ask(whole, limits.wall_s + GRACE)
    except BaseException:
        launcher.close()
        raise
    _launchers.put(launcher)
    return report


def _result(report: Mapping[str, Any]) -> Result:
    exit_code: int | None = report["exit"]
    status: Any = report["status"]
    if not status:
        status = "unreported" if exit_code is None else "error" if exit_code else "ok"
    out, err = (
        base64.b64decode(report[name]).decode("utf-8", "replace") for name in ("stdout", "stderr")
    )
    return Result(status, exit_code, out, err, report["seconds"])
