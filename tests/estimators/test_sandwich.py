"""SPG's bounds: by hand, over all masks, and where numbers get extreme."""

import math
from dataclasses import replace
from math import log

import pytest
import torch
from torch import Tensor

from estimators import MaskPlan, Sandwich, Scores, SemiArElbo, Sequences, score
from tests.estimators.every_draw import assert_same, elbo, masked_sum, subsets
from tests.tiny_models import TinyDenoiser, random_rows, sequences, token_logps

THREE = [1, 2, 1]


def by_hand(weight: list[list[float]]) -> MaskPlan:
    weight_BML = torch.tensor([weight], dtype=torch.float64)
    none = torch.zeros(1, len(weight), 2, dtype=torch.bool)
    return MaskPlan(prompt=none, completion=weight_BML.ne(0), weight=weight_BML)


def test_two_draws_by_hand() -> None:
    """Token 0 in both draws, token 1 in the second, token 2 in none: n/u = 3/2."""
    plan = by_hand([[1.0, 0, 0], [2.0, 0.5, 0]])
    p = torch.tensor([[[0.5, 1, 1], [0.25, 0.1, 1]]], dtype=torch.float64)
    found = Sandwich(exponent=2.0).combine(
        sequences([THREE]), plan, Scores(token=p.log() * plan.completion)
    )
    upper = [0.75 * log(1 * 0.25 + 2 * 0.0625), 0.75 * log(0.5 * 0.01), 0]
    lower = [log(0.5) + 2 * log(0.25), 0.5 * log(0.1), 0]
    assert found.upper_logp is not None
    assert found.upper_logp[0].tolist() == pytest.approx(upper)
    assert found.token_logp[0].tolist() == pytest.approx(lower)
    assert found.token_mask.tolist() == [[True, True, False]]


def all_masks(seqs: Sequences) -> MaskPlan:
    """Every set of masked tokens, each with its share of the ELBO."""
    L = seqs.completion_ids.shape[1]
    share = [
        [float(i in z) / len(z) / math.comb(L, len(z)) for i in range(L)]
        for z in subsets(range(L))
        if z
    ]
    return by_hand(share)


def closed_form(model: TinyDenoiser, seqs: Sequences, b: float) -> Tensor:
    """sum_l 1/b log E[p_l^b], the mean over the contexts of token l in a random order."""
    L = seqs.completion_ids.shape[1]
    total = torch.zeros((), dtype=torch.float64)
    for i in range(L):
        mean = torch.zeros((), dtype=torch.float64)
        for z in subsets(range(L)):
            if i in z:
                hidden = torch.tensor([[j in z for j in range(L)]])
                p = token_logps(model, seqs, hidden)[0, i].exp()
                mean = mean + p**b / len(z) / math.comb(L, len(z))
        total = total + mean.log() / b
    return total


@pytest.mark.parametrize("b", [1.0, 1.5, 4.0])
def test_over_all_masks_the_bounds_enclose_and_rise_with_the_exponent(b: float) -> None:
    """Value and gradient of both."""
    model, seqs = TinyDenoiser(), sequences([THREE])
    plan = all_masks(seqs)
    found = Sandwich(exponent=b).combine(seqs, plan, score(model, seqs, plan))
    assert found.upper_logp is not None
    assert_same(model, found.sequence_logp[0], elbo(model, seqs))
    assert_same(model, found.upper_logp.sum(), closed_form(model, seqs, b))
    assert found.upper_logp.sum() > found.sequence_logp[0] + 1e-3
    assert closed_form(model, seqs, b + 1) > found.upper_logp.sum()


def test_a_token_masked_once_gets_the_plain_gradient_of_that_view() -> None:
    """Whatever its weight, which moves the bound by a constant."""
    model, seqs = TinyDenoiser(), sequences([THREE])
    for weight in (0.2, 3.0):
        plan = by_hand([[weight] * 3])
        found = Sandwich().combine(seqs, plan, score(model, seqs, plan))
        assert found.upper_logp is not None
        constant = 3 * log(weight) / 1.5
        assert_same(model, found.upper_logp.sum() - constant, masked_sum(model, seqs, range(3)))


def test_the_lower_bound_is_the_semi_autoregressive_elbo() -> None:
    model, seqs = TinyDenoiser(), sequences([[1, 2, 1, 0], [2, 0, 1, 1]])
    est = Sandwich(samples=3, block_length=2)
    other = SemiArElbo(samples=3, block_length=2, context_mask_prob=0.15)
    found = est(model, seqs, est.plan(seqs, random_rows(1, 2)))
    expected = other(model, seqs, other.plan(seqs, random_rows(1, 2)))
    assert torch.equal(found.token_logp, expected.token_logp)
    assert torch.equal(found.token_mask, expected.token_mask)
    kept = replace(est, after_eos="score")
    assert kept.plan(seqs, random_rows(1, 2)).weight[1, :, 2:].any()


def test_impossible_tokens_and_unmasked_ones_give_finite_gradients() -> None:
    plan = by_hand([[1.0, 0, 1.0], [1.0, 0, 0]])
    token = torch.tensor([[[-2000.0, 0, -1.0], [-3000.0, 0, 0]]], dtype=torch.float64)
    token.requires_grad_()
    found = Sandwich().combine(sequences([THREE]), plan, Scores(token=token))
    assert found.upper_logp is not None
    assert found.upper_logp[0].tolist() == pytest.approx([-3000, 0, -1.5])
    (slope,) = torch.autograd.grad(found.upper_logp.sum(), token)
    assert slope.tolist() == [[[1.5, 0, 1.5], [0, 0, 0]]]


def test_an_exponent_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="below 1 there is no upper bound"):
        Sandwich(exponent=0.9)
    with pytest.raises(ValueError, match="samples is 0"):
        Sandwich(samples=0)
