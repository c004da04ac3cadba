"""Runs in the sandbox, beside the stranger's program: calls its functions when asked to.

Its text is preceded by that of plain_data. One line of JSON in, one out, on files 4 and 5. Nothing
here is to be trusted: the program can change all of it. What comes back is data, judged elsewhere.
"""

from __future__ import annotations

import json
import os
import sys

from plain_data import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def serve() -> None:
    requests = os.fdopen(4, "r", encoding="utf-8")
    replies = os.fdopen(5, "w", encoding="utf-8")
    nothing = os.open("/dev/null", os.O_WRONLY)
    os.dup2(nothing, 1)  # a program may print as much as it likes
    os.dup2(nothing, 2)

    def reply(**message: Any) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    first = json.loads(requests.readline())
    module = type(sys)("solution")
    sys.modules["solution"] = module
    error = "no program"
    for text in first["programs"]:
        try:
            code = compile(text, "solution.py", "exec")
            break
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as failure:
            error = f"{type(failure).__name__}: {failure}"[:500]
    else:
        reply(unreadable=error)
        return
    try:
        exec(code, module.__dict__)
    except BaseException as failure:
        reply(unloadable=f"{type(failure).__name__}: {failure}"[:500])
        return
    reply(ready=True)
    extra = first["extra"]
    for line in requests:
        call = json.loads(line)
        arguments, keywords = decode(call["args"], extra), decode(call["keywords"], extra)
        try:
            function = getattr(module, call["name"])
        except AttributeError:
            reply(missing=call["name"])
            continue
        try:
            value = function(*arguments, **keywords)
        except BaseException as failure:
            reply(raised=type(failure).__name__, text=str(failure)[:500])
            continue
        try:
            changed = encode(arguments, extra)
            reply(value=encode(value, extra), args=None if changed == call["args"] else changed)
        except (TypeError, ValueError, RecursionError) as failure:
            reply(not_plain=f"{type(failure).__name__}: {failure}"[:500])


serve()
