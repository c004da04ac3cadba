"""Calling reward functions by TRL's protocol, and surviving them.

    f(prompts, completions, completion_ids, **columns, trainer_state, log_extra, log_metric)
        -> one value per completion;  sync or async

A value is a float, None ("not graded") or a dictionary of components: the reward is their sum, and
each is logged as rewards/NAME/COMPONENT. A time-out, a crash, an exception, a NaN or an infinity
costs that reward of the completions concerned (None); it is counted under rewards/NAME/timeouts,
/crashes or /exceptions (together /errors) and told; it never stops a run. So is one that `math` or
another grader of ours scores 0 all the same (`Unsettled`). The wrong number of values or something
that is no value does stop it: nothing sensible can be done with it.

A function given here runs in this process, where nothing can end one that hangs. The rewards of a
recipe that are the user's own run in worker processes, see `rl.pooled_reward`.
"""

import asyncio
import inspect
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from transformers import TrainerState

from rewards.columns import Columns, columns_of
from rewards.values import (
    FAILURES,
    RAISED,
    Failed,
    RewardError,
    Unsettled,
    Value,
    raised,
    total,
    values_of,
)

from .generation import as_completion

__all__ = ["RewardCalls", "RewardError", "RewardFunction", "probe"]

logger = logging.getLogger(__name__)

RewardFunction = Callable[..., Sequence[Value | Failed] | Awaitable[Sequence[Value | Failed]]]


def _warn(name: str, why: str) -> None:
    logger.warning("reward %s %s; the completions concerned count as not graded", name, why)


@dataclass
class RewardCalls:
    """The rewards of a run.

    names, functions, weights: one entry per reward.
    on_error: told the name of a reward and what is wrong with what it did.
    extra, metrics: what the functions passed to `log_extra` and `log_metric` since `take_logs`;
        also the components, and how often a call of a function failed in each way.
    failed: which completions of the last call a reward failed to grade.
    """

    names: list[str]
    functions: list[RewardFunction]
    weights: list[float]
    on_error: Callable[[str, str], None] = _warn
    extra: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list), init=False)
    metrics: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list), init=False)
    errors: dict[str, int] = field(default_factory=lambda: defaultdict(int), init=False)
    failed: list[bool] = field(default_factory=list[bool], init=False)

    def __call__(
        self,
        rows: Sequence[dict[str, Any]],
        completions: Sequence[Any],
        completion_ids: Sequence[list[int]],
        trainer_state: Any = None,
    ) -> list[list[float]]:
        """One list per completion, with one value per reward; NaN where it was not graded."""
        arguments = self._arguments(rows, completions, completion_ids, trainer_state)
        self.failed = [False] * len(rows)
        outcomes = _finished([_attempt(function, arguments) for function in self.functions])
        columns = [
            self._checked(name, outcome, len(rows))
            for name, outcome in zip(self.names, outcomes, strict=True)
        ]
        return [list(values) for values in zip(*columns, strict=True)]

    def totals(self, values: Sequence[Sequence[float]]) -> list[float]:
        """Of the completions of the last call. NaN where a grading failed, whatever the other
        rewards gave: 0 in its place would be a punishment, or beside penalties a prize."""
        return [
            math.nan if failed else self.total(each)
            for each, failed in zip(values, self.failed, strict=True)
        ]

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
        if isinstance(outcome, RewardError):
            raise outcome
        if isinstance(outcome, RAISED):
            outcome = [raised(outcome)] * expected
        elif isinstance(outcome, BaseException):
            raise outcome
        values = [_finite(value) for value in values_of(name, outcome, expected)]
        failed = [value for value in values if isinstance(value, Failed)]
        self.failed = [
            before or isinstance(value, Failed)
            for before, value in zip(self.failed, values, strict=True)
        ]
        self._tell(name, failed, expected)
        failed += [value.failed for value in values if isinstance(value, Unsettled)]
        for kind in FAILURES:
            count = sum(value.kind == kind for value in failed)
            self.metrics[f"rewards/{name}/{kind}"].append(float(count))
        if failed:
            self.errors[name] += len(failed)
        rewards = list[float]()
        for value in values:
            graded = total(value)
            rewards.append(math.nan if graded is None else graded)
            for component, part in value.items() if isinstance(value, Mapping) else ():
                if part is not None:
                    self.metrics[f"rewards/{name}/{component}"].append(part)
        return rewards

    def _tell(self, name: str, failed: Sequence[Failed], expected: int) -> None:
        """Once for every way in which grading failed, with the first of that kind."""
        for kind, count in Counter(value.kind for value in failed).items():
            first = next(value for value in failed if value.kind == kind)
            some = f" for {count} of {expected} completions" if count < expected else ""
            self.on_error(name, f"{first.why}{some}" + (f"; {first.fix}" if first.fix else ""))


def _attempt(function: RewardFunction, arguments: dict[str, Any]) -> Any:
    """What it returns: values, an awaitable, or what `start` gave; or what it raised."""
    call = getattr(function, "start", function)
    try:
        outcome = call(**arguments)
        return _Started(outcome) if call is not function else outcome  # pyright: ignore[reportArgumentType]
    except RAISED as error:
        return error


@dataclass(frozen=True)
class _Started:
    """Work that other processes are at, until `finish()`."""

    finish: Callable[[], Any]


def _finished(outcomes: list[Any]) -> list[Any]:
    """`outcomes` with those that are not there yet replaced by their results or exceptions."""
    pending = [outcome for outcome in outcomes if inspect.isawaitable(outcome)]
    results = iter(_run(pending) if pending else ())
    done = [next(results) if inspect.isawaitable(outcome) else outcome for outcome in outcomes]
    return [_attempt(o.finish, {}) if isinstance(o, _Started) else o for o in done]


def _run(pending: list[Awaitable[Any]]) -> list[Any]:
    async def one(reward: Awaitable[Any]) -> Any:
        try:
            return await reward
        except RAISED as error:
            return error

    async def together() -> list[Any]:
        return await asyncio.gather(*map(one, pending))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(together())
    with ThreadPoolExecutor(max_workers=1) as thread:  # a notebook: this thread's loop is taken
        return thread.submit(asyncio.run, together()).result()


def _finite(value: Value | Failed) -> Value | Failed:
    """The value, or a failure if it or one of its components is no finite number."""
    parts = value.values() if isinstance(value, Mapping) else [value]
    for part in parts:
        if isinstance(part, float) and not math.isfinite(part):
            return Failed("exceptions", f"returned {part}")
    return value


def _tell_shadowed(rewards: RewardCalls, row: Mapping[str, Any]) -> None:
    """Warn of columns that a grader does not get because they are its settings."""
    for name, function in zip(rewards.names, rewards.functions, strict=True):
        grader = getattr(function, "grader", None)
        own = getattr(function, "columns", None) if grader is None else columns_of(grader)
        for column in own.shadowed(row) if isinstance(own, Columns) else ():
            logger.warning(
                "reward %s is not given the column %r: a keyword-only parameter with a default is "
                "a setting, which its entry of `rewards:` may set. To be given the column, have it "
                "before the `*`; to keep the setting and end this warning, set it",
                name,
                column,
            )


def probe(rewards: RewardCalls, rows: Sequence[dict[str, Any]]) -> None:
    """Call every reward on two trial completions before anything long starts.

    Raises RewardError if one raises, returns the wrong number of values, or something other than
    finite numbers and None.
    """
    trial = rows[:2]
    _tell_shadowed(rewards, trial[0])
    completions = [as_completion(row.get("completion") or "", row["prompt"]) for row in trial]
    failures: list[str] = []
    calls = replace(rewards, on_error=lambda name, why: failures.append(f"reward {name} {why}"))
    calls(trial, completions, [[] for _ in trial], TrainerState())
    if failures:
        raise RewardError(
            f"a trial call on {len(trial)} prompts of the task failed: " + "; ".join(failures)
        )
