"""An entry of a recipe's `rewards:` list -> a function with TRL's call.

    f(prompts, completions, **columns) -> list[float | None]

A grader of one text, `score(completion, **columns)`, is lifted to it; which of the two a plug-in is
shows in the name of its parameter. Either may be `async def`.
"""

import asyncio
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewards import REWARDS, per_completion
from rl.binding import Mismatch, Parameter, Report, bind, check_values, coerce, parameters
from rl.resolve import lookup


@dataclass(frozen=True, kw_only=True)
class BoundReward:
    """One reward of a recipe. name: what it is called in the logs."""

    name: str
    weight: float
    function: Callable[..., Any]


def bind_reward(entry: object, where: str, folder: Path, report: Report) -> BoundReward | None:
    """`name`, or `{name, weight, **settings}`; None after a report."""
    settings = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(settings, Mapping) or not isinstance(settings.get("name"), str):
        report(where, f"a reward is a name or {{name: ..., weight: 1.0, ...}}, got {entry!r}")
        return None
    reference: str = settings["name"]
    try:
        target = lookup("reward", reference, REWARDS, folder)
        weight = coerce(settings.get("weight", 1.0), float)
        if not math.isfinite(weight):
            raise Mismatch(("", f"is {weight}; use a finite number"))
    except Mismatch as error:
        report(f"{where}.weight", str(error))
        return None
    except ValueError as error:
        report(where, str(error))
        return None
    keywords = {key: value for key, value in settings.items() if key not in ("name", "weight")}
    if not callable(target):
        report(where, f"{reference!r} is {target!r}, which cannot be called")
        return None
    function = _configure(target, keywords, where, report)
    if function is None:
        return None
    try:
        lifted = as_reward(function)
    except ValueError as error:
        report(where, f"{reference!r} {error}")
        return None
    return BoundReward(name=reference.rpartition(":")[2], weight=weight, function=lifted)


def _configure(
    target: Callable[..., Any], settings: Mapping[str, Any], where: str, report: Report
) -> Callable[..., Any] | None:
    """A class is constructed; a function gets its settings as keyword arguments."""
    if inspect.isclass(target):
        return bind(target, settings, where, report)
    known = dict(list(parameters(target).items())[1:])  # the first is the text
    known["weight"] = Parameter(annotation=float, required=False, default=1.0)
    keywords = check_values(settings, known, where, report)
    if keywords is None:
        return None
    return _with_keywords(target, keywords) if keywords else target


def _with_keywords(function: Any, keywords: Mapping[str, Any]) -> Callable[..., Any]:
    """A partial that keeps the function's name and its batch version."""
    bound: Any = functools.partial(function, **keywords)
    bound.__name__, bound.__doc__ = function.__name__, function.__doc__
    if hasattr(function, "batch"):
        bound.batch = functools.partial(function.batch, **keywords)
    return bound


def as_reward(function: Callable[..., Any]) -> Callable[..., Any]:
    """TRL's call as it is, a grader lifted; told apart by their parameters' names."""
    names = list(inspect.signature(function).parameters)
    if "completions" in names:
        return function
    if "completion" not in names[:1]:
        raise ValueError(
            f"takes ({', '.join(names)}); a reward takes (prompts, completions, **columns) and "
            "returns a list, a grader takes (completion, **columns) and returns one number"
        )
    if not inspect.iscoroutinefunction(function):
        return per_completion(function)
    start = per_completion(function)

    async def reward(prompts: Any, completions: Any, **columns: Any) -> list[float | None]:
        started: list[Any] = start(prompts, completions, **columns)
        running = [score for score in started if score is not None]
        finished = iter(await asyncio.gather(*running))
        return [None if score is None else next(finished) for score in started]

    reward.__name__ = reward.__qualname__ = getattr(function, "__name__", "reward")
    return reward
