"""StableDRL's weights by hand."""

import math
from typing import Any

import pytest
import torch

from rl.objectives import SelfNormalized

from .cases import case, estimate, gradients, tensor, totals_of, values

# three rows with ratios 1/2, 2 and e^6 of whole sequences, the last one capped at 5
NEW = estimate([[math.log(0.5), 0.0], [math.log(4), -math.log(2)], [2.0, 4.0]])
ADVANTAGES = [3.0, -1.0, -2.0]
PLAIN = SelfNormalized(normalize_ratio="none", aggregation="sequence_sum")


def test_weights_are_capped_and_have_mean_1() -> None:
    c = case(NEW, ADVANTAGES)
    assert c.statistic(PLAIN) == pytest.approx(0.5 + 2 + 5, abs=1e-12)
    weight = tensor([0.5, 2.0, 5.0]) / 7.5
    out = c.apply(PLAIN)
    gain = weight * tensor(ADVANTAGES) * tensor([-math.log(2), math.log(2), 6.0])
    assert out.loss.item() == pytest.approx(-gain.sum().item(), abs=1e-12)
    assert values(out) == pytest.approx({"ratio/mean": 2.5, "clip_ratio/high": 1 / 3})
    (token,) = gradients(PLAIN, c)  # capped or not, good or bad: the weight has no gradient
    expected = -(weight * tensor(ADVANTAGES))[:, None].expand(3, 2)
    torch.testing.assert_close(token, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("size", "weights"),
    [
        ("scored", [0.5, 2**0.5, math.exp(3)]),  # one scored token in the first row
        ("canvas", [0.5**0.5, 2**0.5, math.exp(3)]),
        ("none", [0.5, 2.0, math.exp(6)]),
    ],
)
def test_ratios_may_be_normalised(size: Any, weights: list[float]) -> None:
    scored = torch.tensor([[True, False], [True, True], [True, True]])
    objective = SelfNormalized(normalize_ratio=size, cap=1e9)
    c = case(NEW, ADVANTAGES, scored=scored)
    assert c.statistic(objective) == pytest.approx(sum(weights), rel=1e-12)


def test_the_statistic_is_that_of_the_step() -> None:
    """A row of weight 5 in a step whose weights sum to 50 over 20 rows: twice the mean."""
    c = case(NEW, ADVANTAGES).rows([2])
    totals = totals_of(torch.ones(20, 2, dtype=torch.bool), statistic=50.0)
    assert c.apply(PLAIN, totals).loss.item() == pytest.approx(2 * 2.0 * 6 / 20, abs=1e-12)


def test_a_step_whose_weights_all_vanish_is_not_divided_by_0() -> None:
    c = case(estimate([[-800.0], [-900.0]]), [1.0, -1.0])
    (token,) = gradients(SelfNormalized(), c)
    torch.testing.assert_close(token, tensor([[-0.5], [0.5]]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("cap", [1.0, 0.0, math.inf, math.nan])
def test_a_cap_must_leave_room(cap: float) -> None:
    with pytest.raises(ValueError, match="the largest weight must be above 1"):
        SelfNormalized(cap=cap)
