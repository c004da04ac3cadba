"""One case through one reward; the function that `rewards.validate` runs in worker processes.

A reward is named as in a recipe: "math", "my_rewards.py:score" or "package.module:score". It may
take one text, `score(completion, **columns)`, or be TRL's call, `f(prompts, completions,
**columns)`, sync or async; a dictionary of components counts as their sum.
"""

import asyncio
import functools
import inspect
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rewards import REWARDS
from rewards.columns import TRAINER_EXTRAS, Columns, columns_of
from rewards.target import add_to_path, resolve
from rewards.values import total, value_of, values_of


@functools.cache
def find_reward(reference: str) -> Callable[..., Any]:
    """The function of that name; ValueError if there is none or it cannot be imported."""
    if reference in REWARDS:
        return REWARDS[reference]
    source, _, name = reference.rpartition(":")
    ours = any(known.startswith(f"{source}:") for known in REWARDS)  # parity:...
    if not source or not name.isidentifier() or ours:
        known = ", ".join(sorted(REWARDS))
        raise ValueError(
            f"unknown reward {reference!r}. Known: auto, {known}. Your own: 'my_file.py:function' "
            "or 'package.module:function'"
        )
    add_to_path([os.getcwd()])  # a worker starts without it
    try:
        function = resolve(reference)
    except (Exception, SystemExit) as error:  # the user's own code may raise anything
        if isinstance(error, AttributeError) and error.name == name:
            raise ValueError(f"{reference!r}: {source} has no function {name!r}") from None
        raise ValueError(
            f"{reference!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(function):
        raise ValueError(f"{reference!r}: {source} has no function {name!r}")
    return function


def columns_needed(reward: Callable[..., Any]) -> Columns:
    """What a reward of either kind takes of the data set."""
    if not is_batch(reward):
        return columns_of(reward)
    own = columns_of(functools.partial(reward, prompts=None, completions=None))
    given = {"prompts", "completions", *TRAINER_EXTRAS}
    accepted = None if own.accepted is None else tuple(c for c in own.accepted if c not in given)
    required = tuple(c for c in own.required if c not in given)
    settings = tuple(name for name in own.settings if name not in given)
    return Columns(name=own.name, required=required, accepted=accepted, settings=settings)


def is_batch(reward: Callable[..., Any]) -> bool:
    """Whether it takes many completions, by TRL's call."""
    return "completions" in inspect.signature(reward).parameters


def with_solution(columns: Mapping[str, Any], needs: Columns) -> Mapping[str, Any]:
    """`gold` as the column `solution`, for a reward that cannot do without it."""
    if "solution" in needs.required and "solution" not in columns and "gold" in columns:
        return {**columns, "solution": columns["gold"]}
    return columns


def grade_case(
    reference: str,
    completion: str,
    columns: Mapping[str, Any],
    settings: Mapping[str, Any],
    in_thread: bool = False,
    watched: str | None = None,
) -> tuple[float | None, float, bool]:
    """(score, seconds, whether the file `watched` was made or changed).

    settings: passed on where the reward has a setting of that name.
    """
    reward = find_reward(reference)
    needs = columns_needed(reward)
    columns = with_solution(columns, needs)
    chosen = {
        name: value
        for name, value in columns.items()
        if (name in needs.accepted if needs.accepted is not None else name not in needs.settings)
    }
    settings = {name: value for name, value in settings.items() if name in needs.settings}
    call = functools.partial(_score, reward, completion, needs, chosen, settings)
    before = _trace(watched)
    start = time.perf_counter()
    if in_thread:
        with ThreadPoolExecutor(max_workers=1) as thread:
            score = thread.submit(call).result()
    else:
        score = call()
    return score, time.perf_counter() - start, _trace(watched) != before


def _score(
    reward: Callable[..., Any],
    completion: str,
    needs: Columns,
    columns: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> float | None:
    if is_batch(reward):
        ids = list(completion.encode("utf-8", "surrogatepass"))  # in place of tokens: bytes
        extras = {"completion_ids": [ids]} if _takes(reward, "completion_ids") else {}
        each = {name: [value] for name, value in columns.items()}
        call = reward(prompts=[""], completions=[completion], **extras, **each, **settings)
        (value,) = values_of(needs.name, _awaited(call), 1)
    elif any(columns[name] is None for name in needs.required):
        return None  # as in training: a row without its gold is not graded
    else:
        value = value_of(needs.name, _awaited(reward(completion, **columns, **settings)))
    return total(value)


def _takes(reward: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(reward).parameters


def _awaited(value: Any) -> Any:
    async def wait() -> Any:
        return await value

    return asyncio.run(wait()) if inspect.isawaitable(value) else value


def _trace(path: str | None) -> tuple[int, ...] | None:
    """What changes when a file is made or written."""
    try:
        found = os.stat(path) if path else None
    except OSError:
        return None
    return found and (found.st_ino, found.st_size, found.st_mtime_ns)
