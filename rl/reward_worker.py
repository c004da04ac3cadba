"""The worker's side of a reward of the user's own; nothing here runs in the trainer.

`load` imports and configures it, and gives the one function that the worker pool calls:

    ("describe",)                       what it is, or what is wrong with the recipe's entry
    ("one", text, columns)              one completion's value
    ("many", texts, columns, limit)     those of an async grader, or one with a batch version
    ("batch", arguments)                TRL's call, with what it logged

Values come back as plain numbers, see `rewards.values`.
"""

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rewards import REWARDS
from rewards.columns import columns_of
from rewards.extraction import extraction_of
from rewards.values import RewardError, value_of, values_of
from rewards.worker_server import describe as told
from rl.resolve import lookup
from rl.reward_function import configure, is_async, is_grader

Reply = dict[str, Any]


def load(
    reference: str, folder: str, settings: Mapping[str, Any], name: str, reserved: Sequence[str]
) -> Callable[..., Reply]:
    """A mistake in the entry is the description's to tell."""
    problems: list[tuple[str, str]] = []
    function = None
    try:
        target = lookup("reward", reference, REWARDS, Path(folder))
        if not callable(target):
            raise ValueError(f"{reference!r} is {target!r}, which cannot be called")
        function = configure(
            target,
            settings,
            "",
            lambda where, what: problems.append((where, what)),
            reserved=tuple(reserved),
        )
        if function is not None:
            return Served(function, name)
    except ValueError as error:
        problems.append(("", str(error)))
    return lambda *_: {"problems": problems}


class Served:
    """A configured reward, and how to call it."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name
        self.problem = ""
        try:
            self.is_grader = is_grader(function)
            self.columns = columns_of(function) if self.is_grader else None
        except ValueError as error:
            self.problem = str(error)

    def __call__(self, request: str, *arguments: Any) -> Reply:
        try:
            return getattr(self, f"_{request}")(*arguments)
        except RewardError as error:
            return {"wrong": str(error)}

    def _describe(self) -> Reply:
        if self.problem:
            return {"problems": [("", self.problem)], "signature": True}
        together = self.is_grader and (is_async(self.function) or hasattr(self.function, "batch"))
        columns = asdict(self.columns) if self.columns is not None else None
        read = extraction_of(self.function)
        reads = read.keywords if isinstance(read, functools.partial) else None  # style, mode
        return {"problems": [], "columns": columns, "together": together, "reads": reads}

    def _one(self, text: str, columns: Mapping[str, Any]) -> Reply:
        value = _finished(self.function(text, **columns))
        return {"values": [value_of(self.name, value)]}

    def _many(self, texts: Sequence[str], columns: Mapping[str, Any], limit: float) -> Reply:
        if not is_async(self.function):
            returned = _finished(getattr(self.function, "batch")(texts, **columns))  # noqa: B009
            return {"values": values_of(self.name, returned, len(texts))}
        each = [{column: rows[i] for column, rows in columns.items()} for i in range(len(texts))]
        scores = asyncio.run(_together(self.function, texts, each, limit))
        failed = [list(score) if isinstance(score, tuple) else None for score in scores]
        values = [None if isinstance(score, tuple) else score for score in scores]
        return {"values": [value_of(self.name, value) for value in values], "failed": failed}

    def _batch(self, arguments: Mapping[str, Any]) -> Reply:
        extra: list[tuple[str, list[Any]]] = []
        metrics: list[tuple[str, float]] = []
        returned = self.function(
            **{**arguments, "trainer_state": SimpleNamespace(**arguments["trainer_state"])},
            log_extra=lambda column, values: extra.append((column, _plain(list(values)))),
            log_metric=lambda name, value: metrics.append((name, float(value))),
        )
        values = values_of(self.name, _finished(returned), len(arguments["completions"]))
        return {"values": values, "extra": extra, "metrics": metrics}


async def _together(
    score: Callable[..., Any], texts: Sequence[str], columns: Sequence[Any], limit: float
) -> list[Any]:
    """All at once, each with its own limit; a pair (kind, why) for one that fails."""

    async def one(text: str, own: Mapping[str, Any]) -> Any:
        try:
            return await asyncio.wait_for(score(text, **own), limit)
        except TimeoutError:
            return "timeouts", ""
        except Exception as error:  # the user's own code may raise anything
            return "exceptions", told(error)

    return await asyncio.gather(*map(one, texts, columns))


def _finished(outcome: Any) -> Any:
    async def wait() -> Any:
        return await outcome

    return asyncio.run(wait()) if inspect.isawaitable(outcome) else outcome


def _plain(value: Any) -> Any:
    """What JSON can say of a value that a reward logs."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)
