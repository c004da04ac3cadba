"""Run one function in a few processes that can be killed, with a time limit for each call.

    pool = WorkerPool("rewards.equivalence:equal", workers=2, limit=5.0)
    pool.run([("3", "3"), ("9^{9^{9^9}}", "3")])     # [Outcome("ok", True), Outcome("timeout")]

For code that may hang, crash or eat memory. A limit by SIGALRM would replace the trainer's own
alarm, work in the main thread only, and not interrupt one long multiplication; a process dies.
The clock runs in `rewards.worker_supervisor`, from the moment an idle worker is handed the call:
waiting in the queue is free, and a trainer that is busy makes nothing late.

The first call starts the processes: nothing of `__main__` is imported again. Any thread may ask.
"""

import logging
import os
import pickle
import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rewards.worker_connection import Batch, Connection, Outcome
from rewards.worker_frames import LIMIT

__all__ = ["NotStarted", "Outcome", "Running", "WorkerPool"]

logger = logging.getLogger(__name__)
START_LIMIT = 120.0  # seconds for a worker to import its function


class WorkerPool:
    """A function in killable processes; `counts` says how the calls so far ended."""

    def __init__(
        self,
        target: str,
        *,
        workers: int = 2,
        limit: float = 5.0,
        memory_gib: float = 4.0,
        build: dict[str, Any] | None = None,
        start_limit: float = START_LIMIT,
        warns: bool = True,
    ) -> None:
        """
        target: `package.module:function` or `path/file.py:function`.
        limit: seconds for one call.
        memory_gib: what a worker may map beyond what it has once the function is imported.
        build: `target(**build)` makes the function, in the worker; plain data.
        start_limit: seconds for the import.
        warns: log a warning for calls that are killed or die.
        """
        if workers < 1 or limit <= 0 or memory_gib <= 0:
            raise ValueError(
                f"workers, limit and memory_gib must be positive; got {workers}, {limit} and "
                f"{memory_gib}"
            )
        self.target, self.workers, self.limit = target, workers, limit
        self.warns = warns
        self.counts: Counter[str] = Counter()
        self._job = {
            "target": target,
            "workers": workers,
            "memory_bytes": int(memory_gib * 2**30),
            "start_limit": start_limit,
            "build": build,
        }
        self._start_afresh()
        _pools.add(self)

    def run(self, calls: Sequence[Sequence[Any]], *, limit: float | None = None) -> list[Outcome]:
        """The outcome of `function(*call)` for each call, in order. Any thread may ask.

        limit: seconds for each of these calls, instead of the pool's.
        NotStarted if the function cannot be imported.
        """
        return self.start(calls, limit=limit).result()

    def start(self, calls: Sequence[Sequence[Any]], *, limit: float | None = None) -> "Running":
        """Hand in calls, and go on; `result()` waits for them."""
        payloads = [_pickled(call, limit or self.limit) for call in calls]
        with self._lock:
            if self._connection is None or self._connection.ended:
                if self._closing is not None:
                    self._closing()  # its pipes, and the process that nobody has waited for
                self._connection = Connection(self._job)
                # at the latest when Python ends
                self._closing = weakref.finalize(self, self._connection.close)
            connection = self._connection
        return Running(self, connection, connection.send(payloads), calls)

    def processes(self) -> list[int]:
        """The ids of all processes of this pool that are alive, the supervisor first."""
        connection = self._connection
        return connection.processes() if connection is not None else []

    def close(self) -> None:
        """Kill the workers; calls under way end as `died`. A later `run` starts new ones."""
        with self._lock:
            closing, self._closing = self._closing, None
            self._connection = None
        if closing is not None:
            closing()

    def _start_afresh(self) -> None:
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._closing: weakref.finalize[..., WorkerPool] | None = None

    def after_fork(self) -> None:
        """In a forked child: the parent's workers are not ours, and must not wait for our end."""
        connection, closing = self._connection, self._closing
        self._start_afresh()
        if closing is not None:
            closing.detach()
        if connection is not None:
            connection.let_go()

    def count(self, outcomes: Sequence[Outcome]) -> None:
        with self._lock:
            self.counts.update(outcome.status for outcome in outcomes)


class Running:
    """Calls that were handed in."""

    def __init__(
        self,
        pool: WorkerPool,
        connection: Connection,
        batch: Batch,
        calls: Sequence[Sequence[Any]],
    ) -> None:
        self._pool, self._connection, self._batch, self._calls = pool, connection, batch, calls

    def result(self) -> list[Outcome]:
        """The outcomes in the order of the calls, once all have ended."""
        try:
            self._batch.done.wait()
        except BaseException:  # Ctrl-C: nobody wants the answers any more
            self._connection.cancel(self._batch)
            raise
        if self._batch.failure:
            raise NotStarted(self._pool.target, self._batch.failure)
        outcomes = self._batch.outcomes()
        self._pool.count(outcomes)
        if self._pool.warns:
            self._warn(outcomes)
        return outcomes

    def _warn(self, outcomes: Sequence[Outcome]) -> None:
        bad = [i for i, outcome in enumerate(outcomes) if outcome.status in ("timeout", "died")]
        if bad:
            logger.warning(
                "%s: %d of %d calls were killed or died; the first was %.200r: %s",
                self._pool.target,
                len(bad),
                len(self._calls),
                tuple(self._calls[bad[0]]),
                outcomes[bad[0]].detail,
            )


class NotStarted(RuntimeError):
    """No worker could be started. why: what its import did."""

    def __init__(self, target: str, why: str) -> None:
        source = target.rpartition(":")[0]
        try_it = source if source.endswith(".py") else f"-c 'import {source}'"
        super().__init__(
            f"the worker process for {target} did not start: {why}. To see more, run "
            f"python {try_it}"
        )
        self.why = why


_pools: "weakref.WeakSet[WorkerPool]" = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _pickled(call: Sequence[Any], limit: float) -> bytes | Outcome:
    """The payload of a call; an outcome if it cannot be sent."""
    try:
        return LIMIT.pack(limit) + pickle.dumps(tuple(call), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # whatever an argument's own pickling raises
        return Outcome("error", detail=f"an argument cannot be sent to a worker: {error}"[:500])
