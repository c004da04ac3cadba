"""One pass through an any-order-causal model is the trajectory, step by step."""

from dataclasses import replace

import pytest
import torch

from estimators import AnyOrder, AnyOrderDenoiser, Decoding, Trajectory
from rl.samplers import SAMPLERS
from tests.estimators.any_order_model import AnyOrderTiny
from tests.estimators.every_draw import assert_same
from tests.tiny_models import (
    TinyDenoiser,
    bert,
    order_logps,
    pad_left,
    random_rows,
    sequences,
    token_logps,
)

ROWS = sequences(
    [[1, 2, 0, 2], [2, 1, 1, 1], [1, 0, 1, 2]],
    step_map=[[0, 1, 2, 3], [2, 0, 1, 1], [-1, 1, 0, 0]],
)


def test_only_a_model_with_in_order_is_one() -> None:
    assert isinstance(AnyOrderTiny(), AnyOrderDenoiser)
    assert not isinstance(TinyDenoiser(), AnyOrderDenoiser)


@pytest.mark.parametrize("after_eos", ["score", "mask", "keep"])
@pytest.mark.parametrize("padding", [0, 2])
def test_value_and_gradient_are_those_of_every_step(after_eos, padding: int) -> None:
    """With several tokens in a step, given text, padding and every way to treat EOS."""
    model, seqs = AnyOrderTiny(), pad_left(ROWS, padding)
    one_pass = AnyOrder(after_eos=after_eos)
    every = Trajectory(segments=None, after_eos=after_eos)
    found = one_pass(
        model, seqs, one_pass.plan(seqs, random_rows(0, 1, 2)), Decoding(temperature=0.7)
    )
    assert [len(ids) for ids in model.seen] == [3]
    expected = every(model, seqs, every.plan(seqs, random_rows(0, 1, 2)), Decoding(temperature=0.7))
    torch.testing.assert_close(found.token_logp, expected.token_logp, rtol=0, atol=1e-12)
    assert torch.equal(found.token_mask, expected.token_mask)
    share = torch.tensor([1.0, -0.5, 2.0], dtype=torch.float64)
    assert_same(model, (found.sequence_logp * share).sum(), (expected.sequence_logp * share).sum())


def test_it_is_the_chain_rule_in_the_recorded_order() -> None:
    model = AnyOrderTiny()
    seqs, est = sequences([[1, 2, 2]], step_map=[[1, 2, 0]]), AnyOrder()
    found = est(model, seqs, est.plan(seqs, random_rows(0)))
    chain = [
        token_logps(model, seqs, torch.tensor([hidden]))[0, place]
        for place, hidden in (
            (2, [True, True, True]),
            (0, [True, True, False]),
            (1, [False, True, False]),
        )
    ]
    assert_same(model, found.sequence_logp[0], torch.stack(chain).sum())
    assert order_logps(model, seqs).std() > 0.01, "orders must differ"


def test_it_scores_at_temperature_one_if_told_so() -> None:
    model, seqs = AnyOrderTiny(), ROWS
    hot, plain = AnyOrder(), AnyOrder(at_rollout_temperature=False)
    plan = hot.plan(seqs, random_rows(0, 1, 2))
    decoding = Decoding(temperature=0.5)
    expected = hot(model, seqs, plan)
    assert torch.equal(plain(model, seqs, plan, decoding).token_logp, expected.token_logp)
    assert not torch.equal(hot(model, seqs, plan, decoding).token_logp, expected.token_logp)


@pytest.mark.parametrize("make", [TinyDenoiser, bert])
def test_a_bidirectional_model_is_refused_by_name(make) -> None:
    est, denoiser = AnyOrder(), make()
    plan = est.plan(ROWS, random_rows(0, 1, 2))
    message = rf"{type(denoiser).__name__} has no in_order: LLaDA .* Use trajectory"
    with pytest.raises(ValueError, match=message):
        est(denoiser, ROWS, plan)


@pytest.mark.parametrize("rule", SAMPLERS)
def test_it_is_exact_where_the_tokens_are_the_whole_action(rule: str) -> None:
    decoding = Decoding(rule=rule)
    assert AnyOrder().exact_for(decoding) == Trajectory(segments=None).exact_for(decoding)
    assert not replace(AnyOrder(), after_eos="mask").exact_for(decoding)
    warm = replace(decoding, temperature=0.7)
    assert not replace(AnyOrder(), at_rollout_temperature=False).exact_for(warm)


def test_a_missing_step_map_is_explained() -> None:
    with pytest.raises(ValueError, match=r"needs Sequences\.step_map"):
        AnyOrder().plan(sequences([[1, 2]]), random_rows(0))
