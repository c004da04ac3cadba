"""The supervisor's children: a record of each server, how one is forked, how all are ended."""

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from rewards.worker_frames import LIMIT, Channel, Frame
from rewards.worker_tree import descendants, kill_all


@dataclass(eq=False)
class Server:
    """since: when it was started or got its call. process: 0 until it is ready.

    template: the process that forked it, or 0.
    """

    channel: Channel
    since: float
    template: int
    guardian: int = 0
    process: int = 0
    call: Frame | None = None
    exit: int | None = None

    @property
    def limit(self) -> float:
        assert self.call is not None
        return LIMIT.unpack_from(self.call.payload)[0]


def fork(child: Callable[[int], NoReturn]) -> int:
    """`child(my pid)` in a new process, which never comes back."""
    me = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        child(me)
    finally:
        os._exit(1)


def end_everything() -> NoReturn:
    """Kill all that descends from this process, and end."""
    for _ in range(100):  # a process that has just become our child may have been missed
        kill_all(lambda: descendants([os.getpid()]))
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        if not descendants([os.getpid()]):
            break
        time.sleep(0.01)
    os._exit(0)
