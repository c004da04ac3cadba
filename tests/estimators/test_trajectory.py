"""Trajectory is the log-probability of what the sampler did; merging steps approximates it."""

import itertools
from dataclasses import replace

import pytest
import torch

from estimators import (
    AnyOrder,
    Decoding,
    Estimator,
    LeftToRight,
    MeanField,
    Sequences,
    Trajectory,
)
from rl.samplers import SAMPLERS, Rollout
from tests.tiny_models import (
    TinyDenoiser,
    bert,
    pad_left,
    random_rows,
    sequences,
    token_logps,
)

LENGTH = 6
# (steps, block_length): one token a step, blocks, several tokens a step, steps that do not divide
SCHEDULES = [(6, None), (6, 2), (4, None), (4, 3), (2, 3), (1, None)]
EXACT_RULES = ("confidence_first", "random", "left_to_right")


def rolled_out(denoiser, rule: str, **settings) -> tuple[Rollout, Sequences]:
    """Rollouts for prompts of different lengths."""
    seqs = pad_left(sequences([[0] * LENGTH] * 6, prompts=[[1, 2], [2, 1], [1, 1]] * 2), 1)
    ids = seqs.prompt_ids.clone()
    ids[:2, 0] = 2
    mask = seqs.prompt_mask.clone()
    mask[:2, 0] = True
    rollout = SAMPLERS[rule](**settings)(denoiser, ids, mask, LENGTH, [3, 1, 4, 1, 5, 9])
    ended = (rollout.completion_ids == 0).long()
    return rollout, Sequences(
        prompt_ids=ids,
        prompt_mask=mask,
        completion_ids=rollout.completion_ids,
        completion_mask=ended.cumsum(-1) - ended == 0,
        step_map=rollout.step_map,
    )


@pytest.mark.parametrize(("steps", "block_length"), SCHEDULES)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("rule", SAMPLERS)
def test_every_step_gives_the_recorded_log_probs(rule, temperature, steps, block_length) -> None:
    settings = {"steps": steps, "block_length": block_length, "temperature": temperature}
    est = Trajectory(segments=None)
    model = TinyDenoiser()
    rollout, seqs = rolled_out(model, rule, **settings)
    found = est(
        model, seqs, est.plan(seqs, random_rows(*range(6))), Decoding(temperature=temperature)
    )
    torch.testing.assert_close(found.token_logp, rollout.logp, rtol=0, atol=1e-8)
    assert found.token_mask.all()
    assert not torch.equal(seqs.completion_mask, found.token_mask), "no rollout has ended early"


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("rule", EXACT_RULES)
def test_every_step_gives_the_recorded_log_probs_of_a_transformer(rule, temperature) -> None:
    est = Trajectory(segments=None)
    denoiser = bert()
    rollout, seqs = rolled_out(denoiser, rule, steps=4, block_length=3, temperature=temperature)
    found = est(
        denoiser, seqs, est.plan(seqs, random_rows(*range(6))), Decoding(temperature=temperature)
    )
    torch.testing.assert_close(found.token_logp, rollout.logp.float(), rtol=0, atol=1e-5)


def test_it_is_the_chain_rule_in_the_order_of_the_step_map() -> None:
    model = TinyDenoiser()
    seqs = sequences([[1, 2, 2]], step_map=[[1, 2, 0]])
    chain = [
        token_logps(model, seqs, torch.tensor([hidden]))[0, place]
        for place, hidden in (
            (2, [True, True, True]),
            (0, [True, True, False]),
            (1, [False, True, False]),
        )
    ]
    est = Trajectory(segments=None)
    found = est(model, seqs, est.plan(seqs, random_rows(0))).sequence_logp
    torch.testing.assert_close(found[0], torch.stack(chain).sum(), rtol=0, atol=1e-9)


def test_left_to_right_probabilities_of_all_completions_sum_to_one() -> None:
    every = list(itertools.product(range(3), repeat=4))
    seqs = sequences(every, step_map=[[0, 1, 2, 3]] * len(every))
    est = Trajectory(segments=None)
    found = est(TinyDenoiser(), seqs, est.plan(seqs, random_rows(*range(len(every)))))
    total = found.sequence_logp.exp().sum()
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-9)


def test_one_segment_is_the_one_step_estimate() -> None:
    model = TinyDenoiser()
    seqs = sequences([[1, 0, 2], [2, 1, 1]], step_map=[[1, 2, 0], [0, 0, 1]])
    merged, one_step = Trajectory(segments=1), MeanField(prompt_mask_prob=0.0, after_eos="score")
    found = merged(model, seqs, merged.plan(seqs, random_rows(0, 1)))
    expected = one_step(model, seqs, one_step.plan(seqs, random_rows(0, 1)))
    torch.testing.assert_close(found.token_logp, expected.token_logp, rtol=0, atol=1e-12)


@pytest.mark.parametrize("segments", [3, 4, 100])
def test_as_many_segments_as_steps_are_every_step(segments: int) -> None:
    seqs = sequences([[1, 0, 2, 2]], step_map=[[1, 2, 0, 1]])
    every = Trajectory(segments=None).plan(seqs, random_rows(0))
    capped = Trajectory(segments=segments).plan(seqs, random_rows(0))
    assert torch.equal(capped.completion, every.completion)
    assert torch.equal(capped.weight, every.weight)


def test_each_row_is_cut_by_its_own_number_of_steps() -> None:
    """Five steps in three segments are {0, 1}, {2, 3}, {4}; two steps stay two segments."""
    seqs = sequences([[1, 2, 1, 2, 1]] * 2, step_map=[[3, 0, 4, 2, 1], [1, 0, 1, 1, 0]])
    plan = Trajectory(segments=3).plan(seqs, random_rows(0, 1))
    five = [[0, 1, 0, 0, 1], [1, 0, 0, 1, 0], [0, 0, 1, 0, 0]]
    two = [[0, 1, 0, 0, 1], [1, 0, 1, 1, 0], [0, 0, 0, 0, 0]]
    assert plan.weight.tolist() == [five, two]
    hidden = [[1, 1, 1, 1, 1], [1, 0, 1, 1, 0], [0, 0, 1, 0, 0]]
    assert plan.completion[0].int().tolist() == hidden
    alone = Trajectory(segments=3).plan(seqs.rows(slice(1, 2)), random_rows(1))
    assert alone.weight.tolist() == [two[:2]]


def test_views_without_weight_are_not_run() -> None:
    """Two rows: 3 and 2 segments, the third view of the second row is empty."""
    model = TinyDenoiser()
    seqs = sequences([[1, 2, 1]] * 2, step_map=[[0, 1, 2], [0, 1, 1]])
    est = Trajectory(segments=None)
    est(model, seqs, est.plan(seqs, random_rows(0, 1)))
    assert [len(ids) for ids in model.seen] == [5]


def test_step_means_make_steps_count_the_same() -> None:
    """Divided by the number of tokens: the mean over steps of the means over their tokens."""
    model = TinyDenoiser()
    seqs = sequences([[1, 2, 2, 1]], step_map=[[0, 2, 0, 0]])  # nothing is left of step 1
    est = Trajectory(segments=None, step_mean=True)
    found = est(model, seqs, est.plan(seqs, random_rows(0)))
    first = token_logps(model, seqs, torch.ones(1, 4, dtype=torch.bool))[0, [0, 2, 3]]
    second = token_logps(model, seqs, torch.tensor([[False, True, False, False]]))[0, 1]
    torch.testing.assert_close(found.sequence_logp[0] / 4, (first.mean() + second) / 2)
    torch.testing.assert_close(
        found.token_weight[0], torch.tensor([2 / 3, 2, 2 / 3, 2 / 3]).double()
    )


def test_given_text_is_shown_in_every_view_and_never_scored() -> None:
    model = TinyDenoiser()
    seqs = sequences([[1, 2, 1], [2, 2, 2]], step_map=[[1, -1, 0], [-1, -1, -1]])
    est = Trajectory(segments=2)
    found = est(model, seqs, est.plan(seqs, random_rows(0, 1)))
    assert found.token_mask.tolist() == [[True, False, True], [False] * 3]
    assert {tuple(row) for row in model.seen[0][:, 2:].tolist()} == {(3, 2, 3), (3, 2, 1)}


@pytest.mark.parametrize("rule", SAMPLERS)
def test_it_is_exact_if_all_that_the_rule_looks_at_is_scored(rule: str) -> None:
    decoding, whole = Decoding(rule=rule), Trajectory(segments=None)
    assert whole.exact_for(decoding) == (rule in EXACT_RULES)
    assert replace(whole, selection=1.0).exact_for(decoding)
    assert replace(whole, selection=0.5).exact_for(decoding) == (rule in EXACT_RULES)
    not_all = (
        replace(whole, segments=8),
        replace(whole, after_eos="mask"),
        replace(whole, step_mean=True),
    )
    for est in not_all:
        assert not est.exact_for(decoding)
        assert not replace(est, selection=1.0).exact_for(decoding)


@pytest.mark.parametrize("est", [Trajectory(segments=None), LeftToRight(), AnyOrder()])
def test_at_temperature_1_there_is_nothing_to_follow(est: Estimator) -> None:
    own = replace(est, at_rollout_temperature=False)
    for settings in ({}, {"top_p": 1.0}):
        plain = Decoding(rule="left_to_right", one_by_one=True, **settings)
        assert est.exact_for(plain)
        assert own.exact_for(plain)
    for settings in ({"temperature": 0.7}, {"top_k": 2}, {"top_p": 0.9}):
        other = Decoding(rule="left_to_right", one_by_one=True, **settings)
        assert est.exact_for(other)
        assert not own.exact_for(other)


def test_a_missing_step_map_is_explained() -> None:
    with pytest.raises(ValueError, match="take sequences from one of our samplers"):
        Trajectory().plan(sequences([[1, 2]]), random_rows(0))


def test_fewer_than_one_segment_is_refused() -> None:
    with pytest.raises(ValueError, match="segments is 0; use at least 1, or null for every step"):
        Trajectory(segments=0)


def test_a_negative_selection_is_refused() -> None:
    with pytest.raises(ValueError, match="use 0 for the tokens alone, 1 for the whole step"):
        Trajectory(selection=-0.5)
