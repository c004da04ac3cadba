"""A process in namespaces of its own, with a few read-only folders and one to write.

The first process there is 1, `start`'s child. When it ends, the kernel kills all others in it.
"""

import ctypes
import os
import platform
import signal
import stat

import kernel
from plan import Limits, Plan

NEW_NAMESPACES = 0x10000000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000 | 0x00020000
FOLDER = "/sandbox"
INSIDE = 1000  # user and group id in the sandbox
BIND, RECURSIVE, PRIVATE, NOSUID, NODEV, NOEXEC = 4096, 16384, 1 << 18, 2, 4, 8
MOUNT_READ_ONLY = 1
READ_ONLY, NO_SUID, NO_DEVICES = 0x1, 0x2, 0x4  # MOUNT_ATTR_*
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
HIDDEN = ("/sys", "/proc", "/mnt")  # one of them is covered by the new root while it is built


def clone() -> int:
    """Like fork, in new namespaces. Only for a process with one thread."""
    number = kernel.SYS_CLONE[platform.machine()]
    arguments = [ctypes.c_long(value) for value in (NEW_NAMESPACES | signal.SIGCHLD, 0, 0, 0, 0)]
    return kernel.syscall("clone", number, *arguments)


def write_maps(pid: int, uid: int | None) -> None:
    """Who the child is outside: `uid` if given (which takes root), else who we are."""
    own = uid is None
    if own and os.geteuid() != 0:
        with open(f"/proc/{pid}/setgroups", "w") as file:
            file.write("deny")
    for kind, outside in (
        ("uid_map", os.geteuid() if own else uid),
        ("gid_map", os.getegid() if own else uid),
    ):
        with open(f"/proc/{pid}/{kind}", "w") as file:
            file.write(f"{INSIDE} {outside} 1")


def become_inside_user() -> None:
    with open("/proc/self/setgroups") as file:
        if file.read().strip() == "allow":
            os.setgroups([])
    os.setresgid(INSIDE, INSIDE, INSIDE)
    os.setresuid(INSIDE, INSIDE, INSIDE)


def open_sources(plan: Plan) -> dict[str, int]:
    """What will be mounted, opened while we are still the user who may pass a private home."""
    return {path: os.open(path, os.O_PATH) for path in (*plan.readable, *DEVICES)}


def build_root(sources: dict[str, int], limits: Limits) -> None:
    """Leave the host's file system: afterwards only FOLDER can be written."""
    base = next(place for place in HIDDEN if os.path.isdir(place))
    kernel.mount("none", "/", None, RECURSIVE | PRIVATE)
    kernel.mount("sandbox", base, "tmpfs", NOSUID | NODEV, "size=1m,mode=755")
    for path, source in sources.items():
        attributes = NO_SUID if path in DEVICES else NO_SUID | NO_DEVICES | READ_ONLY
        _bind(source, base + path, attributes)
    for link, target in (("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
        if os.path.islink(f"/{link}") and not os.path.lexists(f"{base}/{link}"):
            os.symlink(target, f"{base}/{link}")
    os.mkdir(base + FOLDER)
    size = f"size={int(limits.disk_mib * 1024)}k,nr_inodes=4096,mode=700"
    kernel.mount("folder", base + FOLDER, "tmpfs", NOSUID | NODEV, size)
    for link in ("tmp", "dev/shm"):
        os.symlink(FOLDER, f"{base}/{link}")
    _mount_proc(f"{base}/proc")
    os.mkdir(f"{base}/old")
    os.chdir(base)
    number = kernel.SYS_PIVOT_ROOT[platform.machine()]
    kernel.syscall("pivot_root", number, b".", b"old")
    os.chdir("/")
    kernel.check(kernel.libc.umount2(b"/old", 2), "umount /old")  # MNT_DETACH
    os.rmdir("/old")
    kernel.mount_attributes("/", READ_ONLY | NO_SUID | NO_DEVICES, recursive=False)
    os.chdir(FOLDER)


def _bind(source: int, target: str, attributes: int) -> None:
    if stat.S_ISDIR(os.fstat(source).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    kernel.mount(f"/proc/self/fd/{source}", target, None, BIND | RECURSIVE)
    kernel.mount_attributes(target, attributes, recursive=True)


def _mount_proc(target: str) -> None:
    os.mkdir(target)
    flags = MOUNT_READ_ONLY | NOSUID | NODEV | NOEXEC
    try:
        kernel.mount("proc", target, "proc", flags, "subset=pid")
    except OSError:  # in a container that hides parts of its own; a program does without
        os.chmod(target, 0o555)
