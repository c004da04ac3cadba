"""The size of a folder that a stranger has filled, and its removal."""

import contextlib
import os

MOST_ENTRIES = 10_000  # a folder with more, or with deeper ones, counts as endless
DEEPEST = 64


def tree_mib(folder: str) -> float:
    """What the files below take; infinity for endless ones."""
    total, entries, folders = 0, 0, [(folder, 0)]
    while folders:
        path, depth = folders.pop()
        with contextlib.suppress(OSError), os.scandir(path) as found:
            for entry in found:
                entries += 1
                if entries > MOST_ENTRIES or depth > DEEPEST:
                    return float("inf")
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append((entry.path, depth + 1))
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total / 2**20


def remove_tree(folder: str) -> None:
    """However deep, for a process with one thread once nobody else can write there.

    (A recursive removal ends at the interpreter's recursion limit, and one by path names at the
    longest of these; so this one walks.)
    """
    os.chdir(folder)
    levels = [_only_folders()]
    names: list[str] = []
    while levels:
        if levels[-1]:
            name = levels[-1].pop()
            os.chmod(name, 0o700)
            os.chdir(name)
            names.append(name)
            levels.append(_only_folders())
            continue
        levels.pop()
        if names:
            os.chdir("..")
            os.rmdir(names.pop())
    os.chdir("/")
    os.rmdir(folder)


def _only_folders() -> list[str]:
    """Remove the files here; the names of the folders."""
    with os.scandir(".") as found:
        entries = list(found)
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.name)
    return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
