"""A name in a recipe -> the thing it names.

A name is a registry's key, or a plug-in: "package.module:attr" or "path/file.py:attr" (a path is
relative to the recipe, then to the current folder). One resolver, one error sentence, wherever a
name is allowed.
"""

import difflib
import importlib
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from rewards import target
from rewards.target import import_file


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` with the nearest known name, or nothing when none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else "."


def lookup(kind: str, name: str, registry: Mapping[str, object], folder: Path) -> object:
    """The registry's entry or the plug-in; ValueError names the nearest entry."""
    if name in registry:
        return registry[name]
    if _may_be_plug_in(name, registry):
        return plug_in(name, folder)
    raise _unknown(kind, name, registry)


def find_plug_in(name: str, registry: Mapping[str, object], folder: Path) -> None:
    """ValueError if `name` cannot be a plug-in, or its file is not there. Imports nothing."""
    if not _may_be_plug_in(name, registry):
        raise _unknown("reward", name, registry)
    source = _parts(name)[0]
    if source.endswith(".py"):
        find_file(source, folder)


def _may_be_plug_in(name: str, registry: Mapping[str, object]) -> bool:
    """Whether it has a colon, and not that of registered names: "parity:d1_gsm8k"."""
    source, colon, _ = name.partition(":")
    return bool(colon) and not any(known.startswith(f"{source}:") for known in registry)


def _unknown(kind: str, name: str, registry: Mapping[str, object]) -> ValueError:
    example = "my_reward" if kind == "reward" else f"My{kind.title()}"
    file = name if name.endswith(".py") else "my_file.py"
    return ValueError(
        f"unknown {kind} {name!r}{did_you_mean(name, registry)} "
        f'Known: {", ".join(sorted(registry))}. Your own: "{file}:{example}".'
    )


def plug_in(reference: str, folder: Path) -> object:
    """Import `module:attr`; every way that can fail is told as a ValueError about `reference`."""
    source, attribute = _parts(reference)
    path = find_file(source, folder) if source.endswith(".py") else None
    try:
        module = import_file(path) if path else importlib.import_module(source)
    except (Exception, SystemExit) as error:  # the plug-in's own code may raise anything
        raise ValueError(f"{reference!r} cannot be imported: {_describe(error)}") from error
    if not hasattr(module, attribute):
        public = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and not isinstance(value, ModuleType)
        ]
        raise ValueError(
            f"{reference!r}: {source} has no {attribute!r}{did_you_mean(attribute, public)} "
            f"It defines: {', '.join(sorted(public)) or 'nothing'}."
        )
    return getattr(module, attribute)


def _parts(reference: str) -> tuple[str, str]:
    source, _, attribute = reference.rpartition(":")
    if not source or not attribute.isidentifier():
        raise ValueError(
            f"{reference!r} is not a plug-in: write 'package.module:attr' or 'path/file.py:attr'"
        )
    return source, attribute


def find_file(source: str, folder: Path) -> Path:
    """`source` relative to the recipe's folder, then to the current one."""
    tried = [base / Path(source).expanduser() for base in (folder, Path.cwd())]
    for path in tried:
        if path.is_file():
            return path.resolve()
    places = dict.fromkeys(str(path) for path in tried)
    raise ValueError(f"no file {source!r}; looked for {' and '.join(places)}")


def _describe(error: BaseException) -> str:
    """One line: the exception, and where in the plug-in it was raised."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} ({error.filename}, line {error.lineno})"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    inside = [f for f in frames if f.filename not in (__file__, target.__file__)]
    place = f" ({inside[-1].filename}, line {inside[-1].lineno})" if inside else ""
    return f"{type(error).__name__}: {error}{place}"
