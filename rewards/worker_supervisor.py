"""The process between the trainer and a pool's servers: holds the queue and the clock.

    python -m rewards.worker_supervisor JOB            (pickled, in base 64)

It never runs the function, so it is never busy, and a busy trainer makes no call late. It replaces
what dies, and ends with all that is below it when its input ends or its parent is another one:
then the trainer is gone, by SIGKILL perhaps.
"""

import base64
import contextlib
import json
import os
import pickle
import select
import signal
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from rewards.worker_children import Server, end_everything, fork
from rewards.worker_frames import (
    CALL,
    LAST,
    LONGEST_REPLY,
    REPLY,
    STATUS,
    Channel,
    Frame,
)
from rewards.worker_server import Job, run_guardian, run_template
from rewards.worker_tree import adopt_orphans, descendants, kill_all, kill_group, parents

FAILED_STARTS = 3  # in a row, after which no other is tried
LOOK_UP = 0.5  # seconds between two looks at the parent


class StartError(Exception):
    """The function cannot be had."""


@dataclass
class Supervisor:
    job: Job
    trainer: Channel
    queue: deque[Frame] = field(default_factory=deque[Frame])
    servers: list[Server] = field(default_factory=list[Server])
    template: Channel | None = None
    template_process: int = 0
    template_since: float = 0.0
    template_ready: bool = False
    forks: bool = True  # until a template says that it cannot
    failed_starts: int = 0
    spare: int = 0  # a server that waits, so that the next overrun costs no start
    suspects: set[int] = field(default_factory=set[int])  # one of them ended the template
    alone: deque[Frame] = field(default_factory=deque[Frame])  # those of them that must run again

    def run(self) -> None:
        try:
            while not self.trainer.ended and os.getppid() == self.job.trainer:
                self._start_and_hand_out()
                self._listen(self._patience())
                self._expire(time.monotonic())
                self._reap()
        except StartError as error:
            self.trainer.send(STATUS, 0, json.dumps({"failed": str(error)}).encode())
            while self.trainer.has_more_to_send:
                select.select([], [self.trainer.write], [], 1.0)
                self.trainer.flush()
        end_everything()

    def _start_and_hand_out(self) -> None:
        running = sum(server.call is not None for server in self.servers)
        wanted = min(self.job.workers, running + len(self.queue) + len(self.alone))
        if self.forks and self.template is None:
            self._start_template()
        for server in self.servers:
            free = server.process and server.call is None and running < self.job.workers
            # one whose template has died is about to: its next call would be blamed for that
            if free and not self._template_died(server) and (call := self._next(running)):
                server.call, server.since = call, time.monotonic()
                server.channel.send(CALL, call.number, call.payload)
                running += 1
        while len(self.servers) < wanted + self.spare and (self.template_ready or not self.forks):
            self._start_server()

    def _next(self, running: int) -> Frame | None:
        """The next call to hand out; a suspect runs with nothing beside it."""
        if self.suspects:
            return self.alone.popleft() if self.alone and not running else None
        return self.queue.popleft() if self.queue else None

    def _patience(self) -> float:
        """Seconds until something may be late."""
        now = time.monotonic()
        due = [server.since + server.limit for server in self.servers if server.call is not None]
        return max(0.0, min([LOOK_UP, *(moment - now for moment in due)]))

    def _listen(self, seconds: float) -> None:
        channels = [self.trainer, *(server.channel for server in self.servers)]
        if self.template is not None:
            channels.append(self.template)
        sending = [channel.write for channel in channels if channel.has_more_to_send]
        readable, writable, _ = select.select([c.read for c in channels], sending, [], seconds)
        for channel in channels:
            if channel.write in writable:
                channel.flush()
        if self.trainer.read in readable:
            for frame in self.trainer.receive():
                self._of_trainer(frame)
        for server in [server for server in self.servers if server.channel.read in readable]:
            self._of_server(server)
        if self.template is not None and self.template.read in readable:
            self._of_template()

    def _of_trainer(self, frame: Frame) -> None:
        if frame.kind == CALL:
            self.queue.append(frame)
            return
        cancelled = set(json.loads(frame.payload)["cancel"])
        self.suspects -= cancelled
        for waiting in (self.queue, self.alone):
            kept = [call for call in waiting if call.number not in cancelled]
            waiting.clear()
            waiting.extend(kept)
        for server in list(self.servers):
            if server.call is not None and server.call.number in cancelled:
                self._kill(server)

    def _of_server(self, server: Server) -> None:
        for frame in server.channel.receive():
            if frame.kind == STATUS:
                self._of_itself(server, frame.payload)
            elif server.call is not None and frame.number == server.call.number:
                self.trainer.send(REPLY, frame.number, frame.payload)
                self.suspects.discard(frame.number)
                server.call = None
                if frame.kind == LAST:
                    self._kill(server)
                    return
        if server.channel.ended or server.exit is not None:
            self._lost(server)

    def _of_itself(self, server: Server, payload: bytes) -> None:
        """Once it has had a call, a server can say nothing but that it has ended."""
        try:
            said: dict[str, Any] = json.loads(payload)
            if server.process:
                server.exit = int(said["exit"])
                return
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            server.channel.ended = True  # no guardian of ours wrote that
            return
        if "ready" in said:
            server.guardian, server.process = said["guardian"], said["server"]
            self.failed_starts = 0
        elif "exit" in said:
            server.exit = said["exit"]
        elif "error" in said:
            raise StartError(said["error"])

    def _lost(self, server: Server) -> None:
        """A server has ended. With the template, all do: then which call did it is found out."""
        how = f"with exit code {server.exit}" if server.exit is not None else "by itself"
        call = server.call
        if not server.process:
            self.failed_starts += 1
            if self.failed_starts >= FAILED_STARTS * self.job.workers:
                raise StartError(f"it ended {how}")
        elif call is not None and self._template_died(server) and call.number not in self.suspects:
            self.suspects.add(call.number)
            self.alone.append(call)
            server.call = None
        elif call is not None:
            self._tell(server, "died", f"its process ended {how}")
        self._kill(server)

    def _template_died(self, server: Server) -> bool:
        if server.template != self.template_process:
            return True
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return bool(server.template) and bool(os.waitid(os.P_PID, server.template, options))

    def _expire(self, now: float) -> None:
        for server in list(self.servers):
            if server.call is not None and now - server.since > server.limit:
                self._of_server(server)  # the reply may have come since
                if server in self.servers and server.call:
                    self._tell(server, "timeout", f"not done after {server.limit:g} s")
                    self._kill(server)
            elif not server.process and now - server.since > self.job.start_limit:
                self._kill(server)
                raise StartError(f"it was not ready after {self.job.start_limit:g} s")
        late = now - self.template_since > self.job.start_limit
        if self.template is not None and not self.template_ready and late:
            raise StartError(f"its import was not done after {self.job.start_limit:g} s")

    def _tell(self, server: Server, status: str, detail: str) -> None:
        assert server.call is not None
        seconds = time.monotonic() - server.since
        outcome = {"status": status, "value": None, "detail": detail, "seconds": seconds}
        self.trainer.send(REPLY, server.call.number, json.dumps(outcome).encode())
        self.suspects.discard(server.call.number)
        server.call = None

    def _kill(self, server: Server) -> None:
        """End a server with all that it started; also whatever nobody else can have started."""
        self.servers.remove(server)
        self.spare = int(self.forks)
        others = {other.guardian for other in self.servers} | {self.template_process}
        young = any(not other.guardian for other in self.servers)  # one of them may be its own

        def its_own() -> set[int]:
            own = parents()
            roots: set[int] = set()
            if own.get(server.guardian) in self._starters():
                roots.add(server.guardian)
            if not young:
                roots |= {pid for pid, parent in own.items() if parent == os.getpid()} - others
            return roots | descendants(roots, own)

        kill_all(its_own)
        if server.process and server.exit is None:
            kill_group(server.process)
        server.channel.close()

    def _starters(self) -> set[int]:
        return {os.getpid(), self.template_process} - {0}

    def _start_template(self) -> None:
        ours, its = socket.socketpair()
        self.template_since, self.template_ready = time.monotonic(), False
        self.template_process = fork(lambda me: run_template(its, self.job, me))
        its.close()
        self.template = _channel(ours)

    def _of_template(self) -> None:
        assert self.template is not None
        for frame in self.template.receive():
            said: dict[str, Any] = json.loads(frame.payload)
            if "error" in said:
                raise StartError(said["error"])
            self.template_ready, self.forks = True, said["forks"]
        if self.template.ended:
            self.template.close()
            kill_all(lambda: {self.template_process} | descendants([self.template_process]))
            _, status = os.waitpid(self.template_process, 0)
            if not self.template_ready:
                raise StartError(f"it ended with exit code {os.waitstatus_to_exitcode(status)}")
            self.template, self.template_process, self.template_ready = None, 0, False

    def _start_server(self) -> None:
        ours, its = socket.socketpair()
        if self.template is None:
            fork(lambda me: run_guardian(its, self.job, me))
        else:
            with (
                contextlib.suppress(OSError),  # it has just died, as the new server will show
                socket.socket(fileno=os.dup(self.template.read)) as template,
            ):
                socket.send_fds(template, [b"S"], [its.fileno()])
        its.close()
        self.servers.append(Server(_channel(ours), time.monotonic(), self.template_process))

    def _reap(self) -> None:
        """Take leave of children that have ended, but for the template, whose end is a message."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and (
                ended.si_pid != self.template_process or self.template is None
            ):
                os.waitpid(ended.si_pid, 0)


def _channel(connection: socket.socket) -> Channel:
    descriptor = connection.detach()
    return Channel(descriptor, descriptor, LONGEST_REPLY)


def main(job: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # for the trainer, whose end is ours
    adopt_orphans()
    trainer = Channel(os.dup(0), os.dup(1), longest=2**32)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    Supervisor(Job(**pickle.loads(base64.b64decode(job))), trainer).run()


if __name__ == "__main__":
    main(sys.argv[1])
