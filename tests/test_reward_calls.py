"""Reward functions of every kind: good, asynchronous, failing, and wrong."""

import asyncio
import functools
import logging
import math
from typing import Any

import pytest
import torch

from rewards import per_completion
from rewards.values import FAILURES
from rl.reward_calls import RewardCalls, RewardError, probe

ROWS = [
    {"id": "a", "prompt": "1+1=", "answer": "2", "completion": "gold 2"},
    {"id": "b", "prompt": "2+3=", "answer": "5", "completion": "gold 5"},
]


def calls(*functions: Any, weights: list[float] | None = None) -> RewardCalls:
    names = [f"reward_{i}" for i in range(len(functions))]
    weights = weights or [1.0] * len(functions)
    return RewardCalls(names=names, functions=list(functions), weights=weights)


def run(rewards: RewardCalls, **kwargs: Any) -> list[list[float]]:
    return rewards(ROWS, ["2", "6"], [[7, 8], [9]], **kwargs)


def take_logs(rewards: RewardCalls) -> Any:
    """(extra, metrics, errors) without the counts of failures, which are there in every call."""
    extra, metrics, errors = rewards.take_logs()
    return extra, {k: v for k, v in metrics.items() if k.split("/")[-1] not in FAILURES}, errors


def correct(prompts, completions, answer, **columns) -> list[float | None]:
    return [float(text == right) for text, right in zip(completions, answer, strict=True)]


async def correct_later(prompts, completions, answer, **columns) -> list[float | None]:
    await asyncio.sleep(0)
    return correct(prompts, completions, answer)


def returning(values: Any) -> Any:
    return lambda **_: values


def test_each_completion_gets_one_value_per_reward_in_order() -> None:
    rewards = calls(correct, correct_later, returning([0.25, 4]))
    assert run(rewards) == [[1.0, 1.0, 0.25], [0.0, 0.0, 4.0]]


def test_what_a_reward_is_given() -> None:
    given: dict[str, Any] = {}

    def reward(**columns: Any) -> list[float]:
        given.update(columns)
        return [0.0, 0.0]

    run(calls(reward), trainer_state="state")
    assert given.pop("log_extra") is not None
    assert given.pop("log_metric") is not None
    assert given == {
        "prompts": ["1+1=", "2+3="],
        "completions": ["2", "6"],
        "completion_ids": [[7, 8], [9]],
        "id": ["a", "b"],
        "answer": ["2", "5"],
        "trainer_state": "state",
    }


@pytest.mark.parametrize(
    "values",
    [[1, True], (1.0, 1.0), torch.ones(2), iter([1.0, 1.0])],
    ids=["list", "tuple", "tensor", "iterator"],
)
def test_numbers_of_any_kind_are_floats(values: Any) -> None:
    assert run(calls(returning(values))) == [[1.0], [1.0]]


def test_none_is_not_graded_and_not_an_error() -> None:
    rewards = calls(returning([None, 1.0]))
    first, second = run(rewards)
    assert math.isnan(first[0])
    assert second == [1.0]
    assert take_logs(rewards) == ({}, {}, {})


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_not_graded_counted_and_logged(
    wrong: float, caplog: pytest.LogCaptureFixture
) -> None:
    rewards = calls(returning([wrong, 1.0]))
    first, second = run(rewards)
    assert math.isnan(first[0])
    assert second == [1.0]
    assert rewards.take_logs()[2] == {"reward_0": 1}
    assert [r.getMessage() for r in caplog.records] == [
        f"reward reward_0 returned {wrong} for 1 of 2 completions; "
        "the completions concerned count as not graded"
    ]
    assert rewards.metrics == {}


async def fails_later(**columns: Any) -> list[float]:
    await asyncio.sleep(0)
    raise KeyError("answer")


def fails(**columns: Any) -> list[float]:
    raise KeyError("answer")


@pytest.mark.parametrize("error", [SystemExit(2), asyncio.CancelledError()])
@pytest.mark.parametrize("later", [False, True])
def test_a_reward_that_exits_or_is_cancelled_does_not_end_the_run(
    error: BaseException, later: bool
) -> None:
    async def leaves_later(**columns: Any) -> list[float]:
        raise error

    def leaves(**columns: Any) -> list[float]:
        raise error

    rewards = calls(leaves_later if later else leaves, correct)
    found = run(rewards)
    assert [row[1] for row in found] == [1.0, 0.0]
    assert all(math.isnan(row[0]) for row in found)
    assert rewards.errors == {"reward_0": 2}


@pytest.mark.parametrize("failing", [fails, fails_later])
def test_an_exception_costs_that_reward_only(
    failing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rewards = calls(correct, failing, correct_later)
    caplog.set_level(logging.WARNING)
    found = run(rewards)
    assert [row[0] for row in found] == [row[2] for row in found] == [1.0, 0.0]
    assert all(math.isnan(row[1]) for row in found)
    assert rewards.take_logs()[2] == {"reward_1": 2}
    assert "reward reward_1 raised KeyError: 'answer'" in caplog.text


def test_an_interrupt_is_not_swallowed() -> None:
    def interrupted(**columns: Any) -> list[float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(calls(interrupted))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0], "reward reward_0 returned 1 values for 2 completions; it must return one float"),
        ([1.0] * 3, "reward reward_0 returned 3 values for 2 completions"),
        (0.5, r"reward reward_0 returned 0.5; it must return a list .* \(2 here\)"),
        (None, "reward reward_0 returned None; it must return a list"),
        ([1.0, "good"], "reward reward_0 returned 'good' for a completion; each value must be a"),
        ([1.0, [1.0]], r"reward reward_0 returned \[1.0\] for a completion"),
        (torch.ones(2, 2), r"reward reward_0 returned tensor\(\[1., 1.\]\) for a completion"),
    ],
    ids=str,
)
def test_results_of_the_wrong_form_stop_the_run(values: Any, message: str) -> None:
    with pytest.raises(RewardError, match=message):
        run(calls(returning(values)))


def test_asynchronous_rewards_run_together() -> None:
    """Each waits for the other: one after the other would never end."""
    events = {"a": asyncio.Event(), "b": asyncio.Event()}

    def waiting(mine: str, other: str) -> Any:
        async def reward(**columns: Any) -> list[float]:
            events[mine].set()
            await asyncio.wait_for(events[other].wait(), timeout=10)
            return [1.0, 1.0]

        return reward

    assert run(calls(waiting("a", "b"), waiting("b", "a"))) == [[1.0, 1.0], [1.0, 1.0]]


def test_a_notebook_already_runs_an_event_loop() -> None:
    async def cell() -> list[list[float]]:
        return run(calls(correct, correct_later))

    assert asyncio.run(cell()) == [[1.0, 1.0], [0.0, 0.0]]


def test_a_plain_reward_may_run_an_event_loop_of_its_own() -> None:
    def reward(**columns: Any) -> Any:
        return asyncio.run(correct_later(**columns))

    assert run(calls(reward)) == [[1.0], [0.0]]


def test_logs_are_kept_until_taken() -> None:
    def reward(log_extra: Any, log_metric: Any, **columns: Any) -> list[float]:
        log_extra("parsed", ["two", "six"])
        log_metric("accuracy", torch.tensor(0.5))
        return [1.0, 0.0]

    rewards = calls(reward)
    run(rewards)
    run(rewards)
    assert take_logs(rewards) == ({"parsed": ["two", "six"] * 2}, {"accuracy": [0.5, 0.5]}, {})
    assert take_logs(rewards) == ({}, {}, {})


def test_totals_are_weighted_and_skip_what_was_not_graded() -> None:
    rewards = calls(correct, correct, weights=[2.0, 0.5])
    assert rewards.total([1.0, 3.0]) == 3.5
    assert rewards.total([math.nan, 3.0]) == 1.5
    assert rewards.total([0.0, math.nan]) == 0.0
    assert math.isnan(rewards.total([math.nan, math.nan]))


def test_a_failed_grading_leaves_no_total() -> None:
    """A time-out beside penalties would be a prize if it counted as 0."""

    def penalty(completions: Any, **columns: Any) -> list[float | None]:
        return [-1.0, -1.0]

    def failing(completions: Any, **columns: Any) -> list[float | None]:
        return [math.nan, None]

    rewards = calls(penalty, failing)
    totals = rewards.totals(run(rewards))
    assert math.isnan(totals[0])
    assert totals[1] == -1.0
    rewards.functions[1] = penalty
    assert rewards.totals(run(rewards)) == [-2.0, -2.0]  # failures are of the last call


def test_probe_calls_on_the_gold_answers_of_two_rows_and_keeps_no_logs() -> None:
    seen: list[Any] = []

    def reward(completions: Any, trainer_state: Any, log_metric: Any, **columns: Any) -> list[Any]:
        log_metric("steps", trainer_state.global_step)
        seen.extend(completions)
        return [None, 1.0]

    rewards = calls(reward)
    probe(rewards, [*ROWS, {"id": "c", "prompt": "3+3=", "answer": "6"}])
    assert seen == ["gold 2", "gold 5"]
    assert take_logs(rewards) == ({}, {}, {})


def test_probe_passes_messages_where_prompts_are_messages() -> None:
    seen: list[Any] = []
    row = {"prompt": [{"role": "user", "content": "hi"}]}
    probe(calls(lambda completions, **_: seen.extend(completions) or [1.0]), [row])
    assert seen == [[{"role": "assistant", "content": ""}]]


def test_probe_tells_of_a_column_that_is_taken_for_a_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def score(completion: str, *, answer: str = "") -> float:
        return float(completion == answer)

    def told() -> list[str]:
        caplog.clear()
        probe(calls(per_completion(functools.partial(score, **bound))), ROWS)
        return [record.getMessage() for record in caplog.records]

    bound: dict[str, str] = {}
    (message,) = told()
    assert "reward reward_0 is not given the column 'answer': a keyword-only parameter" in message
    bound = {"answer": "5"}
    assert told() == []


@pytest.mark.parametrize("wrong", [fails, fails_later, returning([math.nan, 1.0])])
def test_probe_names_every_reward_that_fails(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    rewards = calls(correct, wrong, fails)
    with pytest.raises(RewardError, match=r"a trial call on 2 prompts of the task failed: ") as e:
        probe(rewards, ROWS)
    assert "reward reward_1 r" in str(e.value)
    assert str(e.value).endswith("; reward reward_2 raised KeyError: 'answer'")
    assert not caplog.records
    assert take_logs(rewards) == ({}, {}, {})
    run(rewards)
    assert caplog.records, "after the trial, failures are logged and not fatal"
