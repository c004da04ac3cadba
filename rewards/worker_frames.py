"""What the processes of a worker pool say to each other: frames over pipes that never block.

    kind (one byte)   number of the call (8 bytes)   length (4 bytes)   payload

CALL: a time limit (8 bytes) and the pickled arguments. Only the trainer writes these.
REPLY, LAST: JSON, {"status", "value", "detail", "seconds"}; after LAST the sender must be replaced.
STATUS: JSON about the sender itself.
Nothing that comes out of a worker is ever unpickled: it may have graded hostile text.
"""

import json
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CALL, REPLY, LAST, STATUS = b"C", b"R", b"L", b"S"
HEADER = struct.Struct("!cQI")
LIMIT = struct.Struct("!d")
LONGEST_REPLY = 64 * 2**20  # bytes
CHUNK = 2**20


class BadFrame(ValueError):
    """Bytes that are no frame, or a longer one than is allowed."""


@dataclass(frozen=True)
class Frame:
    kind: bytes
    number: int
    payload: bytes


def packed(kind: bytes, number: int, payload: bytes) -> bytes:
    return HEADER.pack(kind, number, len(payload)) + payload


def send_status(connection: socket.socket, **fields: Any) -> None:
    connection.sendall(packed(STATUS, 0, json.dumps(fields).encode()))


def read_frames(descriptor: int) -> Iterator[Frame]:
    """The frames of a blocking descriptor until it ends."""
    buffer = Buffer(longest=2**32)
    while chunk := os.read(descriptor, CHUNK):
        yield from buffer.add(chunk)


class Buffer:
    """Bytes in, whole frames out."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self._bytes = bytearray()

    def add(self, chunk: bytes) -> list[Frame]:
        self._bytes += chunk
        frames: list[Frame] = []
        at = 0
        while len(self._bytes) - at >= HEADER.size:
            kind, number, length = HEADER.unpack_from(self._bytes, at)
            if kind not in (CALL, REPLY, LAST, STATUS) or length > self.longest:
                raise BadFrame(f"a frame of kind {kind!r} with {length} bytes")
            end = at + HEADER.size + length
            if len(self._bytes) < end:
                break
            frames.append(Frame(kind, number, bytes(self._bytes[at + HEADER.size : end])))
            at = end
        del self._bytes[:at]
        return frames


class Channel:
    """Frames to and from another process, for a loop that must never wait for one of them."""

    def __init__(self, read: int, write: int, longest: int) -> None:
        self.read, self.write = read, write
        self.ended = False
        self._in, self._out = Buffer(longest), bytearray()
        os.set_blocking(read, False)
        os.set_blocking(write, False)

    @property
    def has_more_to_send(self) -> bool:
        return bool(self._out) and not self.ended

    def send(self, kind: bytes, number: int, payload: bytes) -> None:
        self._out += packed(kind, number, payload)
        self.flush()

    def flush(self) -> None:
        """Send what the other end takes now."""
        try:
            while self._out:
                del self._out[: os.write(self.write, self._out[:CHUNK])]
        except BlockingIOError:
            return
        except OSError:  # the other end is gone; what it wrote before may still be read
            self._out.clear()

    def receive(self) -> list[Frame]:
        """The frames that are there. Sets `ended` at the end, and on bytes that are no frame."""
        try:
            chunk = os.read(self.read, CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            chunk = b""
        if not chunk:
            self.ended = True
            return []
        try:
            return self._in.add(chunk)
        except BadFrame:
            self.ended = True
            return []

    def close(self) -> None:
        self.ended = True
        for descriptor in {self.read, self.write}:
            os.close(descriptor)
