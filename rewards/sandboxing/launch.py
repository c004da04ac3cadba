"""The process between the trainer and strangers' programs: starts them, watches, kills, reports.

    python -I -S -c "...launch.main()"     one request a line, one report a line

It is small, has one thread, holds no secret and no environment, and lives on from run to run, for
its own start would cost more than a program's. It ends with the trainer: at the end of its input,
or when its parent is another.
"""

import base64
import contextlib
import json
import os
import select
import signal
import sys
import tempfile
import time
from typing import Any

import checking
import kernel
import watch
from folders import remove_tree, tree_mib
from plan import Limits, Plan
from program import Program, Running, start

TICK = 0.02  # seconds between two looks at what is used
REPORT_BYTES = 1 << 16


def main() -> None:
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the trainer's, which then closes us
    if sys.platform == "linux":
        kernel.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans come to us, so that we find them
    poller = select.poll()
    poller.register(0, select.POLLIN)
    lines = os.fdopen(0, "rb", buffering=0, closefd=False)
    while os.getppid() == parent:
        if not poller.poll(1000):
            continue
        line = _line(lines)
        if not line:
            break
        try:
            report = serve(json.loads(line), parent)
        except Exception as error:  # the trainer decides what that means
            watch.kill_below(os.getpid())
            report = {"broken": f"{type(error).__name__}: {error}"}
        _write_all(json.dumps(report).encode() + b"\n")
    watch.kill_below(os.getpid())


def _line(lines: Any) -> bytes:
    parts: list[bytes] = []
    while part := lines.read(1 << 16):
        parts.append(part)
        if part.endswith(b"\n"):
            return b"".join(parts)
    return b""


def _write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def serve(request: dict[str, Any], parent: int) -> dict[str, Any]:
    plan, limits = Plan(**request["plan"]), Limits(**request["limits"])
    folder = "" if plan.namespaces else _folder(plan)
    running: list[Running] = []
    began = time.monotonic()
    try:
        running = _start(request, plan, limits, folder)
        report = Supervisor(running, limits, folder, parent, began).watch()
    finally:
        gone = watch.kill_below(os.getpid())
        for each in running:
            each.close()
        if folder:
            remove_tree(folder)
    if not gone:
        report["broken"] = "some of the program's processes could not be killed"
    return report


def _folder(plan: Plan) -> str:
    folder = os.path.realpath(tempfile.mkdtemp(prefix="sandbox-"))
    if plan.uid is not None:
        os.chown(folder, plan.uid, plan.uid)
    return folder


def _start(request: dict[str, Any], plan: Plan, limits: Limits, folder: str) -> list[Running]:
    """The program alone, or first the checker and then the program, with a pipe each way."""
    if "check" not in request:
        files = request.get("files", {})
        return [start(Program(request["source"], request["stdin"], files), plan, limits, folder)]
    calls, calls_end = os.pipe()
    replies, replies_end = os.pipe()
    verdict, verdict_end = os.pipe()

    def body() -> None:
        for descriptor in (calls, replies_end, verdict):
            os.close(descriptor)
        checking.main(request["check"], replies, calls_end, verdict_end)

    checker = start(Program(body), plan, limits, folder)
    host = Program(request["source"], channel=(calls, replies_end))
    model = start(host, plan, limits, folder)
    for descriptor in (calls, calls_end, replies, replies_end, verdict_end):
        os.close(descriptor)
    checker.verdict = verdict
    return [checker, model]


class Supervisor:
    """Reads what the programs write and looks at what they use, until the first one ends."""

    def __init__(
        self, running: list[Running], limits: Limits, folder: str, parent: int, began: float
    ) -> None:
        self.running, self.limits, self.folder, self.parent = running, limits, folder, parent
        self.began = began
        self.ended = False
        self.measure_at = 0.0
        self.texts: dict[int, bytearray] = {}
        self.poller = select.poll()
        for each in running:
            for descriptor in (each.out, each.err, each.status, each.verdict):
                if descriptor >= 0:
                    os.set_blocking(descriptor, False)
                    self.poller.register(descriptor, select.POLLIN)
                    self.texts[descriptor] = bytearray()
        self.poller.register(0, select.POLLHUP)
        self.cpu_before = sum(os.times()[2:4])

    def watch(self) -> dict[str, Any]:
        status, looked = "", 0.0
        while not status:
            self._read(TICK)
            now = time.monotonic()
            if self.ended:
                break
            if os.getppid() != self.parent:
                raise SystemExit(1)  # nobody waits for the report; `serve` cleans up
            status = self._over_output()
            if not status and now - looked >= TICK:
                looked = now
                status = self._over(now)
        seconds = time.monotonic() - self.began
        watch.kill_below(os.getpid())
        self._read(0)
        return self._report(status or self._over_output(), seconds)

    def _over(self, now: float) -> str:
        """The limit that is passed, if one is."""
        pids = watch.below(os.getpid())
        used = watch.usage(pids, self.limits.memory_mib)
        used.cpu_s += sum(os.times()[2:4]) - self.cpu_before  # of those that have been reaped
        if now - self.began > self.limits.wall_s:
            return "timeout"
        if used.cpu_s > self.limits.cpu_s:
            return "cpu"
        if used.memory_mib > self.limits.memory_mib:
            return "memory"
        if used.tasks > self.limits.processes + 4:  # and those that are not the program's
            return "processes"
        if self.folder and now >= self.measure_at:
            size = tree_mib(self.folder)
            self.measure_at = now + 10 * (time.monotonic() - now)  # a tenth of the time at most
            if size > self.limits.disk_mib:
                return "disk"
        return ""

    def _over_output(self) -> str:
        size = sum(len(self.texts[fd]) for each in self.running for fd in (each.out, each.err))
        return "output" if size > self.limits.output_kib * 1024 else ""

    def _read(self, seconds: float) -> None:
        """At most what the limits allow, and a little more to see that there was more."""
        deadline = time.monotonic() + seconds
        while True:
            events = self.poller.poll(max(0, 1000 * (deadline - time.monotonic())))
            for descriptor, _ in events:
                if descriptor == 0:
                    raise SystemExit(1)  # nobody waits for the report; `serve` cleans up
                data = b""
                with contextlib.suppress(BlockingIOError):
                    data = os.read(descriptor, 1 << 16)
                self.texts[descriptor] += data
                if not data:
                    self.poller.unregister(descriptor)
                self.ended |= descriptor == self.running[0].status
            if not events or (self.ended and seconds) or self._over_output():
                return

    def _report(self, status: str, seconds: float) -> dict[str, Any]:
        ends = [_message(self.texts[each.status]) for each in self.running]
        broken = [end["broken"] for end in ends if "broken" in end]
        program = self.running[-1]
        most = int(self.limits.output_kib * 1024)
        report: dict[str, Any] = {
            "status": status,
            "exit": ends[-1].get("exit"),
            "stdout": base64.b64encode(self.texts[program.out][:most]).decode(),
            "stderr": base64.b64encode(self.texts[program.err][:most]).decode(),
            "seconds": seconds,
        }
        if broken:
            report["broken"] = broken[0]
        first = self.running[0]
        if first.verdict >= 0:
            report["verdict"] = _message(self.texts[first.verdict])
            report["checker"] = self.texts[first.err][-2000:].decode(errors="replace")
        return report


def _message(line: bytearray) -> dict[str, Any]:
    return json.loads(line) if line.endswith(b"\n") else {}
