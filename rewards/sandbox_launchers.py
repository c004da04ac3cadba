"""The processes that start programs, at this end: `sandboxing.launch` is the other one."""

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time
from dataclasses import asdict
from typing import Any

from rewards.sandbox_plans import INSIDE, PYTHON, SandboxError
from rewards.sandboxing.plan import Limits, Plan

GRACE = 20.0  # seconds that the launcher has beyond the wall time, to clean up
START = "import sys; sys.path.insert(0, sys.argv[1]); import launch; launch.main()"


class Launcher:
    """One process of `sandboxing.launch`; see there."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [PYTHON, "-I", "-S", "-c", START, str(INSIDE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
        )

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise SandboxError("the launcher of sandboxes has ended") from None
        line = _read_line(self.process.stdout.fileno(), time.monotonic() + seconds)
        if not line.endswith(b"\n"):
            raise SandboxError(f"the launcher of sandboxes gave no report in {seconds:g} s")
        report: dict[str, Any] = json.loads(line)
        if "broken" in report:
            raise SandboxError(report["broken"])
        return report

    def close(self) -> None:
        """It kills what it has started when its input ends."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()


def _read_line(descriptor: int, deadline: float) -> bytes:
    poller, data = select.poll(), b""
    poller.register(descriptor, select.POLLIN)
    while not data.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not poller.poll(1000 * left):
            break
        part = os.read(descriptor, 1 << 16)
        if not part:
            break
        data += part
    return data


class Launchers:
    """Those that are idle. Each thread that runs a program takes one, or starts one."""

    def __init__(self) -> None:
        self.owner, self.lock = os.getpid(), threading.Lock()
        self.idle: list[Launcher] = []

    def take(self) -> Launcher:
        if os.getpid() != self.owner:  # after a fork: the parent's are not ours
            self.__init__()
        with self.lock:
            if self.idle:
                return self.idle.pop()
        atexit.unregister(self.close)
        atexit.register(self.close)
        return Launcher()

    def put(self, launcher: Launcher) -> None:
        with self.lock:
            self.idle.append(launcher)

    def close(self) -> None:
        if os.getpid() != self.owner:
            return
        with self.lock:
            idle, self.idle = self.idle, []
        for launcher in idle:
            launcher.close()


launchers = Launchers()


def close() -> None:
    """End the idle launcher processes; a later `run` starts new ones."""
    launchers.close()


def serve(plan: Plan, limits: Limits, **request: Any) -> dict[str, Any]:
    launcher = launchers.take()
    try:
        whole = {**request, "plan": asdict(plan), "limits": asdict(limits)}
        report = launcher.ask(whole, limits.wall_s + GRACE)
    except BaseException:
        launcher.close()
        raise
    launchers.put(launcher)
    return report
