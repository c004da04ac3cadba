"""`package.module:function` or `path/file.py:function` -> the function.

A file may import its neighbours: its folder goes to the end of `sys.path`, where nothing in it can
be taken for a module of Python's or an installed one.
"""

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def resolve(target: str) -> Any:
    """Import what a target names; whatever its code raises is the caller's."""
    source, _, name = target.rpartition(":")
    path = Path(source)
    module = import_file(path) if source.endswith(".py") else importlib.import_module(source)
    return getattr(module, name)


def import_file(path: Path) -> ModuleType:
    """Import a file once: two names from one file share its module."""
    path = path.expanduser().resolve()
    name = f"plug_in_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    add_to_path([str(path.parent)])
    sys.modules[name] = module  # before it runs: dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def add_to_path(folders: list[str]) -> None:
    """Append the folders that are not there to `sys.path`."""
    sys.path += [folder for folder in dict.fromkeys(folders) if folder not in sys.path]
