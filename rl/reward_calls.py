"""Calling reward functions by TRL's protocol, and surviving them.

    f(prompts, completions, completion_ids, **columns, trainer_state, log_extra, log_metric)
        -> one float or None per completion;  sync or async

None means "not graded". An exception, a NaN or an infinity costs that reward of those completions
(None), is counted under rewards/NAME/errors and logged; it never stops a run. The wrong number of
values does: nothing sensible can be done with it.
"""

import asyncio
import inspect
import logging
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from transformers import TrainerState

from .generation import as_completion

logger = logging.getLogger(__name__)

RewardFunction = Callable[..., Sequence[float | None] | Awaitable[Sequence[float | None]]]


class RewardError(ValueError):
    """A reward function that cannot be used as it is."""


def _warn(name: str, why: str) -> None:
    logger.warning("reward %s %s; the completions concerned count as not graded", name, why)


@dataclass
class RewardCalls:
    """The rewards of a run.

    names, functions, weights: one entry per reward.
    on_error: told the name of a reward and what is wrong with what it did.
    extra, metrics: what the functions passed to `log_extra` and `log_metric` since `take_logs`.
    """

    names: list[str]
    functions: list[RewardFunction]
    weights: list[float]
    on_error: Callable[[str, str], None] = _warn
    extra: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list), init=False)
    metrics: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list), init=False)
    errors: dict[str, int] = field(default_factory=lambda: defaultdict(int), init=False)

    def __call__(
        self,
        rows: Sequence[dict[str, Any]],
        completions: Sequence[Any],
        completion_ids: Sequence[list[int]],
        trainer_state: Any = None,
    ) -> list[list[float]]:
        """One list per completion, with one value per reward; NaN where it was not graded."""
        arguments = self._arguments(rows, completions, completion_ids, trainer_state)
        outcomes = _finished([_attempt(function, arguments) for function in self.functions])
        columns = [
            self._checked(name, outcome, len(rows))
            for name, outcome in zip(self.names, outcomes, strict=True)
        ]
        return [list(values) for values in zip(*columns, strict=True)]

    def total(self, values: Sequence[float]) -> float:
        """Weighted sum of one completion's rewards; NaN if none of them graded it."""
        graded = [w * v for w, v in zip(self.weights, values, strict=True) if not math.isnan(v)]
        return sum(graded) if graded else math.nan

    def take_logs(self) -> tuple[dict[str, list[Any]], dict[str, list[float]], dict[str, int]]:
        """(extra columns, metrics, error counts) since the last call."""
        logs = dict(self.extra), dict(self.metrics), dict(self.errors)
        self.extra.clear()
        self.metrics.clear()
        self.errors.clear()
        return logs

    def _arguments(
        self,
        rows: Sequence[dict[str, Any]],
        completions: Sequence[Any],
        completion_ids: Sequence[list[int]],
        trainer_state: Any,
    ) -> dict[str, Any]:
        reserved = ("prompt", "completion", "completion_ids")
        columns = {key: [row[key] for row in rows] for key in rows[0] if key not in reserved}
        return {
            **columns,
            "prompts": [row["prompt"] for row in rows],
            "completions": list(completions),
            "completion_ids": list(completion_ids),
            "trainer_state": trainer_state,
            "log_extra": lambda column, values: self.extra[column].extend(values),
            "log_metric": lambda name, value: self.metrics[name].append(float(value)),
        }

    def _checked(self, name: str, outcome: Any, expected: int) -> list[float]:
        if isinstance(outcome, Exception | SystemExit):
            self.errors[name] += expected
            self.on_error(name, f"raised {type(outcome).__name__}: {outcome}")
            return [math.nan] * expected
        if isinstance(outcome, BaseException):
            raise outcome
        try:
            values = list(outcome)
        except TypeError:
            raise RewardError(
                f"reward {name} returned {outcome!r}; it must return a list with one float or None "
                f"per completion ({expected} here)"
            ) from None
        if len(values) != expected:
            raise RewardError(
                f"reward {name} returned {len(values)} values for {expected} completions; "
                "it must return one float or None for each"
            )
        numbers = [_number(name, value) for value in values]
        wrong = [x for x in numbers if x is not None and not math.isfinite(x)]
        if wrong:
            self.errors[name] += len(wrong)
            self.on_error(name, f"returned {wrong[0]} for {len(wrong)} of {expected} completions")
        return [x if x is not None and math.isfinite(x) else math.nan for x in numbers]


def _attempt(function: RewardFunction, arguments: dict[str, Any]) -> Any:
    try:
        return function(**arguments)
    except (Exception, SystemExit) as error:  # the user's own code may raise anything
        return error


def _finished(outcomes: list[Any]) -> list[Any]:
    """`outcomes` with the awaitable ones replaced by their results or exceptions."""
    pending = [outcome for outcome in outcomes if inspect.isawaitable(outcome)]
    results = iter(_run(pending) if pending else ())
    return [next(results) if inspect.isawaitable(outcome) else outcome for outcome in outcomes]


def _run(pending: list[Awaitable[Any]]) -> list[Any]:
    async def together() -> list[Any]:
        return await asyncio.gather(*pending, return_exceptions=True)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(together())
    with ThreadPoolExecutor(max_workers=1) as thread:  # a notebook: this thread's loop is taken
        return thread.submit(asyncio.run, together()).result()


def _number(name: str, value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, ArithmeticError, RuntimeError):  # the last one by tensors
        raise RewardError(
            f"reward {name} returned {value!r} for a completion; each value must be a float or None"
        ) from None


def probe(rewards: RewardCalls, rows: Sequence[dict[str, Any]]) -> None:
    """Call every reward on two trial completions before anything long starts.

    Raises RewardError if one raises, returns the wrong number of values, or something other than
    finite numbers and None.
    """
    trial = rows[:2]
    completions = [as_completion(row.get("completion") or "", row["prompt"]) for row in trial]
    failures: list[str] = []
    calls = replace(rewards, on_error=lambda name, why: failures.append(f"reward {name} {why}"))
    calls(trial, completions, [[] for _ in trial], TrainerState())
    if failures:
        raise RewardError(
            f"a trial call on {len(trial)} prompts of the task failed: " + "; ".join(failures)
        )
