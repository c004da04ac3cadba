"""The processes that run a pool's function; all are forked, and none is trusted.

    supervisor -> template -> guardian -> server        or, where a fork would not be safe,
    supervisor             -> guardian -> server

The template imports the function once and forks a server from that in milliseconds, if it has no
threads and no children. Otherwise it ends, and every server imports the function itself.
The guardian tells how its server ended, and is what a server hits that kills its parent.
The server calls the function. It has a session of its own (no Ctrl-C reaches it) and a memory
limit, counted from what it has mapped when it starts: importing torch alone maps gigabytes.
"""

import gc
import json
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rewards.target import add_to_path, resolve
from rewards.worker_frames import (
    CALL,
    LAST,
    LIMIT,
    LONGEST_REPLY,
    REPLY,
    packed,
    read_frames,
    send_status,
)
from rewards.worker_tree import LINUX, descendants, die_with

Function = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a pool is for. build: keyword arguments of a target that makes the function."""

    target: str
    workers: int
    memory_bytes: int
    start_limit: float
    trainer: int
    build: dict[str, Any] | None = None
    path: list[str] = field(default_factory=list[str])

    def load(self) -> Function:
        add_to_path(self.path)
        function = resolve(self.target)
        return function if self.build is None else function(**self.build)


def run_template(connection: socket.socket, job: Job, supervisor: int) -> NoReturn:
    """In the child of a fork: import, and fork a guardian for every socket that comes."""
    connection = _alone_with(connection)
    die_with(supervisor)
    function = _load(connection, job)
    forks = _may_fork()
    send_status(connection, ready=True, forks=forks)
    if not forks:
        os._exit(0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # guardians need nobody to wait for them
    gc.freeze()  # the collector would touch, and so copy, what all servers share
    me = os.getpid()
    while True:
        word, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
        if not word:
            os._exit(0)
        with socket.socket(fileno=descriptors[0]) as server:
            if os.fork() == 0:
                run_guardian(server, job, me, function)


def run_guardian(
    connection: socket.socket, job: Job, parent: int, function: Function | None = None
) -> NoReturn:
    """In the child of a fork: start a server, and say how it ended."""
    connection = _alone_with(connection)
    die_with(parent)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    me = os.getpid()
    server = os.fork()
    if server == 0:
        _serve(connection, job, me, function)
    _, status = os.waitpid(server, 0)
    try:
        send_status(connection, exit=os.waitstatus_to_exitcode(status))
    except OSError:  # the supervisor has hung up
        os._exit(1)
    os._exit(0)


def _serve(
    connection: socket.socket, job: Job, guardian: int, function: Function | None
) -> NoReturn:
    os.setsid()
    die_with(guardian)
    for number in (signal.SIGTERM, signal.SIGHUP):  # else what it starts could not be ended so
        signal.signal(number, signal.SIG_DFL)
    if function is None:
        function = _load(connection, job)
    _limit_memory(job.memory_bytes)
    send_status(connection, ready=True, guardian=guardian, server=os.getpid())
    for frame in read_frames(connection.fileno()):
        assert frame.kind == CALL
        kind, reply = _answer(function, frame.payload[LIMIT.size :])
        connection.sendall(packed(kind, frame.number, reply))
    os._exit(0)


def _answer(function: Function, arguments: bytes) -> tuple[bytes, bytes]:
    """(REPLY or LAST, JSON). Out of memory is a process's last reply: who knows what it left."""
    started = time.perf_counter()
    kind, status, value, detail = REPLY, "ok", None, ""
    try:
        value = function(*pickle.loads(arguments))
        reply = _reply(status, value, detail, time.perf_counter() - started)
        if len(reply) > LONGEST_REPLY:
            raise ValueError(f"the result has {len(reply)} bytes; at most {LONGEST_REPLY} can be")
        return kind, reply
    except BaseException as error:  # a failed call is data; sys.exit() is one, too
        if isinstance(error, MemoryError):
            kind = LAST
        value = None  # which may be large
        detail = describe(error)
    return kind, _reply("error", None, detail, time.perf_counter() - started)


def _reply(status: str, value: Any, detail: str, seconds: float) -> bytes:
    fields = {"status": status, "value": value, "detail": detail, "seconds": seconds}
    return json.dumps(fields).encode()


def describe(error: BaseException) -> str:
    """`ValueError: what it says`, cut, whatever its `__str__` does."""
    try:
        said = str(error)[:500]
    except Exception as second:  # the user's own class
        said = f"(its message raised {type(second).__name__})"
    return f"{type(error).__name__}: {said}"


def _load(connection: socket.socket, job: Job) -> Function:
    try:
        return job.load()
    except BaseException as error:  # whatever an import can raise is the user's to be told
        send_status(connection, error=describe(error))
        os._exit(1)


def _alone_with(connection: socket.socket) -> socket.socket:
    """Close every other descriptor: what a sibling holds open has no end."""
    kept = connection.detach()
    if kept != 3:
        os.dup2(kept, 3, inheritable=False)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    return socket.socket(fileno=3)


def _may_fork() -> bool:
    """A thread does not survive a fork, and a child's pipes cannot be shared."""
    return LINUX and len(os.listdir("/proc/self/task")) == 1 and not descendants([os.getpid()])


def _limit_memory(more: int) -> None:
    """Let this process map so many bytes more than it has."""
    if sys.platform != "win32":
        import resource

        mapped = 0
        if LINUX:
            with open("/proc/self/statm", encoding="ascii") as statm:
                mapped = int(statm.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = mapped + more if hard == resource.RLIM_INFINITY else min(mapped + more, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
