"""The stand-ins that tests call: each call is sent to the program's process, a value comes back."""

import builtins
import json
import os
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import plain_data

REPLY_BYTES = 4 * 2**20
EXCEPTIONS: dict[str, Any] = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type)
    and issubclass(kind, Exception)
    # these would end a loop of the test instead of failing it
    and not issubclass(kind, StopIteration | StopAsyncIteration)
}


class CandidateError(Exception):
    """What the program raised, where that is no builtin exception."""


class Failed(BaseException):
    """The test has failed, whatever its own `except` clauses say."""

    def __init__(self, status: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class BadTest(Exception):
    """The test itself does not work, so that it says nothing of the program."""


class Model:
    """The other process."""

    def __init__(self, replies: int, calls: int, extra: Sequence[str], in_place: bool) -> None:
        self.replies, self.calls, self.extra = os.fdopen(replies, "rb"), calls, extra
        self.in_place = in_place
        self.count = 0
        self.failure: Failed | None = None

    def load(self, programs: Sequence[str]) -> None:
        reply = self._ask({"programs": programs, "extra": self.extra})
        for kind in ("unreadable", "unloadable"):
            if kind in reply:
                self._fail("no_code" if kind == "unreadable" else "failed", str(reply[kind]))
        if reply.get("ready") is not True:
            self._fail("failed", "the program did not load")

    def call(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if self.failure is not None:  # the program's process may not be there any more
            raise self.failure
        self.count += 1
        try:
            sent = plain_data.encode(list(arguments), self.extra)
            words = plain_data.encode(keywords, self.extra)
        except (TypeError, RecursionError) as error:
            self._fail("bad_test", f"an argument of {name} cannot be passed on: {error}")
        reply = self._ask({"name": name, "args": sent, "keywords": words})
        if "missing" in reply:
            self._fail("failed", f"the program has no {name}")
        if "not_plain" in reply:
            self._fail("failed", f"{name} returned no plain value: {reply['not_plain']}")
        if "raised" in reply:
            raise _exception(reply)
        try:
            if self.in_place and reply.get("args") is not None:
                _update(arguments, plain_data.decode(reply["args"], self.extra))
            return plain_data.decode(reply["value"], self.extra)
        except Exception as error:  # whatever a forged reply makes of the decoder
            self._fail("failed", f"the reply of {name} cannot be read: {type(error).__name__}")

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            data = json.dumps(message).encode() + b"\n"
            while data:
                data = data[os.write(self.calls, data) :]
            line = self.replies.readline(REPLY_BYTES)
        except OSError:
            line = b""
        if not line:
            self._fail("died", "the program's process ended")
        try:
            reply: Any = json.loads(line)
        except (ValueError, RecursionError, MemoryError):
            reply = None
        if not line.endswith(b"\n") or type(reply) is not dict:
            self._fail("failed", "the program's process sent something else than a reply")
        return cast(dict[str, Any], reply)

    def _fail(self, status: str, detail: str) -> NoReturn:
        self.failure = Failed(status, detail)
        raise self.failure


def _exception(reply: dict[str, Any]) -> Exception:
    name, text = str(reply["raised"]), str(reply.get("text", ""))
    kind = EXCEPTIONS.get(name)
    if kind is not None:
        try:
            return kind(text)
        except TypeError:  # it takes other arguments
            return CandidateError(f"{name}: {text}")
    return CandidateError(f"{name}: {text}")


def _update(arguments: tuple[Any, ...], changed: list[Any]) -> None:
    """What the function did to the lists, dicts and sets that it was given."""
    for own, new in zip(arguments, changed, strict=True):
        if type(own) is not type(new):
            continue
        if isinstance(own, list | bytearray):
            cast(Any, own)[:] = new
        elif isinstance(own, dict | set):
            target = cast(Any, own)
            target.clear()
            target.update(new)


class StandIn:
    def __init__(self, model: Model, name: str) -> None:
        self._model = model
        self.__name__ = self.__qualname__ = name

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._model.call(self.__name__, arguments, keywords)
