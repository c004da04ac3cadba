"""A reward that a server of the user's own computes: one JSON POST for every batch.

    rewards:
      - {name: http_endpoint, url: "http://localhost:8000/score", timeout: 30, batch_size: 32}

The request is {"prompts": [...], "completions": [...], "columns": {"answer": [...], ...}}; the
answer is a list, or {"rewards": [...]}, with a number, null (not graded) or an object of components
for each completion. Connection errors and the answers 429 and 5xx are tried again, after a pause
that doubles. What still fails, is late or makes no sense costs the completions of that request.
Redirects and proxies are not followed, so that a token goes to the server that was named.
"""

import contextlib
import http.client
import json
import math
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from socket import SHUT_RDWR
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from rewards.columns import TRAINER_EXTRAS
from rewards.values import Failed, RewardError, Value, values_of

LONGEST_ANSWER = 64 * 2**20  # bytes
LONGEST_PAUSE = 30.0  # seconds between two tries

Values = list[Value | Failed]


class Refused(Exception):
    """An answer that is of no use. again: whether to ask again, after `pause` seconds if told."""

    def __init__(self, why: str, *, again: bool = False, pause: float | None = None) -> None:
        super().__init__(why)
        self.again, self.pause = again, pause


class Late(Exception):
    """No whole answer within the limit."""


@dataclass(frozen=True, kw_only=True)
class HttpEndpoint:
    """
    timeout: seconds for one request, from its first byte to the answer's last.
    retries: further tries after a failed one; backoff: seconds before the first of them.
    batch_size: completions a request; concurrency: requests at a time.
    columns: those to send; all that there are if not given.
    token_env: the environment variable with a bearer token; it is not written anywhere.
    """

    url: str
    timeout: float = 60.0
    retries: int = 3
    backoff: float = 0.5
    batch_size: int = 32
    concurrency: int = 4
    columns: list[str] | None = None
    token_env: str | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # a port that is no number
            usable = False
            parts = urlsplit("")
        if "@" in parts.netloc:
            raise ValueError("url holds a password; put a token in an environment variable and "
                             "name that as token_env")  # fmt: skip
        if not usable or re.search(r"[\s\x00-\x20\x7f]", self.url):
            raise ValueError(f"url is {self.url!r}; use http://HOST:PORT/PATH or https://...")
        for name in ("timeout", "batch_size", "concurrency"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name} is {value}; use a positive number")
        for name in ("retries", "backoff"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"{name} is {value}; use 0 or a positive number")
        self._token()

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> Values:
        """One value per completion, or what went wrong with its request."""
        sent = self._to_send(columns, len(completions))
        parts = [
            {
                "prompts": list(prompts[at : at + self.batch_size]),
                "completions": list(completions[at : at + self.batch_size]),
                "columns": {name: rows[at : at + self.batch_size] for name, rows in sent.items()},
            }
            for at in range(0, len(completions), self.batch_size)
        ]
        with ThreadPoolExecutor(max_workers=self.concurrency) as threads:
            answers = threads.map(self._graded, parts)
            return [value for answer in answers for value in answer]

    def _to_send(self, columns: Mapping[str, Any], count: int) -> dict[str, list[Any]]:
        there = {name: rows for name, rows in columns.items() if name not in TRAINER_EXTRAS}
        missing = [name for name in self.columns or () if name not in there]
        if missing:
            raise RewardError(
                f"http_endpoint: columns names {', '.join(map(repr, missing))}; the data set has "
                f"{', '.join(sorted(there)) or 'no columns'}"
            )
        wanted = there if self.columns is None else {name: there[name] for name in self.columns}
        return {
            name: list(cast(Sequence[Any], rows))
            if isinstance(rows, list | tuple)
            else [rows] * count
            for name, rows in wanted.items()
        }

    def _graded(self, part: Mapping[str, Any]) -> Values:
        """What the server says of one batch."""
        expected = len(part["completions"])
        body = json.dumps(part, default=str).encode()
        try:
            return values_of("http_endpoint", self._ask(body), expected)
        except Late:
            why = f"had no answer from {self._where} within {self.timeout:g} s (`timeout`)"
            return [Failed("timeouts", why)] * expected
        except RewardError as error:
            why = str(error).removeprefix("reward http_endpoint ")
            return [Failed("exceptions", f"at {self._where} {why}")] * expected
        except Refused as error:
            return [Failed("exceptions", str(error))] * expected

    def _ask(self, body: bytes) -> Any:
        pause = self.backoff
        for left in range(self.retries, -1, -1):
            try:
                return self._ask_once(body)
            except Refused as error:
                if not (error.again and left):
                    tries = self.retries - left + 1
                    raise Refused(f"{error} (tried {tries} time{'s' * (tries > 1)})") from None
                time.sleep(min(LONGEST_PAUSE, pause if error.pause is None else error.pause))
                pause *= 2
        raise AssertionError("unreachable")

    def _ask_once(self, body: bytes) -> Any:
        connection = self._connection()
        late = threading.Event()
        sockets: list[Any] = []  # the connection forgets its own while the answer is read

        def stop() -> None:
            late.set()
            for socket in sockets:
                with contextlib.suppress(OSError):  # it is not connected any more
                    socket.shutdown(SHUT_RDWR)

        timer = threading.Timer(self.timeout, stop)
        timer.daemon = True
        timer.start()
        try:
            connection.connect()
            sockets.append(connection.sock)
            connection.request("POST", self._target, body, self._headers())
            response = connection.getresponse()
            answer = response.read(LONGEST_ANSWER + 1)
        except TimeoutError:
            raise Late from None
        except (OSError, http.client.HTTPException) as error:
            if late.is_set():
                raise Late from None
            why = f"could not reach {self._where}: {type(error).__name__}: {error}"
            raise Refused(why, again=True) from None
        finally:
            timer.cancel()
            connection.close()
        if late.is_set():
            raise Late
        return self._understood(response, answer)

    def _understood(self, response: http.client.HTTPResponse, answer: bytes) -> Any:
        status = response.status
        said = self._without_token(answer[:200].decode("utf-8", "replace"))
        if status != 200:
            again = status == 429 or status >= 500
            pause = _seconds(response.getheader("Retry-After"))
            raise Refused(f"got {status} from {self._where}: {said}", again=again, pause=pause)
        if len(answer) > LONGEST_ANSWER:
            raise Refused(f"got more than {LONGEST_ANSWER} bytes from {self._where}")
        try:
            values: Any = json.loads(answer)
        except (ValueError, RecursionError):
            raise Refused(f"got no JSON from {self._where}: {said}") from None
        if isinstance(values, dict):
            values = cast(dict[str, Any], values).get("rewards")
        if not isinstance(values, list):
            raise Refused(
                f'got {said} from {self._where}; it must answer [0.5, null, ...] or {{"rewards": '
                "[...]}"
            )
        return cast(list[Any], values)

    def _connection(self) -> http.client.HTTPConnection:
        parts = self._parts
        assert parts.hostname
        kind = http.client.HTTPSConnection if parts.scheme == "https" else (
            http.client.HTTPConnection
        )  # fmt: skip
        return kind(parts.hostname, parts.port, timeout=self.timeout)

    def _headers(self) -> dict[str, str]:
        token = self._token()
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        return {"Content-Type": "application/json", "Accept": "application/json", **bearer}

    def _token(self) -> str:
        if self.token_env is None:
            return ""
        token = os.environ.get(self.token_env, "").strip()
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            raise ValueError(
                f"token_env names the environment variable {self.token_env!r}, which "
                f"{'holds no token that a header could carry' if token else 'is not set'}"
            )
        return token

    def _without_token(self, text: str) -> str:
        token = self._token()
        return text.replace(token, "***") if token else text

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def _target(self) -> str:
        parts = self._parts
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    @property
    def _where(self) -> str:
        """The address without its query, which may hold a key."""
        return f"{self._parts.scheme}://{self._parts.netloc}{self._parts.path}"


def _seconds(retry_after: str | None) -> float | None:
    """The header as seconds; None if it is a date, or not there."""
    return float(retry_after) if retry_after and re.fullmatch(r"\d{1,9}", retry_after) else None
