"""The chain rule in reading order, whole and in part."""

import itertools
from dataclasses import replace

import pytest
import torch

from estimators import Decoding, LeftToRight, Sequences
from rl.samplers import SAMPLERS
from tests.estimators.every_draw import Scripted, assert_same, expectation, masked_sum
from tests.estimators.test_trajectory_subset import draws
from tests.tiny_models import TinyDenoiser, random_rows, sequences

FOUR = [1, 2, 0, 1]  # EOS third
EVERY = list(itertools.product(range(3), repeat=4))


def chain(model: TinyDenoiser, seqs: Sequences) -> torch.Tensor:
    """sum_k log p(o_k | o_1..o_{k-1}), the rest masked."""
    L = seqs.completion_ids.shape[1]
    terms = [masked_sum(model, seqs, [k], range(k, L)) for k in range(L)]
    return torch.stack(terms).sum()


def test_value_and_gradient_are_those_of_the_chain_rule() -> None:
    model, seqs, est = TinyDenoiser(), sequences([FOUR]), LeftToRight()
    found = est(model, seqs, est.plan(seqs, random_rows(0)))
    assert_same(model, found.sequence_logp[0], chain(model, seqs))


def test_probabilities_of_all_completions_add_up_to_one() -> None:
    seqs, est = sequences(EVERY), LeftToRight()
    found = est(TinyDenoiser(), seqs, est.plan(seqs, random_rows(*range(len(EVERY)))))
    assert found.sequence_logp.exp().sum().item() == pytest.approx(1, abs=1e-9)


def test_it_is_the_recorded_log_prob_of_a_left_to_right_rollout() -> None:
    model = TinyDenoiser()
    prompts = torch.tensor([[1, 2]] * 5)
    sampler = SAMPLERS["left_to_right"](steps=4, temperature=0.7)
    rollout = sampler(model, prompts, torch.ones_like(prompts).bool(), 4, [1, 2, 3, 4, 5])
    seqs, est = sequences(rollout.completion_ids.tolist()), LeftToRight()
    decoding = sampler.decoding(4)
    found = est(model, seqs, est.plan(seqs, random_rows(*range(5))), decoding)
    torch.testing.assert_close(found.token_logp, rollout.logp, rtol=0, atol=1e-9)
    assert est.exact_for(decoding)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_the_mean_of_a_subset_is_the_whole(m: int) -> None:
    model, seqs = TinyDenoiser(), sequences([FOUR])
    found = expectation(LeftToRight(subset=m), model, seqs, draws([0.25] * 4, m))
    assert_same(model, found, chain(model, seqs))


def test_a_subset_of_the_written_tokens_only() -> None:
    """Three tokens up to EOS; the part after it stays hidden and undrawn."""
    seqs, est = sequences([FOUR]), LeftToRight(subset=1, after_eos="mask")
    plan = est.plan(seqs, Scripted(torch.tensor([[0.5]])))
    assert plan.weight.tolist() == [[[0, 1, 0, 0]]]
    assert plan.completion.int().tolist() == [[[0, 1, 1, 1]]]
    assert plan.importance is not None
    assert plan.importance.tolist() == [[3.0]]


def test_the_positions_of_highest_entropy() -> None:
    """Half of four positions; of three, rounded up, in a row that ends earlier."""
    entropy = torch.tensor([[0.1, 0.9, 0.5, 0.2], [0.1, 0.9, 0.5, 2.0]])
    seqs = replace(sequences([[1, 2, 1, 1], FOUR]), entropy=entropy)
    plan = LeftToRight(top_entropy=0.5, after_eos="mask").plan(seqs, random_rows(0, 0))
    assert plan.weight.tolist() == [[[0, 1, 0, 0], [0, 0, 1, 0]]] * 2
    assert plan.completion[0].int().tolist() == [[0, 1, 1, 1], [0, 0, 1, 1]]
    plan = LeftToRight(top_entropy=0.25, after_eos="mask").plan(seqs, random_rows(0, 0))
    assert plan.weight.tolist() == [[[0, 1, 0, 0]]] * 2


def test_given_text_is_visible_and_not_counted() -> None:
    seqs = sequences([[1, 2, 1, 1]], step_map=[[0, -1, 1, 2]])
    plan = LeftToRight().plan(seqs, random_rows(0))
    assert plan.completion[0, :3].int().tolist() == [[1, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]
    assert plan.weight[0, :3].tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert not plan.weight[0, 3].any()


def test_it_is_exact_for_one_token_per_step_from_the_left() -> None:
    one_by_one = Decoding(rule="left_to_right", one_by_one=True)
    est = LeftToRight()
    assert est.exact_for(one_by_one)
    assert LeftToRight(subset=2).unbiased_for(one_by_one)
    assert not LeftToRight(subset=2).exact_for(one_by_one)
    assert not LeftToRight(top_entropy=0.5).unbiased_for(one_by_one)
    assert not replace(est, after_eos="mask").exact_for(one_by_one)
    warm = replace(one_by_one, temperature=0.7)
    assert est.exact_for(warm)
    assert not replace(est, at_rollout_temperature=False).exact_for(warm)
    assert not est.exact_for(Decoding(rule="left_to_right"))
    assert not est.exact_for(Decoding(rule="random", one_by_one=True))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"subset": 0}, "subset is 0; use at least 1, or null"),
        ({"top_entropy": 0.0}, "a share of the positions"),
        ({"top_entropy": 0.5, "subset": 3}, "both choose positions"),
    ],
)
def test_bad_settings_are_refused(settings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeftToRight(**settings)
