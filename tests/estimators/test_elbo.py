"""The ELBO's weights, by taking the expectation over every mask that `plan` can draw."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from estimators import Elbo, RowRandom, Sequences, score
from tests.tiny_models import TinyDenoiser, exact, order_logps, random_rows, sequences, token_logps

COMPLETION = [1, 2, 1, 0]  # EOS last: four scored tokens
SHORT = [2, 0, 1, 2]  # two scored tokens, two after EOS


class Scripted(RowRandom):
    """Row i draws the numbers that make `plan` choose k and the masked set of `cases[i]`."""

    def __init__(self, cases: list[tuple[int, ...]], scored: int, *, lowest_k: int) -> None:
        super().__init__([0] * len(cases))
        self.cases, self.scored, self.lowest_k = cases, scored, lowest_k

    def per_row(self, *shape: int) -> Tensor:
        if len(shape) == 1:  # k: the middle of its share of [0, 1)
            choices = self.scored + 1 - self.lowest_k
            u = [(len(case) - self.lowest_k + 0.5) / choices for case in self.cases]
            return torch.tensor(u, dtype=torch.float64)[:, None].expand(-1, *shape)
        noise = torch.full((len(self.cases), *shape), 0.9, dtype=torch.float64)
        for row, case in enumerate(self.cases):
            noise[row, :, list(case)] = 0.1
        return noise


def expectation(est: Elbo, model: TinyDenoiser, completion: list[int], scored: int) -> Tensor:
    """Mean of the estimate over k and over every set of k scored tokens, exactly."""
    lowest = 0 if est.coupled else 1
    cases = [z for k in range(lowest, scored + 1) for z in itertools.combinations(range(scored), k)]
    seqs = sequences([completion] * len(cases))
    plan = exact(est.plan(seqs, Scripted(cases, scored, lowest_k=lowest)))
    chance = torch.tensor([1 / math.comb(scored, len(z)) for z in cases], dtype=torch.float64)
    value = est(model, seqs, plan).sequence_logp
    return (chance * value).sum() / (scored + 1 - lowest)


def one(completion: list[int]) -> Sequences:
    return sequences([completion])


@pytest.mark.parametrize("samples", [1, 2, 4])
@pytest.mark.parametrize("coupled", [False, True])
def test_expectation_over_all_masks_is_the_mean_over_generation_orders(
    coupled: bool, samples: int
) -> None:
    model = TinyDenoiser()
    orders = order_logps(model, one(COMPLETION))
    est = Elbo(samples=samples, coupled=coupled)
    found = expectation(est, model, COMPLETION, 4)
    assert orders.std() > 0.01, "orders must differ for the mean to mean something"
    torch.testing.assert_close(found, orders.mean(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("coupled", [False, True])
def test_expectation_with_masks_after_eos(coupled: bool) -> None:
    """The mean over both orders of the two scored tokens; the others are hidden throughout."""
    model = TinyDenoiser()

    def logp(*hidden: bool) -> Tensor:
        return token_logps(model, one(SHORT), torch.tensor([hidden]))[0]

    both = logp(True, True, True, True)
    first, second = logp(True, False, True, True)[0], logp(False, True, True, True)[1]
    expected = (both[0] + second + both[1] + first) / 2
    found = expectation(Elbo(coupled=coupled), model, SHORT, 2)
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
    seqs = one(COMPLETION)
    plan = est.plan(seqs, random_rows(5))
    with torch.no_grad():
        per_view = (plan.weight * score(model, seqs, plan)).sum(-1)[0]
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
    torch.testing.assert_close(plan.weight, expected, rtol=1e-6, atol=0)
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
