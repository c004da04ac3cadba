"""Trivial policies beside the model: what they earn, and when that is an alarm."""

import math
import random
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

import rl.reward_monitor as module
import rl.trivial_policies as trivial_policies_module
from rewards import reads_answer
from rl.grading import Grading
from rl.metrics import Metrics
from rl.reward_calls import RewardCalls
from rl.trivial_policies import earned, trivial_policies
from tests.reward_steps import EACH, GOLDS, new_grading, right, said, steps, take_step


@pytest.fixture
def grading() -> Grading:
    return new_grading()


def always_2(rng: random.Random, answer: str) -> str:
    return said(2)


def random_answer(rng: random.Random, **columns: Any) -> str:
    return said(rng.choice("1234"))


def of_another_task(rng: random.Random, puzzle: str) -> str:
    return puzzle


def broken(rng: random.Random, answer: str) -> str:
    raise IndexError(answer)


POLICIES = {
    "always_2": always_2, "random": random_answer, "other": of_another_task, "broken": broken,
}  # fmt: skip


@pytest.fixture
def with_policies(monkeypatch) -> Grading:
    monkeypatch.setitem(module.BASELINES, "right", POLICIES)
    monkeypatch.setitem(trivial_policies_module.REWARDS, "right", right)
    return new_grading()


def test_what_trivial_policies_earn(with_policies: Grading) -> None:
    logged = take_step(with_policies, [said(1)] * 8, GOLDS)
    assert logged["baseline/always_2"] == 0.25
    assert logged["baseline/random"] in (0.0, 0.25, 0.5, 0.75, 1.0)
    assert "baseline/other" not in logged  # nothing of it was graded
    assert "baseline/broken" not in logged
    assert logged["rewards/right"] == 0.25


def test_trivial_policies_do_not_depend_on_the_rank(with_policies: Grading) -> None:
    rewards = with_policies.rewards
    rows = [{"id": str(i), "prompt": "p", "answer": str(i % 4)} for i in range(64)]
    keys = [(0, row["id"], 3, 0) for row in rows]
    policies = trivial_policies(rewards, module.BASELINES)
    random.seed(1)
    whole = earned(policies, rewards, rows, keys)
    random.seed(2)
    halves = [earned(policies, rewards, rows[h], keys[h]) for h in (slice(32), slice(32, 64))]
    assert torch.equal(torch.cat(halves, dim=1).nan_to_num(9), whole.nan_to_num(9))
    other = earned(policies, rewards, rows, [(1, *key[1:]) for key in keys])
    assert not torch.equal(other[1], whole[1])  # another run, another draw
    assert torch.equal(other[0], whole[0])
    assert 0.05 < whole[1].mean() < 0.5  # 64 draws of probability 1/4: 0.25 with sd 0.054


def test_grading_trivial_policies_leaves_no_trace_in_the_models_logs(monkeypatch) -> None:
    def tells(completions: list[str], answer: list[str], log_extra: Any, log_metric: Any, **_: Any):
        log_extra("seen", completions)
        log_metric("calls", 1.0)
        return [1.0 if "2" in c else math.inf for c in completions]

    tells.grader = right
    monkeypatch.setitem(module.BASELINES, "right", {"always_3": lambda rng, answer: said(3)})
    monkeypatch.setitem(trivial_policies_module.REWARDS, "right", right)
    AcceleratorState._reset_state(reset_partial_state=True)
    grading = Grading(RewardCalls(["tells"], [tells], [1.0]), Accelerator(cpu=True), Metrics())
    logged = take_step(grading, [said(2)] * 8, GOLDS)
    assert logged["rewards/tells/errors"] == 0
    assert "baseline/always_3" not in logged
    assert grading.rewards.take_logs()[0] == {}


AHEAD = "the trivial policy 'always_2' earns 0.250 of reward right on the same prompts, the model 0"


def test_a_trivial_policy_that_earns_more(with_policies: Grading, caplog) -> None:
    steps(with_policies, [said(9)] * 8, GOLDS, count=8)
    assert caplog.text.count(AHEAD) == 1


@pytest.mark.parametrize("texts", [[said(2)] * 8, [said(1 + i // EACH) for i in range(8)]])
def test_a_model_that_is_not_behind(texts: list[str], with_policies: Grading, caplog) -> None:
    """It earns as much as the constant, or everything."""
    steps(with_policies, texts, GOLDS, count=8)
    assert AHEAD[:30] not in caplog.text


def test_a_lead_within_the_noise_is_none(with_policies: Grading, caplog) -> None:
    """Behind by 1/8 on average, once ahead and once behind: no proof in two steps."""
    take_step(with_policies, [said(1), "", said(2), "", "", "", "", ""], GOLDS, 0)
    take_step(with_policies, ["", "", said(2), said(2), "", "", "", ""], GOLDS, 1)
    assert AHEAD[:30] not in caplog.text


def test_two_rewards_with_trivial_policies_are_told_apart(monkeypatch) -> None:
    @reads_answer
    def also(completion: str, answer: str) -> float:
        return 2.0 * right(completion, answer)

    for name, grader in (("right", right), ("also", also)):
        monkeypatch.setitem(module.BASELINES, name, {"always_2": always_2})
        monkeypatch.setitem(trivial_policies_module.REWARDS, name, grader)
    logged = take_step(new_grading(right, also), [said(1)] * 8, GOLDS)
    assert logged["baseline/right/always_2"] == 0.25
    assert logged["baseline/also/always_2"] == 0.5


# --- the rest
