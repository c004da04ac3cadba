"""Estimators of log p(completion | prompt) for masked diffusion models."""

from .base import Denoiser, Estimate, Estimator, MaskPlan, Reduce, Sequences, score
from .elbo import Elbo
from .mean_field import MeanField
from .row_random import RowRandom, stable_seed
from .trajectory import Trajectory

ESTIMATORS: dict[str, type[Estimator]] = {
    "mean_field": MeanField,
    "elbo": Elbo,
    "trajectory": Trajectory,
}

__all__ = [
    "ESTIMATORS",
    "Denoiser",
    "Elbo",
    "Estimate",
    "Estimator",
    "MaskPlan",
    "MeanField",
    "Reduce",
    "RowRandom",
    "Sequences",
    "Trajectory",
    "score",
    "stable_seed",
]
