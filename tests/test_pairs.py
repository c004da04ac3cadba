"""The line at the start of a run: exact, or what is scored instead."""

import pytest

from estimators import ESTIMATORS, Elbo, Estimator, MeanField, Trajectory
from rl.pairs import pair_note
from rl.samplers import ConfidenceFirst, LowConfidence, RandomOrder, Sampler


@pytest.mark.parametrize(
    ("estimator", "sampler", "note"),
    [
        (
            Trajectory(segments=None),
            ConfidenceFirst(steps=4),
            "Trajectory is the exact log-probability of confidence_first rollouts.",
        ),
        (
            Trajectory(segments=None),
            LowConfidence(steps=4),
            "Trajectory scores the tokens of the rollout's own steps, but not the choice of "
            "positions; rollouts use low_confidence: the gradient is biased",
        ),
        (
            MeanField(),
            LowConfidence(steps=4),
            "MeanField scores each token from the fully masked completion; rollouts use "
            "low_confidence: the gradient is biased",
        ),
        (
            Elbo(),
            LowConfidence(steps=4),
            "Elbo scores random-order decoding; rollouts use low_confidence: the gradient is",
        ),
        (Elbo(), RandomOrder(steps=4), "Elbo scores random-order decoding; rollouts use random:"),
    ],
)
def test_notes(estimator: Estimator, sampler: Sampler, note: str) -> None:
    assert pair_note(estimator, sampler).startswith(note)


def test_every_estimator_says_what_it_scores() -> None:
    assert all("scores" in vars(estimator) for estimator in ESTIMATORS.values())
