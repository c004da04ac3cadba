"""What a process gives up for good before it runs a stranger's program."""

import ctypes
import os
import resource
import sys

import kernel
import landlock
import seccomp
from plan import Limits, Plan

LAST_CAPABILITY = 63
DEVICES = ("/dev/zero", "/dev/random", "/dev/urandom")
FILES_OPEN = 128
STACK_BYTES = 8 * 2**20


def own_processes(uid: int) -> int:
    """How many processes and threads the user has now, for a limit that counts all of them."""
    total = 0
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.stat(f"/proc/{entry}").st_uid == uid:
                total += len(os.listdir(f"/proc/{entry}/task"))
        except OSError:  # it ended meanwhile
            continue
    return total


def limit_resources(limits: Limits, tasks: int | None) -> None:
    """tasks: for RLIMIT_NPROC; None leaves it alone."""
    cpu = max(1, int(limits.cpu_s + 0.999))
    memory = int(limits.memory_mib * 2**20)
    wanted = {
        "RLIMIT_CPU": cpu,
        "RLIMIT_AS": memory,
        "RLIMIT_FSIZE": int(limits.file_mib * 2**20),
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": FILES_OPEN,
        "RLIMIT_STACK": STACK_BYTES,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_NICE": 0,
        "RLIMIT_RTPRIO": 0,
    }
    if tasks is not None:
        wanted["RLIMIT_NPROC"] = tasks
    for name, value in wanted.items():
        kind = getattr(resource, name, None)  # macOS has not all of them
        if kind is None:
            continue
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (value, value))
        except (ValueError, OSError):
            if sys.platform == "linux":
                raise


def drop_capabilities() -> None:
    """None is left, and no program started later can have any."""
    for capability in range(LAST_CAPABILITY + 1):
        kernel.prctl(24, capability)  # PR_CAPBSET_DROP: refused without CAP_SETPCAP, see below
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
    nothing = (ctypes.c_uint32 * 6)()
    kernel.check(kernel.libc.capset(ctypes.byref(header), ctypes.byref(nothing)), "capset")
    kernel.check(kernel.prctl(38, 1), "no_new_privs")  # and with it the bounding set is idle


def refuse(plan: Plan, folder: str) -> None:
    """The filters. In namespaces the mounts do what Landlock does without them."""
    abi = 0 if plan.namespaces else plan.landlock
    if abi:
        writable = [folder, "/dev/null"]
        landlock.restrict(abi, readable=[*plan.readable, *DEVICES], writable=writable)
    if plan.seccomp:
        own = not plan.namespaces and abi < landlock.SIGNALS_FROM
        owns_files = not plan.namespaces and plan.uid is None
        seccomp.install(own_signals_only=own, files_too=owns_files)
