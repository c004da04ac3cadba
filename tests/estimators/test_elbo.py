"""The ELBO's weights, by taking the expectation over every mask that `plan` can draw."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from estimators import Elbo, RowRandom, score
from tests.estimators.every_draw import (
    assert_same,
    bernoulli_cases,
    count_cases,
    elbo,
    expectation,
    weighted_sets,
)
from tests.tiny_models import TinyDenoiser, order_logps, random_rows, sequences, token_logps

COMPLETION = [1, 2, 1, 0]  # EOS last: four scored tokens
SHORT = [2, 0, 1, 2]  # two scored tokens, two after EOS


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("law", ["count", "bernoulli"])
def test_the_mean_over_all_masks_is_the_mean_over_all_orders(law, coupled, samples) -> None:
    """Value and gradient."""
    model, seqs = TinyDenoiser(), sequences([COMPLETION])
    est = Elbo(samples=samples, coupled=coupled, law=law)
    cases = bernoulli_cases(4) if law == "bernoulli" else count_cases(4, 4, lowest=1 - coupled)
    assert order_logps(model, seqs).std() > 0.01, (
        "orders must differ for the mean to mean something"
    )
    assert_same(model, expectation(est, model, seqs, cases), elbo(model, seqs))


@pytest.mark.parametrize("coupled", [False, True])
def test_the_mean_of_stratified_draws_is_the_same(coupled: bool) -> None:
    """Every order of the tokens, and 5 levels in each of 4 strata: 20, evenly on 4 or 5 sizes."""
    model, seqs = TinyDenoiser(), sequences([COMPLETION])
    est = Elbo(samples=4, coupled=coupled, stratified=True)
    cases = [
        (1 / 120, (i + 0.5) / 5, [(rank + 0.5) / 4 for rank in order])
        for i in range(5)
        for order in itertools.permutations(range(4))
    ]
    assert_same(model, expectation(est, model, seqs, cases), elbo(model, seqs))


def test_stratified_draws_take_one_level_from_each_part() -> None:
    plan = Elbo(samples=4, stratified=True).plan(
        sequences([COMPLETION] * 50), random_rows(*range(50))
    )
    assert plan.weight.ne(0).sum(-1).tolist() == [[1, 2, 3, 4]] * 50
    plan = Elbo(samples=4).plan(sequences([COMPLETION] * 50), random_rows(*range(50)))
    assert plan.weight.ne(0).sum(-1).tolist() != [[1, 2, 3, 4]] * 50


@pytest.mark.parametrize("coupled", [False, True])
def test_flat_weights_count_large_masks_too_much(coupled: bool) -> None:
    """2 for every masked token, or 1 if each is masked once in a pair."""
    model, seqs = TinyDenoiser(), sequences([COMPLETION])
    est = Elbo(samples=2, coupled=coupled, weighting="flat")
    found = expectation(est, model, seqs, count_cases(4, 4, lowest=1 - coupled))
    weight = [0.4] * 5 if coupled else [0.5] * 5  # 2 sets in 5 sizes; weight 2 in 4 sizes
    assert_same(model, found, weighted_sets(model, seqs, weight))


def test_ratios_can_be_restricted_under_the_bernoulli_law() -> None:
    """The mean of S(z)/t over t ~ U(0.1, 0.7): for each size an integral worked out by hand."""
    model, seqs = TinyDenoiser(), sequences([COMPLETION])
    est = Elbo(law="bernoulli", min_ratio=0.1, max_ratio=0.7)

    def integral(k: int) -> float:
        """of t^(k-1) (1-t)^(4-k), by the binomial theorem"""
        terms = (
            math.comb(4 - k, j) * (-1) ** j * (0.7 ** (k + j) - 0.1 ** (k + j)) / (k + j)
            for j in range(5 - k)
        )
        return sum(terms) / 0.6

    weight = [0.0, *(math.comb(4, k) * integral(k) for k in range(1, 5))]
    found = expectation(est, model, seqs, bernoulli_cases(4, 0.1, 0.7))
    assert_same(model, found, weighted_sets(model, seqs, weight))


@pytest.mark.parametrize("coupled", [False, True])
def test_expectation_with_masks_after_eos(coupled: bool) -> None:
    """The mean over both orders of the two scored tokens; the others are hidden throughout."""
    model = TinyDenoiser()

    def logp(*hidden: bool) -> Tensor:
        return token_logps(model, sequences([SHORT]), torch.tensor([hidden]))[0]

    both = logp(True, True, True, True)
    first, second = logp(True, False, True, True)[0], logp(False, True, True, True)[1]
    expected = (both[0] + second + both[1] + first) / 2
    cases = count_cases(2, 4, lowest=1 - coupled)
    found = expectation(Elbo(coupled=coupled), model, sequences([SHORT]), cases)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_it_is_a_lower_bound_of_random_order_decoding() -> None:
    orders = order_logps(TinyDenoiser(), sequences([COMPLETION, SHORT, [2, 2, 2, 1]]))
    log_p = orders.logsumexp(1) - math.log(orders.shape[1])
    assert (orders.mean(1) < log_p - 1e-3).all()


@pytest.mark.parametrize("coupled", [False, True])
def test_what_plan_draws_agrees_with_the_exact_value(coupled: bool) -> None:
    model = TinyDenoiser()
    n = 4000
    est = Elbo(samples=n, coupled=coupled)
    seqs = sequences([COMPLETION])
    plan = est.plan(seqs, random_rows(5))
    with torch.no_grad():
        per_view = (plan.weight * score(model, seqs, plan).token).sum(-1)[0]
    per_draw = per_view.view(-1, n).sum(0) * n
    standard_error = per_draw.std() / math.sqrt(n)
    exact_value = order_logps(model, seqs).mean()
    assert standard_error < 0.02 * exact_value.abs(), "too noisy to show anything"
    assert (per_draw.mean() - exact_value).abs() < 4 * standard_error


def test_masked_sets_are_uniform_given_their_size_and_sizes_are_uniform() -> None:
    """Chi-square with 6 degrees of freedom: above 27.9 once in 10,000."""
    n = 20_000
    plan = Elbo(samples=n).plan(sequences([[1, 2, 1]]), random_rows(11))
    code = (plan.completion[0].long() * torch.tensor([1, 2, 4])).sum(-1)
    counts = torch.bincount(code, minlength=8)
    assert counts[0] == 0
    size = torch.tensor([1, 1, 2, 1, 2, 2, 3])  # of the sets with codes 1 to 7
    expected = n / 3 / torch.tensor([3.0, 3, 1])[size - 1]
    assert ((counts[1:] - expected).square() / expected).sum() < 27.9


def test_coupled_scores_every_token_once_per_pair_with_the_weight_of_its_own_view() -> None:
    samples = 64
    seqs = sequences([COMPLETION, SHORT, [1, 1, 1, 1]])
    plan = Elbo(samples=samples, coupled=True).plan(seqs, random_rows(1, 2, 3))
    weighted = plan.weight.ne(0)
    once = weighted[:, :samples] ^ weighted[:, samples:]
    assert torch.equal(once, seqs.completion_mask[:, None].expand_as(once))
    k = weighted.sum(-1, keepdim=True)
    n = seqs.completion_mask.sum(-1)[:, None, None]
    expected = weighted * (n + 1) / (2 * samples * k.clamp(min=1))
    torch.testing.assert_close(plan.weight, expected.double(), rtol=1e-6, atol=0)
    assert {0, 1, 2, 3, 4} == set(k[0, :samples].flatten().tolist()), "k must reach 0 and n"


def test_a_row_draws_the_same_masks_in_any_batch() -> None:
    seqs = sequences([COMPLETION, SHORT, [1, 1, 1, 1]])
    est = Elbo(samples=3, coupled=True)
    whole = est.plan(seqs, random_rows(1, 2, 3))
    order = torch.tensor([2, 0])
    part = est.plan(seqs.rows(order), random_rows(3, 1))
    assert torch.equal(part.weight, whole.weight[order])
    assert torch.equal(part.completion, whole.completion[order])
    assert not torch.equal(whole.weight[0], whole.weight[2])


def test_fewer_than_one_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="samples is 0; an ELBO needs at least 1"):
        Elbo(samples=0)


def test_a_range_of_ratios_that_is_none_or_is_not_used_is_refused() -> None:
    with pytest.raises(ValueError, match="use 0 <= min_ratio < max_ratio <= 1"):
        Elbo(law="bernoulli", min_ratio=0.5, max_ratio=0.5)
    with pytest.raises(ValueError, match="need law bernoulli"):
        Elbo(max_ratio=0.9)


def test_rows_of_a_group_share_the_masking_ratios_out() -> None:
    """Four completions of four tokens: one has one token masked, one two, ..."""
    seqs = sequences([[1, 2, 1, 2]] * 4)
    counts: list[list[int]] = []
    for seed in range(5):
        random = RowRandom([1, 2, 3, 4], [seed] * 4, places=[0, 1, 2, 3], size=4)
        plan = Elbo(stratify_rows=True).plan(seqs, random)
        counts.append(plan.completion[:, 0].sum(-1).tolist())
    assert all(sorted(row) == [1, 2, 3, 4] for row in counts)
    assert len({tuple(row) for row in counts}) > 1


def test_one_row_alone_is_stratified_over_its_own_samples() -> None:
    seqs = sequences([[1, 2, 1, 2]])
    plan = Elbo(samples=4, stratify_rows=True).plan(seqs, RowRandom([5]))
    assert sorted(plan.completion[0].sum(-1).tolist()) == [1, 2, 3, 4]
