"""Advantages of hand-computed groups."""

import math
from typing import Any

import pytest
import torch

from rl.advantages import GroupAdvantage

NAN = math.nan
# Two groups of four. Means 1 and 2; sample standard deviations 1.1547005 (4/3) and 1.6329932 (8/3).
REWARDS = [0.0, 2.0, 2.0, 0.0, 2.0, 4.0, 2.0, 0.0]
STD_4, STD_8 = math.sqrt(4 / 3), math.sqrt(8 / 3)


def advantages(rewards: list[float], num_generations: int = 4, **settings: Any) -> list[float]:
    values = torch.tensor(rewards, dtype=torch.float64)
    return GroupAdvantage(**settings)(values, num_generations).tolist()


def close(expected: list[float]) -> Any:
    return pytest.approx(expected, abs=1e-9)


def test_mean_baseline() -> None:
    assert advantages(REWARDS, scale="none") == close([-1, 1, 1, -1, 0, 2, 0, -2])


def test_leave_one_out_compares_with_the_others() -> None:
    found = advantages(REWARDS, baseline="leave_one_out", scale="none")
    others = [4 / 3, 2 / 3, 2 / 3, 4 / 3, 2, 4 / 3, 2, 8 / 3]
    assert found == close([r - m for r, m in zip(REWARDS, others, strict=True)])


def test_group_scale_divides_by_each_groups_own_deviation() -> None:
    first, second = 1 / (STD_4 + 1e-4), 2 / (STD_8 + 1e-4)
    assert advantages(REWARDS) == close([-first, first, first, -first, 0, second, 0, -second])


def test_batch_scale_divides_by_the_deviation_of_all_rewards() -> None:
    """Mean of all is 1.5: squares 2.25 * 3 + 0.25 * 4 + 6.25 = 14 over 7."""
    one = 1 / (math.sqrt(2) + 1e-4)
    found = advantages(REWARDS, scale="batch")
    assert found == close([-one, one, one, -one, 0, 2 * one, 0, -2 * one])


def test_ungraded_completions_take_no_part_and_get_zero() -> None:
    """Graded 1 and 3: mean 2, deviation sqrt(2); the other group has a single grade, or none."""
    rewards = [NAN, 1.0, 3.0, NAN, NAN, 5.0, NAN, NAN, NAN, NAN, NAN, NAN]
    expected = [0, -1, 1, 0] + [0] * 8
    assert advantages(rewards, scale="none") == close(expected)
    loo = advantages(rewards, scale="none", baseline="leave_one_out")
    assert loo == close([0, -2, 2, 0] + [0] * 8)
    unit = 1 / (math.sqrt(2) + 1e-4)
    assert advantages(rewards) == close([0, -unit, unit, 0] + [0] * 8)
    # all grades: 1, 3, 5, mean 3, squares 4 + 0 + 4 over 2: deviation 2
    assert advantages(rewards, scale="batch") == close([x / 2.0001 for x in expected])


def test_a_batch_without_any_grade_gets_zero() -> None:
    for scale in ("none", "group", "batch"):
        assert advantages([NAN] * 4, scale=scale) == [0, 0, 0, 0]


@pytest.mark.parametrize("scale", ["none", "group", "batch"])
@pytest.mark.parametrize("baseline", ["mean", "leave_one_out"])
@pytest.mark.parametrize("weighting", ["linear", "softmax"])
def test_equal_rewards_give_exactly_zero(baseline: Any, scale: Any, weighting: Any) -> None:
    """Exactly: rows with advantage 0 are left out of the update. A fp32 mean of 0.1s is not 0.1."""
    advantage = GroupAdvantage(baseline=baseline, scale=scale, weighting=weighting)
    for size in range(1, 17):
        for value in torch.linspace(0.1, 2.9, 13):
            ended = torch.cat([value.expand(size), torch.full((size,), NAN)])
            assert advantage(ended, size).eq(0).all()


def test_negative_scale_shrinks_what_is_pushed_down() -> None:
    found = advantages(REWARDS, scale="none", negative_scale=0.25)
    assert found == close([-0.25, 1, 1, -0.25, 0, 2, 0, -0.5])
    assert min(advantages(REWARDS, negative_scale=0.0)) == 0


def test_groups_do_not_see_each_other() -> None:
    alone = advantages(REWARDS[:4])
    assert advantages(REWARDS)[:4] == close(alone)
    assert advantages([*REWARDS[:4], 100.0, -100.0, 3.0, 7.0])[:4] == close(alone)


def test_rewards_that_are_not_whole_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="5 rewards are not whole groups of 4"):
        advantages([1.0] * 5)


@pytest.mark.parametrize("scale", [-0.1, math.inf, math.nan])
def test_a_negative_scale_out_of_range_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match=r"use 0 \(ignore bad completions\) to 1"):
        GroupAdvantage(negative_scale=scale)


# --- wd1


def softmax(values: list[float]) -> list[float]:
    weights = [math.exp(x) for x in values]
    return [x / sum(weights) for x in weights]


@pytest.mark.parametrize("psi", [1.0, 0.25])
def test_softmax_weights_are_per_group(psi: float) -> None:
    """Centred rewards of two groups: -1, 1, 1, -1 and 0, 2, 0, -2."""
    found = advantages(REWARDS, scale="none", weighting="softmax", softmax_temperature=psi)
    expected = []
    for group in ([-1, 1, 1, -1], [0, 2, 0, -2]):
        up, down = softmax([x / psi for x in group]), softmax([-x / psi for x in group])
        expected += [a - b for a, b in zip(up, down, strict=True)]
    assert found == close(expected)


def test_ungraded_completions_have_no_softmax_weight() -> None:
    """Graded 1 and 3: centred -1 and 1; the other groups have one grade, or none."""
    rewards = [NAN, 1.0, 3.0, NAN, NAN, 5.0, NAN, NAN, NAN, NAN, NAN, NAN]
    up = softmax([-1.0, 1.0])
    expected = [0, up[0] - up[1], up[1] - up[0], 0] + [0] * 8
    assert advantages(rewards, scale="none", weighting="softmax") == close(expected)


def test_softmax_weights_come_before_the_negative_scale_and_after_the_others() -> None:
    settings = {"baseline": "leave_one_out", "scale": "batch"}
    plain = advantages(REWARDS, **settings)
    found = advantages(REWARDS, **settings, weighting="softmax", negative_scale=0.5)
    for i in (0, 4):
        up, down = softmax(plain[i : i + 4]), softmax([-x for x in plain[i : i + 4]])
        weights = [a - b for a, b in zip(up, down, strict=True)]
        assert found[i : i + 4] == close([w / 2 if w < 0 else w for w in weights])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"softmax_temperature": 0.0, "weighting": "softmax"}, "is 0.0; it must be positive"),
        ({"softmax_temperature": NAN, "weighting": "softmax"}, "is nan; it must be positive"),
        ({"softmax_temperature": 0.5}, "is 0.5, but weighting is 'linear'; it belongs to"),
    ],
)
def test_a_softmax_temperature_out_of_place_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GroupAdvantage(**settings)
