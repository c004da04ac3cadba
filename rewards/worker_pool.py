"""Run one function in a few processes that can be killed, with a time limit for each call.

    pool = WorkerPool("rewards.equivalence:equal", workers=2, limit=5.0)
    pool.run([("3", "3"), ("9^{9^{9^9}}", "3")])     # [Outcome("ok", True), Outcome("timeout")]

For code that may hang or eat memory on hostile text. A limit by SIGALRM would replace the trainer's
own alarm, work in the main thread only, and not interrupt one long multiplication; a process dies.
The clock runs from the moment an idle worker is handed the call: waiting in the queue is free.

One thread owns one worker for as long as both live. (Linux tells a child of the death of the
*thread* that started it, so a worker that a passing thread had started would die with that thread.)
The workers are started by the first call, by `subprocess`: nothing of `__main__` is imported again.
"""

import atexit
import json
import logging
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

logger = logging.getLogger(__name__)
START_LIMIT = 120.0  # seconds for a worker to import its function


@dataclass(frozen=True)
class Outcome:
    """What became of one call. `died`: the process ended by itself, out of memory for instance."""

    status: Literal["ok", "timeout", "died", "error"]
    value: Any = None
    detail: str = ""


class WorkerPool:
    """A function in killable processes; `counts` says how the calls so far ended."""

    def __init__(
        self, target: str, *, workers: int = 2, limit: float = 5.0, memory_gib: float = 4.0
    ) -> None:
        if workers < 1 or limit <= 0 or memory_gib <= 0:
            raise ValueError(
                f"workers, limit and memory_gib must be positive; got {workers}, {limit} and "
                f"{memory_gib}"
            )
        self.target, self.workers, self.limit = target, workers, limit
        self.memory_bytes = int(memory_gib * 2**30)
        self.counts: Counter[str] = Counter()
        self._start_afresh()

    def run(self, calls: Sequence[Sequence[Any]]) -> list[Outcome]:
        """The outcome of `function(*call)` for each call, in order. Any thread may ask."""
        if os.getpid() != self._pid:
            self._start_afresh()  # after a fork: the parent's threads and workers are not ours
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self.workers, f"worker of {self.target}")
                atexit.register(self.close)
            executor = self._executor
        outcomes = list(executor.map(self._call, calls))
        with self._lock:
            self.counts.update(outcome.status for outcome in outcomes)
        return outcomes

    def processes(self) -> list[int]:
        """The ids of the workers that are alive."""
        with self._lock:
            return [worker.process.pid for worker in self._alive]

    def close(self) -> None:
        """Kill the workers; calls under way end as `died`. A later `run` starts new ones."""
        with self._lock:
            executor, self._executor = self._executor, None
            alive = list(self._alive)
        atexit.unregister(self.close)
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
            for worker in alive:
                worker.process.kill()
            executor.shutdown(wait=True)
        for worker in list(self._alive):
            self._discard(worker)

    def _start_afresh(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._alive: set[_Worker] = set()
        self._mine = threading.local()

    def _call(self, arguments: Sequence[Any]) -> Outcome:
        worker: _Worker | None = getattr(self._mine, "worker", None)
        if worker is not None and worker.process.poll() is not None:
            self._discard(worker)
            worker = None
        if worker is None:
            worker = self._mine.worker = _Worker(self.target, self.memory_bytes)
            with self._lock:
                self._alive.add(worker)
            worker.wait_until_ready()
        outcome = worker.ask(arguments, self.limit)
        if outcome.status in ("timeout", "died"):
            logger.warning("%s%.200r: %s", self.target, tuple(arguments), outcome.detail)
            self._discard(worker)
            self._mine.worker = None
        return outcome

    def _discard(self, worker: "_Worker") -> None:
        worker.end()
        with self._lock:
            self._alive.discard(worker)


class _Worker:
    """One process and the two pipes to it."""

    def __init__(self, target: str, memory_bytes: int) -> None:
        root = str(Path(__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        self.target = target
        # -P: a file in the user's current folder must not be taken for one of ours
        command = [sys.executable, "-P", "-m", "rewards.worker", target, str(os.getpid())]
        self.process = subprocess.Popen(
            [*command, str(memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": path},
        )

    def wait_until_ready(self) -> None:
        line, _ = self._read_line(START_LIMIT)
        message: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        if "ready" not in message:
            self.end()
            why = message.get("error", f"it ended with exit code {self.process.returncode}")
            raise RuntimeError(
                f"the worker process for {self.target} did not start: {why}. To see more, run "
                f"{sys.executable} -c 'import {self.target.partition(':')[0]}'"
            )

    def ask(self, arguments: Sequence[Any], limit: float) -> Outcome:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(list(arguments)).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return Outcome("died", detail="its worker process had ended")
        line, late = self._read_line(limit)
        if not line.endswith(b"\n"):
            if late:
                return Outcome("timeout", detail=f"not done after {limit:g} s")
            return Outcome("died", detail=f"its process ended with {self.process.wait()}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            return Outcome("error", detail=reply["error"])
        return Outcome("ok", reply["value"])

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdout.close()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            logger.debug("worker %d had not read all of its input", self.process.pid)

    def _read_line(self, limit: float) -> tuple[bytes, bool]:
        """(one line, or less if the process ended first; whether we ended it for being late)."""
        assert self.process.stdout is not None
        late = threading.Event()

        def kill() -> None:
            late.set()
            self.process.kill()

        timer = threading.Timer(limit, kill)
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
            timer.join()
        return line, late.is_set()
