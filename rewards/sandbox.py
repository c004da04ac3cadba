"""Run a Python program that nobody has read, so that it can harm nothing and ends in time.

    result = run("print(6 * 7)", limits=Limits(wall_s=5))    # Result("ok", 0, "42\\n", ...)

The program has an empty folder that vanishes with it, sees Python and the installed packages
read-only, and has no network, no environment and no privilege. What it starts dies with it. How
that is enforced depends on the machine, see `isolation`: by namespaces of its own, else by Landlock
and a filter of system calls; where there is neither (macOS, an old kernel in a strict container) a
program could write where the user can, and nothing is run unless `allow_weak` says so.
"""

import base64
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from rewards import sandbox_launchers
from rewards.sandbox_launchers import serve
from rewards.sandbox_plans import SandboxError, candidates
from rewards.sandboxing.plan import DEFAULT, Limits, Plan

__all__ = [
    "DEFAULT",
    "Isolation",
    "Limits",
    "Result",
    "SandboxError",
    "close",
    "isolation",
    "run",
    "run_checked",
]

logger = logging.getLogger(__name__)

Status = Literal[
    "ok", "error", "timeout", "cpu", "memory", "processes", "disk", "output", "unreported"
]
PROBE = Limits(wall_s=20.0, cpu_s=10.0)


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
    return _result(serve(plan, limits, source=source, stdin=stdin, files=dict(files or {})))


def run_checked(
    host: str, check: Mapping[str, Any], *, limits: Limits = DEFAULT, allow_weak: bool = False
) -> tuple[Result, dict[str, Any]]:
    """`sandboxing.checking` beside a program in another sandbox, with pipes between them.

    host: the program. Returns what became of it, and the checker's verdict, {} if it gave none.
    """
    report = serve(_checked_plan(allow_weak), limits, source=host, check=dict(check))
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


_forced: str | None = None  # for tests: "fallback" does without namespaces, "none" without all


@cache
def _plan_of(forced: str | None) -> Plan:
    failures: list[str] = []
    for plan in candidates(forced):
        try:
            result = _result(serve(plan, PROBE, source="print(6 * 7)", stdin="", files={}))
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


def close() -> None:
    """End the idle launcher processes; a later `run` starts new ones."""
    sandbox_launchers.close()


def _result(report: Mapping[str, Any]) -> Result:
    exit_code: int | None = report["exit"]
    status: Any = report["status"]
    if not status:
        status = "unreported" if exit_code is None else "error" if exit_code else "ok"
    out, err = (
        base64.b64decode(report[name]).decode("utf-8", "replace") for name in ("stdout", "stderr")
    )
    return Result(status, exit_code, out, err, report["seconds"])
