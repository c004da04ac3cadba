"""What the processes below this one use together, and their end."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

PATIENCE = 10.0  # seconds to kill a tree that keeps growing
TICKS = os.sysconf("SC_CLK_TCK")
MIB = 2**20


@dataclass
class Usage:
    tasks: int = 0  # processes and threads
    cpu_s: float = 0.0
    memory_mib: float = 0.0


def below(root: int) -> list[int]:
    """All descendants. Orphans count too, where this process is their subreaper or init is."""
    if sys.platform != "linux":
        return _below_by_ps(root)
    try:
        found = _children(root)
    except FileNotFoundError:  # a kernel without the file
        return _below_by_stat(root)
    for pid in found:  # grows as we go
        with contextlib.suppress(OSError):
            found += _children(pid)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            found += map(int, file.read().split())
    return found


def _below_by_stat(root: int) -> list[int]:
    parents: list[tuple[int, int]] = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as file:
            parents.append((int(entry), int(file.read().rpartition(")")[2].split()[1])))
    return _close(root, parents)


def _below_by_ps(root: int) -> list[int]:
    listing = subprocess.run(
        ["/bin/ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in listing.stdout.splitlines()]
    return _close(root, [(int(pid), int(parent)) for pid, parent in rows])


def _close(root: int, parents: list[tuple[int, int]]) -> list[int]:
    of: dict[int, list[int]] = {}
    for pid, parent in parents:
        of.setdefault(parent, []).append(pid)
    found = list(of.get(root, []))
    for pid in found:
        found += of.get(pid, [])
    return found


def usage(pids: list[int], limit_mib: float) -> Usage:
    """The sum over these processes; pages shared by several count once where that decides."""
    total = Usage()
    if sys.platform != "linux":
        total.tasks = len(pids)
        return total
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            total.tasks += int(fields[17])
            total.cpu_s += sum(map(int, fields[11:15])) / TICKS
            with open(f"/proc/{pid}/status") as file:
                total.memory_mib += _kib(file.read(), ("RssAnon:", "RssShmem:")) / 1024
    if total.memory_mib > limit_mib:
        total.memory_mib = _proportional(pids, total.memory_mib)
    return total


def _kib(text: str, names: tuple[str, ...]) -> int:
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(names))


def _proportional(pids: list[int], otherwise: float) -> float:
    """A page counts 1/n for each of its n users: many forks of one process share nearly all."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += _kib(file.read(), ("Pss:",))
        except FileNotFoundError:
            continue
        except ProcessLookupError:  # it ended meanwhile
            continue
        except OSError:
            return otherwise
    return total / 1024


def kill_below(root: int) -> bool:
    """Kill all descendants, and those they start meanwhile; whether none is left."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        pids = below(root)
        for kind in (signal.SIGSTOP, signal.SIGKILL):  # a stopped process starts no other
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, kind)
        reap()
        if not pids:
            return True
        time.sleep(0.001)
    return False


def reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
