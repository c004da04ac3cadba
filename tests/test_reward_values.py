"""What a reward may give: components, and failures counted by kind."""

import math
from typing import Any

import pytest
import torch

from rewards.values import FAILURES, Failed, Unsettled
from rl.reward_calls import RewardCalls, RewardError
from tests.test_reward_calls import calls, returning, run, take_logs


def kinds(rewards: RewardCalls) -> dict[str, list[float]]:
    return {name: values for name, values in rewards.take_logs()[1].items()}


def test_ways_to_fail_are_counted_apart(caplog: pytest.LogCaptureFixture) -> None:
    late, crashed = Failed("timeouts", "was late"), Failed("crashes", "crashed")
    rewards = calls(returning([late, crashed]), returning([math.inf, 1.0]), returning([late, late]))
    found = run(rewards)
    assert [[math.isnan(x) for x in row] for row in found] == [[True] * 3, [True, False, True]]
    assert [r.getMessage().partition(";")[0] for r in caplog.records] == [
        "reward reward_0 was late for 1 of 2 completions",
        "reward reward_0 crashed for 1 of 2 completions",
        "reward reward_1 returned inf for 1 of 2 completions",
        "reward reward_2 was late",
    ]
    assert rewards.errors == {"reward_0": 2, "reward_1": 1, "reward_2": 2}
    counts = {"reward_0": (1, 1, 0), "reward_1": (0, 0, 1), "reward_2": (2, 0, 0)}
    assert kinds(rewards) == {
        f"rewards/{name}/{kind}": [float(n)]
        for name, each in counts.items()
        for kind, n in zip(FAILURES, each, strict=True)
    }


def test_a_score_that_stands_after_a_failure_is_paid_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`math` scores 0 what it could not compare in time, and the log must say so."""
    late = Unsettled(0.0, Failed("timeouts", "was late"))
    rewards = calls(returning([late, 1.0]))
    assert run(rewards) == [[0.0], [1.0]]
    assert rewards.errors == {"reward_0": 1}
    assert kinds(rewards)["rewards/reward_0/timeouts"] == [1.0]
    assert caplog.records == []  # the pool has told


def test_components_add_up_and_are_logged_by_name() -> None:
    values = [{"tests": 0.5, "style": 1}, {"tests": torch.tensor(0.25), "style": None}]
    rewards = calls(returning(values))
    assert run(rewards) == [[1.5], [0.25]]
    logged = take_logs(rewards)[1]
    assert logged == {"rewards/reward_0/tests": [0.5, 0.25], "rewards/reward_0/style": [1.0]}


@pytest.mark.parametrize("nothing", [{}, {"a": None}])
def test_components_that_are_not_there_are_not_graded(nothing: Any) -> None:
    rewards = calls(returning([nothing, 1.0]))
    first, second = run(rewards)
    assert math.isnan(first[0])
    assert second == [1.0]
    assert take_logs(rewards) == ({}, {}, {})


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_component_that_is_not_finite_costs_the_reward(bad: float) -> None:
    rewards = calls(returning([{"a": 1.0, "b": bad}, {"a": 2.0, "b": 0.0}]))
    first, second = run(rewards)
    assert math.isnan(first[0])
    assert second == [2.0]
    assert take_logs(rewards) == (
        {}, {"rewards/reward_0/a": [2.0], "rewards/reward_0/b": [0.0]}, {"reward_0": 1}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ({"errors": 1.0}, "a component called 'errors'; it must be a string other than crashes"),
        ({1: 1.0}, "a component called 1"),
        ({"": 1.0}, "a component called ''"),
        ({"a": "b"}, "'b' for a completion; each value must be a float or None"),
        ({"a": {"b": 1.0}}, "{'b': 1.0} for a completion"),
        ("3", "'3' for a completion"),
    ],
)
def test_what_is_no_component_stops_the_run(value: Any, what: str) -> None:
    with pytest.raises(RewardError, match=f"reward reward_0 returned {what}"):
        run(calls(returning([value, 1.0])))


def test_a_dictionary_is_not_a_list_of_values() -> None:
    with pytest.raises(RewardError, match="one float or None"):
        run(calls(returning({"a": 1.0, "b": 2.0})))


def test_work_in_other_processes_goes_on_while_others_are_graded() -> None:
    """All is started before the first is waited for."""
    order: list[str] = []

    class Elsewhere:
        def __call__(self, **columns: Any) -> Any:
            raise AssertionError

        def start(self, **columns: Any) -> Any:
            order.append("start")

            def finish() -> list[float]:
                order.append("finish")
                return [1.0, 2.0]

            return finish

    def here(**columns: Any) -> list[float]:
        order.append("here")
        return [3.0, 4.0]

    assert run(calls(Elsewhere(), here, Elsewhere())) == [[1.0, 3.0, 1.0], [2.0, 4.0, 2.0]]
    assert order == ["start", "here", "start", "finish", "finish"]
