"""Estimators of log p(completion | prompt) for masked diffusion models."""

from .any_order import AnyOrder, AnyOrderDenoiser
from .base import AfterEos, Estimator
from .coupled import Coupled
from .decoding import PLAIN, Decoding
from .elbo import Elbo
from .informed_elbo import InformedElbo
from .left_to_right import LeftToRight
from .mean_field import MeanField
from .predicted_x0 import PredictedX0
from .quadrature import Quadrature
from .random_mask import RandomMask
from .row_random import RowRandom, stable_seed
from .rows import Estimate, MaskPlan, RowAligned, Scores, Sequences, Terms
from .sandwich import Sandwich
from .scoring import BlockwiseDenoiser, Denoiser, Reduce, in_context, score
from .semi_ar_elbo import SemiArElbo
from .trajectory import Trajectory
from .trajectory_subset import TrajectorySubset

ESTIMATORS: dict[str, type[Estimator]] = {
    "mean_field": MeanField,
    "elbo": Elbo,
    "quadrature": Quadrature,
    "semi_ar_elbo": SemiArElbo,
    "informed_elbo": InformedElbo,
    "sandwich": Sandwich,
    "random_mask": RandomMask,
    "coupled": Coupled,
    "trajectory": Trajectory,
    "trajectory_subset": TrajectorySubset,
    "left_to_right": LeftToRight,
    "any_order": AnyOrder,
    "predicted_x0": PredictedX0,
}

__all__ = [
    "ESTIMATORS",
    "PLAIN",
    "AfterEos",
    "AnyOrder",
    "AnyOrderDenoiser",
    "BlockwiseDenoiser",
    "Coupled",
    "Decoding",
    "Denoiser",
    "Elbo",
    "Estimate",
    "Estimator",
    "InformedElbo",
    "LeftToRight",
    "MaskPlan",
    "MeanField",
    "PredictedX0",
    "Quadrature",
    "RandomMask",
    "Reduce",
    "RowAligned",
    "RowRandom",
    "Sandwich",
    "Scores",
    "SemiArElbo",
    "Sequences",
    "Terms",
    "Trajectory",
    "TrajectorySubset",
    "in_context",
    "score",
    "stable_seed",
]
