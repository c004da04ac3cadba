"""The HTTP endpoint against a server in this process: answers of every kind, late ones and none."""

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rewards.http_endpoint import HttpEndpoint
from rewards.values import Failed, RewardError

Answer = Callable[[dict[str, Any]], Any]


class Server:
    """answer: what a request gets; a value, bytes as they are, or (status, headers, bytes)."""

    def __init__(self) -> None:
        self.answer: Answer = lambda asked: [float(len(c)) for c in asked["completions"]]
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.released = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append(body)
                server.headers.append(dict(self.headers))
                answer = server.answer(body)
                if answer is None:
                    return  # hang up
                if isinstance(answer, list) and answer[:1] == ["pieces"]:
                    return self.trickle(answer[1:])
                if isinstance(answer, tuple):
                    status, headers, payload = answer
                else:
                    payload = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                    status, headers = 200, {"Content-Length": str(len(payload))}
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(payload)

            def trickle(self, pieces: list[bytes]) -> None:
                with contextlib.suppress(OSError):  # the other side has given up
                    for piece in pieces:
                        self.wfile.write(piece)
                        server.released.wait(0.1)

            def log_message(self, *_: Any) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/score?key=hidden"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self) -> None:
        self.released.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def asked_for(server: Server, count: int = 2, **settings: Any) -> Any:
    endpoint = HttpEndpoint(**{"url": server.url, "backoff": 0.01, **settings})
    completions = ["x" * i for i in range(count)]
    return endpoint(["p"] * count, completions, answer=list(range(count)), completion_ids=[[]])


def why(values: list[Any]) -> str:
    (failed,) = set(values)
    assert isinstance(failed, Failed)
    assert failed.kind == "exceptions"
    return failed.why


def test_what_is_sent_and_what_comes_back(server: Server) -> None:
    assert asked_for(server) == [0.0, 1.0]
    assert server.asked == [
        {"prompts": ["p", "p"], "completions": ["", "x"], "columns": {"answer": [0, 1]}}
    ]
    assert server.headers[0]["Content-Type"] == "application/json"
    assert "Authorization" not in server.headers[0]


def test_batches_come_back_in_order_also_if_the_first_is_the_slowest(server: Server) -> None:
    def slow_first(asked: dict[str, Any]) -> Any:
        time.sleep(0.3 if asked["completions"][0] == "" else 0)
        return [len(c) for c in asked["completions"]]

    server.answer = slow_first
    assert asked_for(server, count=7, batch_size=3) == [0, 1, 2, 3, 4, 5, 6]
    assert sorted(len(asked["completions"]) for asked in server.asked) == [1, 3, 3]
    assert all(len(a["columns"]["answer"]) == len(a["completions"]) for a in server.asked)


def test_numbers_nulls_components_and_an_object(server: Server) -> None:
    server.answer = lambda _: {"rewards": [None, {"a": 1, "b": None}]}
    assert asked_for(server) == [None, {"a": 1.0, "b": None}]


def test_columns_can_be_chosen(server: Server) -> None:
    asked_for(server, columns=[])
    assert server.asked[0]["columns"] == {}
    with pytest.raises(RewardError, match="columns names 'gold'; the data set has answer"):
        asked_for(server, columns=["gold"])


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ([1.0], "returned 1 values for 2 completions"),
        ([1.0, 2.0, 3.0], "returned 3 values for 2 completions"),
        (["good", 1.0], "returned 'good' for a completion"),
        ([[1.0], 1.0], r"returned \[1.0\] for a completion"),
        ({"scores": [1.0, 2.0]}, r'got {"scores": \[1.0, 2.0\]} from .*; it must answer'),
        (0.5, "got 0.5 from"),
        (b"<html>no", "got no JSON from .*: <html>no"),
        (b"[" * 10**5, "got no JSON from"),
        (b"\xff\xfe", "got no JSON from"),
        (b"", "got no JSON from"),
    ],
    ids=str,
)
def test_an_answer_that_makes_no_sense(server: Server, answer: Any, what: str) -> None:
    server.answer = lambda _: answer
    told = why(asked_for(server))
    assert "hidden" not in told
    assert re.match(what, told.replace(f"at {server.url.partition('?')[0]} ", ""))
    assert len(server.asked) == 1, "it would be the same again"


def test_nan_is_left_to_the_caller_who_counts_it(server: Server) -> None:
    server.answer = lambda _: b"[NaN, 1.0]"
    first, second = asked_for(server)
    assert first != first
    assert second == 1.0


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_is_busy_is_asked_again(server: Server, status: int) -> None:
    def twice_busy(asked: dict[str, Any]) -> Any:
        return (status, {"Retry-After": "0"}, b"busy") if len(server.asked) < 3 else [1, 2]

    server.answer = twice_busy
    assert asked_for(server) == [1.0, 2.0]
    assert len(server.asked) == 3


def test_a_server_that_hangs_up_is_asked_again(server: Server) -> None:
    server.answer = lambda asked: None if len(server.asked) < 2 else [1, 2]
    assert asked_for(server) == [1.0, 2.0]


def test_tries_end(server: Server) -> None:
    server.answer = lambda _: (503, {}, b"busy")
    assert why(asked_for(server, retries=2)).endswith("/score: busy (tried 3 times)")
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [301, 400, 401, 404])
def test_what_will_not_change_is_not_asked_again(server: Server, status: int) -> None:
    server.answer = lambda _: (status, {"Location": "http://127.0.0.1:1/"}, b"no such thing")
    assert why(asked_for(server)).startswith(f"got {status} from http://127.0.0.1:")
    assert len(server.asked) == 1


def test_nobody_there() -> None:
    endpoint = HttpEndpoint(url="http://127.0.0.1:9/", retries=1, backoff=0.01)
    told = why(endpoint(["p"], ["c"]))
    assert told.startswith("could not reach http://127.0.0.1:9/: ConnectionRefusedError")
    assert told.endswith("(tried 2 times)")


def test_a_failed_batch_costs_only_itself(server: Server) -> None:
    server.answer = lambda asked: (
        (400, {}, b"no") if "" in asked["completions"] else [1.0] * len(asked["completions"])
    )
    values = asked_for(server, count=4, batch_size=2)
    assert [isinstance(value, Failed) for value in values] == [True, True, False, False]


@pytest.mark.parametrize("kind", ["silent", "trickling header", "trickling body"])
def test_an_answer_that_does_not_end_is_late(server: Server, kind: str) -> None:
    """The limit is for the whole answer: a byte now and then does not extend it."""

    def slow(asked: dict[str, Any]) -> Any:
        if kind == "silent":
            server.released.wait(20)
            return [1.0, 2.0]
        start = b"HTTP/1.0 200 OK\r\n" + (b"" if kind == "trickling header" else b"\r\n")
        return ["pieces", start, *[b"x"] * 200]

    server.answer = slow
    started = time.monotonic()
    values = asked_for(server, timeout=0.5)
    assert time.monotonic() - started < 10
    assert {value.kind for value in values} == {"timeouts"}
    assert "within 0.5 s" in values[0].why
    assert len(server.asked) == 1


def test_the_token_is_sent_and_never_told(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("JUDGE_TOKEN", "sEcret1 ".strip())
    server.answer = lambda _: (401, {}, b"bad token sEcret1")
    endpoint = HttpEndpoint(url=server.url, token_env="JUDGE_TOKEN")
    told = why(endpoint(["p"], ["c"]))
    assert server.headers[0]["Authorization"] == "Bearer sEcret1"
    assert "bad token ***" in told
    assert "sEcret1" not in told + repr(endpoint) + caplog.text


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"url": "localhost:8000"}, "url is 'localhost:8000'; use http://"),
        ({"url": "ftp://x/"}, "url is"),
        ({"url": "http://"}, "url is"),
        ({"url": "http://x:port/"}, "url is"),
        ({"url": "http://x/ y\r\nHost: z"}, "url is"),
        ({"url": "http://me:pass@x/"}, "url holds a password"),
        ({"timeout": 0.0}, "timeout is 0.0; use a positive number"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"concurrency": -1}, "concurrency is -1"),
        ({"retries": -1}, "retries is -1; use 0 or"),
        ({"token_env": "NOT_THERE"}, "variable 'NOT_THERE', which is not set"),
        ({"token_env": "TWO_LINES"}, "holds no token that a header could carry"),
    ],
    ids=str,
)
def test_settings_that_cannot_be(
    settings: dict[str, Any], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWO_LINES", "abc\r\nHost: elsewhere")
    with pytest.raises(ValueError, match=what) as error:
        HttpEndpoint(**{"url": "http://localhost/", **settings})
    assert "abc" not in str(error.value)
    assert ":pass" not in str(error.value)
