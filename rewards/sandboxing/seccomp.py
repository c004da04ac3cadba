"""A system-call filter: what a program without network and privileges has no business calling.

Refused calls fail with an error number (socket: EACCES, clone3: ENOSYS, so that the C library uses
clone, whose flags a filter can read; all others: EPERM). Numbers from the kernel's tables for
x86_64 and aarch64; on another machine `install` returns False.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable

from kernel import prctl

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMN = {"x86_64": 0, "aarch64": 1}

# name: (x86_64, aarch64); -1 where the architecture has no such call
REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # memory that no process's resident size shows
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    # operations of an io_uring pass by every filter
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "fanotify_init": (300, 262),
    "setpriority": (141, 140), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    "migrate_pages": (256, 238), "move_pages": (279, 239), "personality": (135, 92),
    "quotactl": (179, 60), "acct": (163, 89), "swapon": (167, 224), "reboot": (169, 142),
    "sethostname": (170, 161), "setdomainname": (171, 162), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
}  # fmt: skip
# without a mount namespace: what a Landlock rule does not cover and the owner of a file may do
ON_FILES = {
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466), "utime": (132, -1), "utimes": (235, -1),
    "futimesat": (261, -1), "utimensat": (280, 88), "truncate": (76, 45),
}  # fmt: skip
SIGNALS = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434),
}  # fmt: skip
SOCKET, CLONE, CLONE3 = (41, 198), (56, 220), (435, 435)
PRLIMIT, FCNTL, IOCTL = (302, 261), (72, 25), (16, 29)

NEW_NAMESPACES = 0x7E020000  # CLONE_NEW*: mount, cgroup, uts, ipc, user, pid, net
OWNER_COMMANDS = (8, 15)  # fcntl F_SETOWN, F_SETOWN_EX: signals to others by way of a pipe
OWNER_REQUESTS = (0x8901, 0x8902, 0x5412)  # ioctl FIOSETOWN, SIOCSPGRP; TIOCSTI types for the user

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


def install(*, own_signals_only: bool, files_too: bool) -> bool:
    """Filter this process and all it starts. False where the kernel or machine cannot."""
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        return False
    instructions = build(machine, own_signals_only=own_signals_only, files_too=files_too)
    code = b"".join(struct.pack("HBBI", *each) for each in instructions)
    buffer = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    program = Program(len(instructions), ctypes.addressof(buffer))
    return prctl(22, 2, ctypes.addressof(program)) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def build(machine: str, *, own_signals_only: bool, files_too: bool) -> list[Instruction]:
    column = COLUMN[machine]
    refuse = (RETURN, 0, 0, ERROR | errno.EPERM)
    program: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (EQUAL, 1, 0, ARCHITECTURES[machine]),
        refuse,
        (LOAD, 0, 0, NUMBER_AT),
    ]
    if machine == "x86_64":
        program += [(AT_LEAST, 0, 1, 0x40000000), refuse]  # the x32 calls have other numbers
    calls = dict(REFUSED) | (ON_FILES if files_too else {})
    for numbers in calls.values():
        program += _always(numbers[column], errno.EPERM)
    program += _always(SOCKET[column], errno.EACCES) + _always(CLONE3[column], errno.ENOSYS)
    program += _if_argument(CLONE[column], 0, [(ANY_BIT, NEW_NAMESPACES)])
    program += _if_argument(FCNTL[column], 1, [(EQUAL, value) for value in OWNER_COMMANDS])
    program += _if_argument(IOCTL[column], 1, [(EQUAL, value) for value in OWNER_REQUESTS])
    program += _unless_argument(PRLIMIT[column], 0, 0)
    if own_signals_only:
        for numbers in SIGNALS.values():
            program += _unless_argument(numbers[column], 0, os.getpid())
    return [*program, (RETURN, 0, 0, ALLOW)]


def _always(number: int, error: int) -> list[Instruction]:
    return [] if number < 0 else [(EQUAL, 0, 1, number), (RETURN, 0, 0, ERROR | error)]


def _if_argument(number: int, argument: int, tests: Iterable[tuple[int, int]]) -> list[Instruction]:
    """Refuse the call if the argument's low half passes a test."""
    body: list[Instruction] = [(LOAD, 0, 0, ARGUMENTS_AT + 8 * argument)]
    for code, operand in tests:
        body += [(code, 0, 1, operand), (RETURN, 0, 0, ERROR | errno.EPERM)]
    body.append((RETURN, 0, 0, ALLOW))
    return [(EQUAL, 0, len(body), number), *body]


def _unless_argument(number: int, argument: int, allowed: int) -> list[Instruction]:
    """Refuse the call unless the argument's low half is `allowed`."""
    return [
        (EQUAL, 0, 4, number),
        (LOAD, 0, 0, ARGUMENTS_AT + 8 * argument),
        (EQUAL, 0, 1, allowed),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ERROR | errno.EPERM),
    ]
