"""What an estimator says about rollouts of a sampler: exact, or biased and how."""

from estimators import Estimator
from rl.samplers import Sampler


def pair_note(estimator: Estimator, sampler: Sampler) -> str:
    """One line for the start of a run."""
    name = type(estimator).__name__
    if estimator.exact_for(sampler.rule):
        return f"{name} is the exact log-probability of {sampler.rule} rollouts."
    return (
        f"{name} scores {estimator.scores}; rollouts use {sampler.rule}: the gradient is biased "
        "(README, Which estimator for which sampler)."
    )
