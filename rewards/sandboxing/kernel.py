"""The few calls of the C library that Python does not offer. Raises OSError, naming the call."""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)

SYS_CLONE = {"x86_64": 56, "aarch64": 220}
SYS_MOUNT_SETATTR = 442
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def check(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def prctl(option: int, *arguments: int) -> int:
    """The result, negative for a failure."""
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    return libc.prctl(option, *padded)


def syscall(what: str, number: int, *arguments: object) -> int:
    return check(libc.syscall(ctypes.c_long(number), *arguments), what)


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    result = libc.mount(
        source.encode(),
        target.encode(),
        None if kind is None else kind.encode(),
        ctypes.c_ulong(flags),
        data.encode() or None,
    )
    check(result, f"mount {source} on {target}")


def mount_attributes(target: str, attributes: int, *, recursive: bool) -> None:
    """Set MOUNT_ATTR_* on the mount at `target`, and on those below it."""

    class Attributes(ctypes.Structure):
        _fields_ = (
            ("set", ctypes.c_uint64),
            ("clear", ctypes.c_uint64),
            ("propagation", ctypes.c_uint64),
            ("userns", ctypes.c_uint64),
        )

    wanted = Attributes(attributes, 0, 0, 0)
    syscall(
        f"mount_setattr {target}",
        SYS_MOUNT_SETATTR,
        ctypes.c_int(-100),  # AT_FDCWD
        target.encode(),
        ctypes.c_uint(0x8000 if recursive else 0),  # AT_RECURSIVE
        ctypes.byref(wanted),
        ctypes.c_size_t(ctypes.sizeof(wanted)),
    )
