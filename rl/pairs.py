"""What an estimator says about rollouts of a sampler: exact, or biased and how."""

import itertools
from typing import Any

from estimators import ESTIMATORS, Estimator
from rl.recipe_yaml import inline
from rl.samplers import Sampler


def exact_estimators(sampler: Sampler, length: int) -> list[dict[str, Any]]:
    """The `estimator:` sections that are the exact log-probability of a sampler's rollouts.

    Of each estimator the first of its `exact_settings`, the simplest that is exact.
    """
    decoding = sampler.decoding(length)
    found: list[dict[str, Any]] = []
    for name, estimator in ESTIMATORS.items():
        exact = (s for s in estimator.exact_settings if estimator(**s).exact_for(decoding))
        found += [{"name": name, **settings} for settings in itertools.islice(exact, 1)]
    return found


def pair_note(estimator: Estimator, sampler: Sampler, length: int) -> str:
    """One line for the start of a run."""
    name = type(estimator).__name__
    if estimator.exact_for(sampler.decoding(length)):
        return f"{name} is the exact log-probability of {sampler.rule} rollouts."
    if estimator.unbiased_for(sampler.decoding(length)):
        return f"{name} is, in the mean, the log-probability of {sampler.rule} rollouts."
    exact = " or ".join(inline(section) for section in exact_estimators(sampler, length))
    return (
        f"{name} scores {estimator.scores}; rollouts use {sampler.rule}: the gradient is biased"
        + (f". Exact: estimator={exact}." if exact else ", as with every estimator here.")
    )
