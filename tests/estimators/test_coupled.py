"""coupled-GRPO as published: half one-step, half a pair, total weight 1.5."""

import pytest
import torch

from estimators import Coupled
from tests.estimators.every_draw import (
    Scripted,
    assert_same,
    bernoulli_cases,
    expectation,
    masked_sum,
    noise,
    subsets,
)
from tests.tiny_models import TinyDenoiser, random_rows, sequences

FOUR = [1, 2, 1, 0]


def test_value_and_gradient_of_the_mean_at_one_ratio() -> None:
    """1/2 S(all) + 1/2 [l(r) + l(1 - r)], l(t) = E S(z) / t."""
    model, seqs = TinyDenoiser(), sequences([FOUR])
    est = Coupled(min_ratio=0.3, max_ratio=0.3)
    cases = [(0.3 ** len(z) * 0.7 ** (4 - len(z)), 0.5, noise(z, 4)) for z in subsets(range(4))]
    expected = masked_sum(model, seqs, range(4)) / 2
    for t in (0.3, 0.7):
        for z in subsets(range(4)):
            chance = t ** len(z) * (1 - t) ** (4 - len(z))
            expected = expected + chance * masked_sum(model, seqs, z) / t / 2
    assert_same(model, expectation(est, model, seqs, cases), expected)


def test_the_weights_of_a_token_add_up_to_one_and_a_half_in_the_mean() -> None:
    seqs = sequences([FOUR])
    cases = bernoulli_cases(4, 0.2, 0.8)
    chance, u, sets = (torch.tensor(x, dtype=torch.float64) for x in zip(*cases, strict=True))
    many = seqs.rows(torch.zeros(len(cases), dtype=torch.long))
    plan = Coupled().plan(many, Scripted(u, sets))
    mean = (chance[:, None] * plan.weight.sum(1)).sum(0)
    assert mean.tolist() == pytest.approx([Coupled.total_weight] * 4) == [1.5] * 4


def test_views_by_hand() -> None:
    """r = 0.2 + 0.6 x 0.5 = 0.5: token 1 is masked in the second view, the others in the third."""
    seqs = sequences([[1, 2, 0, 2]])  # the last token follows EOS
    plan = Coupled().plan(seqs, Scripted(torch.tensor([0.5]), torch.tensor([[0.9, 0.1, 0.6, 0.1]])))
    assert plan.weight.tolist() == [[[0.5, 0.5, 0.5, 0], [0, 1, 0, 0], [1, 0, 1, 0]]]
    assert plan.completion.int().tolist() == [[[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 1, 1]]]


def test_ratios_stay_in_their_range() -> None:
    plan = Coupled().plan(sequences([[1] * 12] * 400), random_rows(*range(400)))
    r = 0.5 / plan.weight[:, 1].amax(-1)  # of the rows that mask something
    assert 0.2 <= r[r.isfinite()].min() < 0.21
    assert 0.79 < r[r.isfinite()].max() <= 0.8


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.5), (0.5, 1.0), (0.6, 0.4)])
def test_a_range_with_an_empty_mask_is_refused(low: float, high: float) -> None:
    with pytest.raises(ValueError, match="use 0 < min_ratio <= max_ratio < 1"):
        Coupled(min_ratio=low, max_ratio=high)
