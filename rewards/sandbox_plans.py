"""The ways to isolate that this machine may allow, from the strongest to the weakest."""

import os
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

from rewards.sandboxing.plan import Plan

INSIDE = Path(__file__).with_name("sandboxing")
PYTHON = os.path.realpath(sys.executable)
NOBODY = 65534
SYSTEM_FOLDERS = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/etc/alternatives")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/localtime")


class SandboxError(RuntimeError):
    """The sandbox did not work; says nothing about the program."""


def candidates(forced: str | None) -> list[Plan]:
    """forced: for tests; "fallback" does without namespaces, "none" without everything."""
    linux = sys.platform == "linux"
    nobody = NOBODY if linux and os.geteuid() == 0 else None
    abi, seccomp = _kernel_features() if linux and forced != "none" else (0, False)
    best = Plan(
        namespaces=linux and forced is None,
        uid=nobody,
        landlock=abi,
        seccomp=seccomp,
        readable=_readable(),
        python=PYTHON,
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
    command = [PYTHON, "-I", "-S", "-c", code, str(INSIDE)]
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
    folders.append(str(Path(PYTHON).parent))
    outer: list[str] = []
    for path in sorted(dict.fromkeys(folders)):
        if not any(Path(path).is_relative_to(other) for other in outer):
            outer.append(path)
    files = [path for path in SYSTEM_FILES if os.path.isfile(path)]
    return (*outer, *files)
