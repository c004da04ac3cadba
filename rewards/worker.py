"""The other end of `rewards.worker_pool`: one process that runs one function, call after call.

    python -m rewards.worker MODULE:FUNCTION PARENT_PID MEMORY_BYTES

One line of JSON in, a list of arguments; one line of JSON out: {"ready": true} once the function
is imported, then {"value": ...} or {"error": "..."} for each call. It ends at the end of its input
and, on Linux, as soon as the thread that started it ends.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

PR_SET_PDEATHSIG = 1


def main(target: str, parent: int, memory_bytes: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes us
    _die_with(parent)
    _limit_memory(memory_bytes)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the function prints must not be read as a reply

    def reply(**message: Any) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    try:
        function = _resolve(target)
    except Exception as error:  # whatever an import can raise is the parent's to report
        reply(error=f"{type(error).__name__}: {error}")
        return
    reply(ready=True)
    for line in sys.stdin:
        try:
            value = function(*json.loads(line))
            reply(value=value)
        except Exception as error:  # a failed call is data, the worker lives on
            reply(error=f"{type(error).__name__}: {error}"[:500])


def _resolve(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before we asked to be told
            sys.exit(0)


def _limit_memory(memory_bytes: int) -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
