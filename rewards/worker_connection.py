"""The trainer's end of a worker pool: the supervisor's process, and a thread that reads from it."""

import base64
import contextlib
import json
import os
import pickle
import secrets
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rewards.worker_frames import CALL, STATUS, Frame, packed, read_frames
from rewards.worker_tree import descendants

PATIENCE = 10.0  # seconds for a supervisor to end everything, before it is killed itself
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# a plug-in that asked for its rank would else join the trainer's process group, and hang it
OF_A_RANK = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Outcome:
    """What became of one call. `died`: the process ended by itself, out of memory for instance.

    seconds: how long the call took, measured in the worker.
    """

    status: Literal["ok", "timeout", "died", "error"]
    value: Any = None
    detail: str = ""
    seconds: float = 0.0


class Batch:
    """Calls that were sent together. failure: why no worker could be started."""

    def __init__(self, size: int) -> None:
        self._outcomes: list[Outcome | None] = [None] * size
        self._left = size
        self.failure = ""
        self.done = threading.Event()
        if not size:
            self.done.set()

    def set(self, at: int, outcome: Outcome) -> None:
        if self._outcomes[at] is None:
            self._outcomes[at] = outcome
            self._left -= 1
            if not self._left:
                self.done.set()

    def fail(self, why: str) -> None:
        self.failure = why
        self.done.set()

    def outcomes(self) -> list[Outcome]:
        return [outcome for outcome in self._outcomes if outcome is not None]


class Connection:
    """A supervisor, from its start to its end."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        if sys.platform == "win32":
            raise RuntimeError(
                "worker processes need Linux or macOS; `in_process: true` in the entry of "
                "`rewards:` runs a reward without them"
            )
        self._pid = os.getpid()
        self._waiting: dict[int, tuple[Batch, int]] = {}
        self._lock = threading.Lock()  # of _waiting and ended
        self._writing = threading.Lock()
        self.ended = False
        # `-P`: a file in the current folder must not be taken for a module of Python's
        command = [sys.executable, "-P", "-m", "rewards.worker_supervisor"]
        here = [os.path.abspath(folder) for folder in sys.path]
        config = pickle.dumps({**job, "trainer": self._pid, "path": here})
        self.process = subprocess.Popen(
            [*command, base64.b64encode(config).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,  # Ctrl-C in the terminal is for the trainer
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._input, self._output = self.process.stdin, self.process.stdout
        self._reader = threading.Thread(target=self._read, name="worker pool", daemon=True)
        self._reader.start()

    def send(self, payloads: Sequence[bytes | Outcome]) -> Batch:
        """Ask for these calls; a payload that is an outcome is not sent."""
        batch = Batch(len(payloads))
        frames = bytearray()
        with self._lock:
            for at, payload in enumerate(payloads):
                if isinstance(payload, Outcome):
                    batch.set(at, payload)
                elif self.ended:
                    batch.set(at, GONE)
                else:
                    number = secrets.randbits(64)  # no worker may answer a call to come
                    self._waiting[number] = batch, at
                    frames += packed(CALL, number, payload)
        self._write(bytes(frames))
        return batch

    def cancel(self, batch: Batch) -> None:
        """Drop the calls of a batch, and kill those that run."""
        with self._lock:
            numbers = [number for number, (own, _) in self._waiting.items() if own is batch]
            for number in numbers:
                del self._waiting[number]
        self._write(packed(STATUS, 0, json.dumps({"cancel": numbers}).encode()))

    def processes(self) -> list[int]:
        if self.process.poll() is not None:
            return []
        return [self.process.pid, *sorted(descendants([self.process.pid]))]

    def close(self) -> None:
        """End the supervisor, which ends all others. Calls under way end as `died`."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self.ended = True
        with contextlib.suppress(OSError):
            self._hang_up()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        self._output.close()

    def let_go(self) -> None:
        """Close this process's copies of the pipes, and touch nothing else."""
        self.process.returncode = 0  # as far as this process is concerned
        self._input.close()
        self._output.close()

    def _write(self, frames: bytes) -> None:
        try:
            with self._writing:
                left = memoryview(frames)
                while left and not self._input.closed:
                    left = left[os.write(self._input.fileno(), left) :]
        except BrokenPipeError:
            return  # the reader tells all that wait
        except BaseException:  # Ctrl-C between two parts of a frame: the stream is torn
            self.close()
            raise

    def _hang_up(self) -> None:
        with self._writing:
            if not self._input.closed:
                self._input.close()

    def _read(self) -> None:
        failure = ""
        try:
            for frame in read_frames(self._output.fileno()):
                if frame.kind == STATUS:
                    failure = json.loads(frame.payload)["failed"]
                    break
                with self._lock:
                    batch, at = self._waiting.pop(frame.number, (None, 0))
                if batch is not None:
                    batch.set(at, _outcome(frame))
        finally:  # whatever happens here, nobody waits for ever
            with self._lock:
                self.ended = True
                left, self._waiting = list(self._waiting.values()), {}
            for batch, at in left:
                if failure:
                    batch.fail(failure)
                else:
                    batch.set(at, GONE)


GONE = Outcome("died", detail="the pool was closed, or its supervisor was killed")


def _outcome(frame: Frame) -> Outcome:
    """A worker's reply, which may be anything."""
    try:
        reply = json.loads(frame.payload)
        status, value, detail = reply["status"], reply["value"], reply["detail"]
        if status in ("ok", "timeout", "died", "error"):
            return Outcome(status, value, str(detail)[:1000], float(reply["seconds"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        return Outcome("died", detail=f"its process sent no valid reply: {error}"[:500])
    return Outcome("died", detail=f"its process sent the status {status!r:.50}")


def _environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in OF_A_RANK and not key.startswith("TORCHELASTIC_")
    }
    return kept | {"PYTHONPATH": path} | dict.fromkeys(ONE_THREAD, "1")
