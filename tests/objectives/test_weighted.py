"""DMPO's weights and the likelihood that they weigh."""

import math

import pytest
import torch

from rl.objectives import Weighted

from .cases import case, estimate, tensor


def test_weights_by_hand() -> None:
    """Group 1: A / alpha + ref - old is log 1, log 2, log 5; group 2: log 3, 0, 0."""
    advantages = tensor([0.0, 0.5, -1.0, 1.0, 0.0, 0.0]) * math.log(2)
    ref = tensor([-7.0, -3.0, 2 * math.log(2) + math.log(5), math.log(3), -1.0, -2.0])
    old = tensor([-7.0, -3.0, 0.0, 2 * math.log(2), -1.0, -2.0])
    found = Weighted(alpha=0.5).reweigh(advantages, old, ref, 3)
    expected = tensor([1 / 8, 2 / 8, 5 / 8, 3 / 5, 1 / 5, 1 / 5]) - 1 / 3
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    first = Weighted(alpha=0.5).reweigh(advantages[:3], old[:3], ref[:3], 3)
    torch.testing.assert_close(first, found[:3], rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_group_of_equals_has_weight_exactly_0(dtype: torch.dtype) -> None:
    """So long as the policy is the reference."""
    for size in range(1, 17):
        logp = torch.linspace(-90, -80, size, dtype=dtype)
        found = Weighted().reweigh(torch.zeros(size, dtype=dtype), logp, logp, size)
        assert found.eq(0).all()


def test_weights_of_a_group_sum_to_0_and_do_not_feel_a_shift() -> None:
    g = torch.Generator().manual_seed(0)
    advantages, old, ref = torch.randn(3, 8, generator=g, dtype=torch.float64)
    found = Weighted(alpha=0.7).reweigh(advantages, old, ref, 4)
    torch.testing.assert_close(found.view(2, 4).sum(1), tensor([0.0, 0.0]), rtol=0, atol=1e-12)
    shifted = Weighted(alpha=0.7).reweigh(advantages + 3, old - 2, ref + 5, 4)
    torch.testing.assert_close(shifted, found, rtol=0, atol=1e-12)


def test_the_loss_is_minus_the_weighted_likelihood() -> None:
    new = estimate([[-1.0, -2.0], [-3.0, -5.0]], view=[[0, 1]] * 2, importance=[[1.0, 4.0]] * 2)
    out = case(new, [0.25, -0.5]).apply(Weighted())
    assert out.loss.item() == pytest.approx((0.25 * 9 - 0.5 * 23) / 2, abs=1e-12)


def test_weights_need_a_reference() -> None:
    with pytest.raises(ValueError, match="weights need log-probs of the reference policy"):
        Weighted().reweigh(tensor([1.0]), tensor([0.0]), None, 1)


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.inf, math.nan])
def test_alpha_must_be_positive(alpha: float) -> None:
    with pytest.raises(ValueError, match="it must be positive"):
        Weighted(alpha=alpha)


def test_other_objectives_keep_their_advantages() -> None:
    from rl.objectives import Clipped

    advantages = tensor([1.0, 2.0])
    assert Clipped().reweigh(advantages, advantages, None, 2) is advantages
