"""Trajectory estimators with the factor by which positions were chosen: the whole action."""

import math

import pytest
import torch

from estimators import Trajectory, TrajectorySubset
from rl.samplers import (
    ConfidenceFirst,
    LeftToRight,
    LowConfidence,
    PlackettLuce,
    RandomOrder,
    Sampler,
    Threshold,
)
from tests.enumeration import enumerate_paths
from tests.estimators.every_draw import Scripted, assert_same, expectation
from tests.estimators.test_trajectory_subset import draws
from tests.tiny_models import TinyDenoiser, random_rows, sequences

CASES: list[tuple[int, Sampler]] = [
    (3, RandomOrder(steps=3)),
    (3, LeftToRight(steps=3, temperature=1.4)),
    (4, ConfidenceFirst(steps=2)),
    (4, LowConfidence(steps=2, temperature=1.4)),
    (4, LowConfidence(steps=4, block_length=2, top_p=0.9)),
    (4, Threshold(steps=4, block_length=2, threshold=0.6)),
    (3, PlackettLuce(steps=2)),
]
ids = [f"{sampler.rule} {sampler.steps} of {length}" for length, sampler in CASES]


@pytest.mark.parametrize(("length", "sampler"), CASES, ids=ids)
def test_the_estimate_is_the_log_probability_of_each_trajectory(length, sampler) -> None:
    """Value, and gradient of their sum; a random order has a constant of its own."""
    model = TinyDenoiser(hidden=4, seed=2)
    paths = enumerate_paths(model, sampler, length)
    est, decoding = Trajectory(segments=None, selection=1.0), sampler.decoding(length)
    assert est.exact_for(decoding)
    plan = est.plan(paths.seqs, random_rows(*range(len(paths.chance))))
    found = est(model, paths.seqs, plan, decoding).sequence_logp
    if sampler.rule == "random":
        found = found - math.log(math.factorial(length))
    torch.testing.assert_close(found, paths.chance.log(), rtol=0, atol=1e-9)
    share = torch.linspace(-1, 1.5, len(found), dtype=torch.float64)
    assert_same(model, (found * share).sum(), (paths.chance.log() * share).sum())


@pytest.mark.parametrize("baseline", ["none", "one_step"])
@pytest.mark.parametrize("sampler", [LowConfidence(steps=3), PlackettLuce(steps=3)])
def test_a_subset_of_steps_has_the_whole_action_as_its_mean(sampler, baseline) -> None:
    """One importance for a step's tokens and its choice; the one-step view chose nothing."""
    model = TinyDenoiser(hidden=4, seed=2)
    paths = enumerate_paths(model, sampler, 3)
    est = TrajectorySubset(m=2, selection=1.0, baseline=baseline)
    for row in (0, 30, 77):
        found = expectation(
            est,
            model,
            paths.seqs.rows(slice(row, row + 1)),
            draws([1 / 3] * 3, 2),
            decoding=sampler.decoding(3),
        )
        assert_same(model, found, paths.chance[row].log())


@pytest.mark.parametrize("selection", [0.25, 2.0])
def test_selection_weighs_the_choice_only(selection: float) -> None:
    model = TinyDenoiser(hidden=4, seed=2)
    sampler = LowConfidence(steps=3)
    seqs = enumerate_paths(model, sampler, 3).seqs.rows(slice(0, 50))
    random = random_rows(*range(50))
    whole, part = (
        Trajectory(segments=None, selection=1.0),
        Trajectory(segments=None, selection=selection),
    )
    one = whole(model, seqs, whole.plan(seqs, random), sampler.decoding(3))
    other = part(model, seqs, part.plan(seqs, random), sampler.decoding(3))
    assert one.choice_logp is not None
    assert other.choice_logp is not None
    assert one.choice_logp.abs().max() > 0.1
    torch.testing.assert_close(other.choice_logp, selection * one.choice_logp)
    torch.testing.assert_close(other.token_logp, one.token_logp)


def test_a_step_chooses_among_the_masked_positions_of_its_block() -> None:
    """Blocks {0, 1} and {2, 3, 4}, the last token given; merged steps reach into both blocks."""
    seqs = sequences([[1, 2, 1, 2, 1]], step_map=[[1, 0, 3, 2, -1]])
    seqs = type(seqs)(**{**vars(seqs), "block_map": torch.tensor([[0, 0, 1, 1, 1]])})
    every = Trajectory(segments=None, selection=1.0).plan(seqs, random_rows(0))
    assert every.choice is not None
    assert every.choice.int().tolist() == [
        [[1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 0, 0]]
    ]
    two = Trajectory(segments=2, selection=1.0).plan(seqs, random_rows(0))
    assert two.choice is not None
    assert two.choice.int().tolist() == [[[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]]
    one = Trajectory(segments=1, selection=1.0).plan(seqs, random_rows(0))
    assert one.choice is not None
    assert one.choice.int().tolist() == [[[1, 1, 1, 1, 0]]]
    canvas = type(seqs)(**{**vars(seqs), "block_map": None})
    plan = Trajectory(segments=None, selection=1.0).plan(canvas, random_rows(0))
    assert plan.choice is not None
    assert plan.choice[0, 0].int().tolist() == [1, 1, 1, 1, 0]
    assert Trajectory(segments=None).plan(seqs, random_rows(0)).choice is None


def test_positions_that_are_not_scored_are_no_choice() -> None:
    """The third token follows EOS, and was masked in both steps."""
    seqs = sequences([[1, 0, 2]], step_map=[[0, 1, 1]])
    est = Trajectory(segments=None, selection=1.0, after_eos="mask")
    plan = est.plan(seqs, random_rows(0))
    assert plan.choice is not None
    assert plan.choice.int().tolist() == [[[1, 1, 0], [0, 1, 0]]]


def test_no_choice_is_asked_of_the_one_step_view() -> None:
    seqs = sequences([[1, 2, 1]], step_map=[[0, 1, 2]])
    est = TrajectorySubset(m=1, selection=1.0, baseline="one_step")
    plan = est.plan(seqs, Scripted(torch.tensor([[0.1]])))  # step 0, seen from all masks too
    assert plan.choice is not None
    assert plan.choice.int().tolist() == [[[0, 0, 0], [1, 1, 1]]]
