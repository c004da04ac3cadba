"""The line at the start of a run: exact, exact in the mean, or what is scored instead."""

import pytest

from estimators import (
    ESTIMATORS,
    Elbo,
    Estimator,
    LeftToRight,
    MeanField,
    Trajectory,
    TrajectorySubset,
)
from rl.pairs import exact_estimators, pair_note
from rl.samplers import (
    SAMPLERS,
    ConfidenceFirst,
    LowConfidence,
    PlackettLuce,
    RandomOrder,
    Sampler,
    Threshold,
)
from rl.samplers import LeftToRight as ReadingOrder

TOKENS = {"name": "trajectory", "segments": None}
WITH_CHOICES = {"name": "trajectory", "segments": None, "selection": 1.0}
WITH_CHOICES_TOLD = "Exact: estimator={name: trajectory, segments: null, selection: 1.0}."


@pytest.mark.parametrize(
    ("estimator", "sampler", "note"),
    [
        (
            Trajectory(segments=None),
            ConfidenceFirst(steps=4),
            "Trajectory is the exact log-probability of confidence_first rollouts.",
        ),
        (
            Trajectory(segments=None, selection=1.0),
            LowConfidence(steps=4),
            "Trajectory is the exact log-probability of low_confidence rollouts.",
        ),
        (
            Trajectory(segments=None),
            LowConfidence(steps=4),
            "Trajectory scores the rollout's own steps, and with selection 1 its choice of "
            f"positions; rollouts use low_confidence: the gradient is biased. {WITH_CHOICES_TOLD}",
        ),
        (
            TrajectorySubset(m=2),
            RandomOrder(steps=4),
            "TrajectorySubset is, in the mean, the log-probability of random rollouts.",
        ),
        (
            MeanField(),
            Threshold(steps=4),
            "MeanField scores each token from the fully masked completion; rollouts use "
            f"threshold: the gradient is biased. {WITH_CHOICES_TOLD}",
        ),
        (
            Elbo(),
            RandomOrder(steps=4),
            "Elbo scores random-order decoding; rollouts use random: the gradient is biased. "
            "Exact: estimator={name: trajectory, segments: null}.",
        ),
        (
            LeftToRight(),
            ReadingOrder(steps=8),
            "LeftToRight is the exact log-probability of left_to_right rollouts.",
        ),
        (
            LeftToRight(),
            ReadingOrder(steps=4),
            "LeftToRight scores left-to-right decoding, token by token; rollouts use "
            "left_to_right: the gradient is biased. "
            "Exact: estimator={name: trajectory, segments: null}.",
        ),
    ],
)
def test_notes(estimator: Estimator, sampler: Sampler, note: str) -> None:
    assert pair_note(estimator, sampler, 8) == note


@pytest.mark.parametrize(
    ("sampler", "exact"),
    [
        (LowConfidence(steps=4), [WITH_CHOICES]),
        (Threshold(steps=4), [WITH_CHOICES]),
        (PlackettLuce(steps=4), [WITH_CHOICES]),
        (ConfidenceFirst(steps=4), [TOKENS]),
        (RandomOrder(steps=4), [TOKENS]),
        (ReadingOrder(steps=4), [TOKENS]),
        (ReadingOrder(steps=8), [TOKENS, {"name": "left_to_right"}]),
    ],
)
def test_exact_estimators(sampler: Sampler, exact: list[dict[str, object]]) -> None:
    assert exact_estimators(sampler, 8) == exact


def test_every_sampler_has_an_exact_estimator() -> None:
    assert [name for name, s in SAMPLERS.items() if not exact_estimators(s(steps=4), 8)] == []


def test_where_nothing_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trajectory, "exact_settings", ())
    assert pair_note(Elbo(), RandomOrder(steps=4), 8).endswith(
        "the gradient is biased, as with every estimator here."
    )


def test_every_estimator_says_what_it_scores() -> None:
    assert all("scores" in vars(estimator) for estimator in ESTIMATORS.values())
