"""File access of a process and all it starts, limited by the kernel without any privilege.

Linux 5.13 and later (https://docs.kernel.org/userspace-api/landlock.html). Also: no tracing of
processes outside, which covers /proc/PID/environ; from ABI 6 on no signals to them either.
"""

import ctypes
import os
from collections.abc import Iterable

import kernel

CREATE, ADD_RULE, RESTRICT = 444, 445, 446
READ = 0b1101  # execute, read file, read directory
EVERYTHING = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}  # from 5 on with ioctl on devices
SIGNALS_FROM = 6
FILES_ONLY = 0x1 | 0x2 | 0x4 | 0x4000  # the rights that a rule on a file may have


def version() -> int:
    """The ABI of the running kernel, 0 where there is none."""
    return max(
        0,
        kernel.libc.syscall(ctypes.c_long(CREATE), None, ctypes.c_size_t(0), ctypes.c_uint32(1)),
    )


def restrict(abi: int, *, readable: Iterable[str], writable: Iterable[str]) -> None:
    """Nothing but these paths from now on, ever. Needs no_new_privs."""
    everything = EVERYTHING.get(abi, 0xFFFF)
    network = 0b11 if abi >= 4 else 0
    scope = 0b11 if abi >= SIGNALS_FROM else 0  # abstract unix sockets, signals
    attributes = (ctypes.c_uint64 * 3)(everything, network, scope)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    rules = kernel.syscall(
        "landlock_create_ruleset",
        CREATE,
        ctypes.byref(attributes),
        ctypes.c_size_t(size),
        ctypes.c_uint32(0),
    )
    for path in readable:
        _allow(rules, path, READ)
    for path in writable:
        _allow(rules, path, everything)
    kernel.syscall("landlock_restrict_self", RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))
    os.close(rules)


def _allow(rules: int, path: str, access: int) -> None:
    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))

    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    if not os.path.isdir(path):
        access &= FILES_ONLY
    rule = Beneath(access, place)
    kernel.syscall(
        f"landlock_add_rule {path}",
        ADD_RULE,
        ctypes.c_int(rules),
        ctypes.c_int(1),
        ctypes.byref(rule),
        ctypes.c_uint32(0),
    )
    os.close(place)
