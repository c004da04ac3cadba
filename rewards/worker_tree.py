"""The processes below a process, and their end: also of those that left its group or session.

A process that loses its parent goes to the nearest ancestor that asked for such orphans
(`adopt_orphans`), so that a walk over /proc finds it. Linux; elsewhere only groups are killed.
"""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with(parent: int) -> None:
    """End with the process (on Linux: the thread) that forked this one."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked to be told
        os._exit(0)


def parents() -> dict[int, int]:
    """The parent of every process that runs. A millisecond for a hundred of them."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc") if LINUX else ():
        if name.isdigit():
            with contextlib.suppress(OSError):  # it has ended since
                descriptor = os.open(f"/proc/{name}/stat", os.O_RDONLY)
                try:
                    state, parent = os.read(descriptor, 512).rpartition(b")")[2].split()[:2]
                finally:
                    os.close(descriptor)
                if state not in (b"Z", b"X"):
                    found[int(name)] = int(parent)
    return found


def descendants(roots: Iterable[int], parent_of: Mapping[int, int] | None = None) -> set[int]:
    """Every process that runs below one of these, without themselves."""
    children: dict[int, list[int]] = {}
    for pid, parent in (parents() if parent_of is None else parent_of).items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), []) if pid not in found]
        found.update(new)
        waiting += new
    return found


def kill_all(find: Callable[[], set[int]]) -> None:
    """Kill what `find` finds. All are stopped first, for one that runs could start another."""
    stopped: set[int] = set()
    while new := find() - stopped:
        for pid in new:
            _signal(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        _signal(pid, signal.SIGKILL)


def kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
