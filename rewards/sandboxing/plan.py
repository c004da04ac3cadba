"""What the two ends of the sandbox tell each other: the limits, and how to isolate."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one program may use; beyond it everything it started is killed.

    wall_s, cpu_s: seconds, the latter over all its processes together.
    memory_mib: of each process's address space, and of the memory of all of them together.
    file_mib: of one file. disk_mib: of all files together.
    processes: with their threads, the program itself included.
    output_kib: of standard output and error together.
    """

    wall_s: float = 10.0
    cpu_s: float = 10.0
    memory_mib: float = 512.0
    file_mib: float = 16.0
    disk_mib: float = 32.0
    processes: int = 32
    output_kib: float = 256.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < 1e9:
                raise ValueError(f"{name} is {value!r}; a limit is a positive number")
        if self.memory_mib < 64:
            raise ValueError(
                f"memory_mib is {self.memory_mib}; Python itself needs 64 MiB of address space"
            )


DEFAULT = Limits()


@dataclass(frozen=True)
class Plan:
    """How this machine isolates.

    namespaces: own user, pid, mount, network, ipc and uts namespaces.
    uid: of the unprivileged user that the program becomes; None: it stays the caller's.
    landlock: the kernel's ABI, 0 is none. seccomp: whether system calls can be filtered.
    readable: paths that exist for the program, read-only. python: the interpreter.
    packages: folders of installed packages.
    """

    namespaces: bool
    uid: int | None
    landlock: int
    seccomp: bool
    readable: Sequence[str]
    python: str
    packages: Sequence[str]

    @property
    def network(self) -> str:
        return "namespace" if self.namespaces else "refused sockets" if self.seccomp else "none"

    @property
    def files(self) -> str:
        if self.namespaces:
            return "namespace"
        return "landlock" if self.landlock and self.seccomp else "none"

    @property
    def processes(self) -> str:
        if self.namespaces:
            return "namespace"
        return "refused signals" if self.seccomp else "none"
