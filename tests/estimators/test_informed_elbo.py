"""Masks that prefer late tokens: the law, its correction, and no preference at all."""

import math

import pytest
import torch

from estimators import Elbo, InformedElbo
from tests.estimators.every_draw import (
    Case,
    assert_same,
    bernoulli_cases,
    elbo,
    expectation,
    masked_sum,
    noise,
    subsets,
)
from tests.tiny_models import TinyDenoiser, random_rows, sequences, token_logps

FOUR = [1, 2, 1, 1]
STEPS = [3, 0, 2, 1]
LATE = [0.5, -0.5, 1 / 6, -1 / 6]  # step / 3, less the mean 1/2
STRENGTH = 1.5
SEQS = sequences([FOUR], step_map=[STEPS])


def chances(t: float) -> list[float]:
    """m_l, from the odds: those of t times exp(strength x_l)."""
    odds = [t / (1 - t) * math.exp(STRENGTH * x) for x in LATE]
    return [o / (1 + o) for o in odds]


def levels() -> list[tuple[float, float]]:
    """(weight, t) of the 20 nodes: those of the cases that mask nothing."""
    weights: dict[float, float] = {}
    for chance, t, _ in bernoulli_cases(4):
        weights[t] = weights.get(t, 0.0) + chance
    return [(w, t) for t, w in weights.items()]


def cases() -> list[Case]:
    out: list[Case] = []
    for w, t in levels():
        for z in subsets(range(4)):
            chance = math.prod(m if i in z else 1 - m for i, m in enumerate(chances(t)))
            out.append((w * chance, t, noise(z, 4)))
    return out


def test_the_corrected_mean_is_the_elbo() -> None:
    model = TinyDenoiser()
    est = InformedElbo(strength=STRENGTH, corrected=True, samples=2)
    assert_same(model, expectation(est, model, SEQS, cases()), elbo(model, SEQS))


def test_the_plain_mean_weighs_tokens_equally_in_other_contexts() -> None:
    model = TinyDenoiser()
    expected = torch.zeros((), dtype=torch.float64)
    for w, t in levels():
        m = chances(t)
        for z in subsets(range(4)):
            if z:
                chance = math.prod(p if i in z else 1 - p for i, p in enumerate(m))
                hidden = torch.tensor([[i in z for i in range(4)]])
                logp = token_logps(model, SEQS, hidden)[0]
                expected = expected + w * chance * sum(logp[i] / m[i] for i in z)
    found = expectation(InformedElbo(strength=STRENGTH), model, SEQS, cases())
    assert_same(model, found, expected)
    assert (found - elbo(model, SEQS)).abs() > 1e-3


def test_no_preference_is_the_bernoulli_elbo() -> None:
    seqs = sequences([FOUR, [1, 0, 1, 2]], step_map=[STEPS] * 2)
    found = InformedElbo(strength=0.0, samples=5).plan(seqs, random_rows(1, 2))
    expected = Elbo(law="bernoulli", samples=5).plan(seqs, random_rows(1, 2))
    torch.testing.assert_close(found.weight, expected.weight, rtol=1e-12, atol=0)
    assert torch.equal(found.completion, expected.completion)


def test_late_tokens_are_masked_more_often() -> None:
    """2000 rows, standard error below 0.011."""
    seqs = sequences([FOUR] * 2000, step_map=[STEPS] * 2000)
    plan = InformedElbo(strength=4.0).plan(seqs, random_rows(*range(2000)))
    late, early = plan.completion[:, 0, 0].double().mean(), plan.completion[:, 0, 1].double().mean()
    assert late - early > 0.3


def test_a_full_mask_is_one_step() -> None:
    """The mask of everything has the plain one-step value, weighed by 1/m_l."""
    model = TinyDenoiser()
    est = InformedElbo(strength=STRENGTH)
    found = expectation(est, model, SEQS, [(1.0, 0.5, noise(range(4), 4))])
    logp = token_logps(model, SEQS, torch.ones(1, 4, dtype=torch.bool))[0]
    assert_same(model, found, sum(logp[i] / m for i, m in enumerate(chances(0.5))))
    assert masked_sum(model, SEQS, range(4)) != found


def test_it_needs_the_recorded_steps() -> None:
    with pytest.raises(ValueError, match=r"needs Sequences\.step_map"):
        InformedElbo().plan(sequences([FOUR]), random_rows(0))
    with pytest.raises(ValueError, match="samples is 0"):
        InformedElbo(samples=0)
