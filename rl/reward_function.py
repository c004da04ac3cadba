"""A function or class of a recipe's `rewards:` -> a configured function with TRL's call.

    f(prompts, completions, **columns) -> one value per completion

A grader of one text, `score(completion, **columns)`, is lifted to it; which of the two a function
is shows in the names of its parameters. Either may be `async def`.
"""

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rewards import per_completion
from rewards.values import RAISED, raised
from rl.binding import Parameter, Report, bind, check_values, parameters


def configure(
    target: Callable[..., Any],
    settings: Mapping[str, Any],
    where: str,
    report: Report,
    reserved: tuple[str, ...] = (),
) -> Callable[..., Any] | None:
    """A class is constructed; a function gets its settings as keyword arguments.

    reserved: keys of the entry that are no settings, for the message about an unknown one.
    """
    if inspect.isclass(target):
        return bind(target, settings, where, report)
    known = dict(list(parameters(target).items())[1:])  # the first is the text
    for key in reserved:
        known[key] = Parameter(annotation=Any, required=False)
    keywords = check_values(settings, known, where, report)
    if keywords is None:
        return None
    check = getattr(target, "check_settings", None)  # a grader may refuse to run as it is set
    if check is not None:
        try:
            check(**keywords)
        except ValueError as error:
            report(where, str(error))
            return None
    return _with_keywords(target, keywords) if keywords else target


def _with_keywords(function: Any, keywords: Mapping[str, Any]) -> Callable[..., Any]:
    """A partial that keeps what the function says of itself, and its batch version."""
    bound: Any = functools.partial(function, **keywords)
    vars(bound).update(getattr(function, "__dict__", {}))
    bound.__name__ = getattr(function, "__name__", type(function).__name__)
    bound.__doc__ = function.__doc__
    if hasattr(function, "batch"):
        bound.batch = functools.partial(function.batch, **keywords)
    return bound


def is_grader(function: Callable[..., Any]) -> bool:
    """Whether it takes one completion; ValueError if it takes neither one nor many."""
    names = list(inspect.signature(function).parameters)
    if "completions" in names:
        return False
    if "completion" not in names[:1]:
        raise ValueError(
            f"takes ({', '.join(names)}); a reward takes (prompts, completions, **columns) and "
            "returns a list, a grader takes (completion, **columns) and returns one number"
        )
    return True


def is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine; also for an instance whose `__call__` is async."""
    while isinstance(function, functools.partial):
        function = function.func
    own = inspect.iscoroutinefunction(function)
    return own or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def as_reward(function: Callable[..., Any]) -> Callable[..., Any]:
    """TRL's call as it is, a grader lifted."""
    if not is_grader(function):
        return function
    start = per_completion(function, survives=True)
    if not is_async(function):
        return start

    async def finished(score: Any) -> Any:
        try:
            return await score if inspect.isawaitable(score) else score
        except RAISED as error:
            return raised(error)

    async def reward(prompts: Any, completions: Any, **columns: Any) -> list[Any]:
        return await asyncio.gather(*map(finished, start(prompts, completions, **columns)))

    reward.__name__ = reward.__qualname__ = start.__name__
    return reward
