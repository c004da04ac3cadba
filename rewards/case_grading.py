"""One case through one reward; the function that `rewards.validate` runs in worker processes.

A reward is named as in a recipe: "math", "my_rewards.py:score" or "package.module:score". It may
take one text, `score(completion, **columns)`, or be TRL's call, `f(prompts, completions,
**columns)`, sync or async; a dict of components counts as their sum.
"""

import asyncio
import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rewards import REWARDS
from rewards.base import TRAINER_EXTRAS

SETTINGS = ("mode", "prefill")  # what a case or the command line may set, where a reward has it


@functools.cache
def find_reward(reference: str) -> Callable[..., Any]:
    """The function of that name; ValueError if there is none or it cannot be imported."""
    source, _, name = reference.rpartition(":")
    if reference in REWARDS:
        return REWARDS[reference]
    if not source or not name.isidentifier():
        known = ", ".join(sorted(REWARDS))
        raise ValueError(
            f"unknown reward {reference!r}. Known: auto, {known}. Your own: 'my_file.py:function' "
            "or 'package.module:function'"
        )
    try:
        module = _import_file(Path(source)) if source.endswith(".py") else _import(source)
    except (Exception, SystemExit) as error:  # the user's own code may raise anything
        raise ValueError(
            f"{reference!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"{reference!r}: {source} has no function {name!r}")
    return function


def columns_of(reward: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """(columns it needs, all it takes); None: takes whatever there is."""
    parameters = list(inspect.signature(reward).parameters.values())
    given = ("prompts", "completions", "prompt", *SETTINGS, *TRAINER_EXTRAS)
    first = 0 if is_batch(reward) else 1
    named = [
        p
        for p in parameters[first:]
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in given
    ]
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    needed = tuple(p.name for p in named if p.default is p.empty)
    return needed, None if takes_all else tuple(p.name for p in named)


def is_batch(reward: Callable[..., Any]) -> bool:
    """Whether it takes many completions, by TRL's call."""
    return "completions" in inspect.signature(reward).parameters


def has_setting(reward: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(reward).parameters


def grade_case(
    reference: str,
    completion: str,
    columns: Mapping[str, Any],
    settings: Mapping[str, Any],
    in_thread: bool = False,
    watched: str | None = None,
) -> tuple[float | None, float, bool]:
    """(score, seconds, whether the file `watched` was made or changed).

    settings: "mode" and "prefill", passed on where the reward has a parameter of that name; a
        prefill that it does not know stands before the completion.
    """
    reward = find_reward(reference)
    known = {name: value for name, value in settings.items() if has_setting(reward, name)}
    if "prefill" not in known:
        completion = settings.get("prefill", "") + completion
    _, taken = columns_of(reward)
    chosen = {k: v for k, v in columns.items() if taken is None or k in taken}
    call = functools.partial(_score, reward, completion, chosen, known)
    before = _trace(watched)
    start = time.perf_counter()
    if in_thread:
        with ThreadPoolExecutor(max_workers=1) as thread:
            value = thread.submit(call).result()
    else:
        value = call()
    seconds = time.perf_counter() - start
    return _as_number(value), seconds, _trace(watched) != before


def _score(
    reward: Callable[..., Any],
    completion: str,
    columns: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Any:
    if is_batch(reward):
        each = {name: [value] for name, value in columns.items()}
        returned = _awaited(reward(prompts=[""], completions=[completion], **each, **settings))
        values: list[Any] = list(returned)
        if len(values) != 1:
            raise ValueError(f"returned {len(values)} values for 1 completion")
        return values[0]
    needed, _ = columns_of(reward)
    if any(columns[name] is None for name in needed):
        return None  # as in training: a row without its gold is not graded
    return _awaited(reward(completion, **columns, **settings))


def _awaited(value: Any) -> Any:
    async def wait() -> Any:
        return await value

    return asyncio.run(wait()) if inspect.isawaitable(value) else value


def _as_number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        parts: list[Any] = list(value.values())  # pyright: ignore[reportUnknownArgumentType]
        return sum(float(part) for part in parts if part is not None)
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"returned {value!r:.80}, which is no number, None or dict") from None


def _trace(path: str | None) -> tuple[int, ...] | None:
    """What changes when a file is made or written."""
    try:
        found = os.stat(path) if path else None
    except OSError:
        return None
    return found and (found.st_ino, found.st_size, found.st_mtime_ns)


def _import(module: str) -> Any:
    if os.getcwd() not in sys.path:  # a worker starts without it
        sys.path.append(os.getcwd())
    return importlib.import_module(module)


def _import_file(path: Path) -> Any:
    path = path.expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    name = f"plug_in_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses look their module up
    spec.loader.exec_module(module)
    return module
