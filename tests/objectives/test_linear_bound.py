"""BGPO's bound: values by hand, and that it is one."""

import math
from dataclasses import replace

import pytest
import torch

from rl.objectives import LinearBound

from .cases import case, estimate, gradients, random_case, tensor, values

# views with differences 0.1 + 0.2, -0.7, 0: with three draws, d = 0.9, -2.1, 0
NEW = estimate([[0.1, 0.2, -0.7, 9.0]], [[1, 1, 1, 0]], view=[[0, 0, 1, 2]])


@pytest.mark.parametrize(
    ("advantage", "loss"),
    [
        (2.0, -2 * (1.9 - 1.1 + 1) / 3),  # 1 + d, also below -1, where log(1 + d) is NaN
        (-2.0, 2 * (math.exp(0.9) + math.exp(-2.1) + 1) / 3),
        (0.0, 0.0),
    ],
)
def test_both_signs_by_hand(advantage: float, loss: float) -> None:
    out = case(NEW, [advantage]).apply(LinearBound())
    assert out.loss.item() == pytest.approx(loss, abs=1e-12)
    assert values(out)["ratio/mean"] == pytest.approx(math.exp(0.1 + 0.2 - 0.7), abs=1e-12)


@pytest.mark.parametrize(
    ("advantage", "slopes"),
    [
        (2.0, [-2.0, -2.0, -2.0, 0]),
        (-2.0, [2 * math.exp(0.9), 2 * math.exp(0.9), 2 * math.exp(-2.1), 0]),
    ],
)
def test_gradients_by_hand(advantage: float, slopes: list[float]) -> None:
    (token,) = gradients(LinearBound(), case(NEW, [advantage]))
    torch.testing.assert_close(token, tensor([slopes]), rtol=0, atol=1e-12)


def test_importance_and_choices_belong_to_their_draw() -> None:
    """d = 2 * 3 * (0.1 + 0.05) and 2 * 0.5 * 0.3."""
    new = estimate([[0.1, 0.3]], view=[[0, 1]], importance=[[3.0, 0.5]], choice=[[0.05, 0.0]])
    out = case(new, [-1.0]).apply(LinearBound())
    assert out.loss.item() == pytest.approx((math.exp(0.9) + math.exp(0.3)) / 2, abs=1e-12)


@pytest.mark.parametrize("noise", [0.01, 0.3, 1.0])
def test_it_is_a_lower_bound_of_the_sequence_ratios_surrogate(noise: float) -> None:
    for seed in range(20):
        c = random_case(seed, importance=True, noise=noise)
        ratio = (c.new.sequence_logp - c.old.sequence_logp).exp()
        exact = (c.advantages * ratio).mean()
        assert -c.apply(LinearBound()).loss <= exact + 1e-12
        on_policy = replace(c, old=c.new)
        torch.testing.assert_close(
            -on_policy.apply(LinearBound()).loss, c.advantages.mean(), rtol=0, atol=1e-12
        )


def test_views_must_be_known() -> None:
    with pytest.raises(ValueError, match="compares single views, but the estimate has none"):
        case(replace(NEW, view_logp=None), [1.0]).apply(LinearBound())
