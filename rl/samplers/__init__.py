"""Samplers: how a completion is written, step by step."""

from .base import RolloutDenoiser, Sampler
from .confidence_first import ConfidenceFirst
from .left_to_right import LeftToRight
from .low_confidence import LowConfidence
from .plackett_luce import PlackettLuce
from .random_order import RandomOrder
from .rollout import Rollout
from .threshold import Threshold

SAMPLERS: dict[str, type[Sampler]] = {
    "low_confidence": LowConfidence,
    "confidence_first": ConfidenceFirst,
    "random": RandomOrder,
    "left_to_right": LeftToRight,
    "threshold": Threshold,
    "plackett_luce": PlackettLuce,
}

__all__ = [
    "SAMPLERS",
    "ConfidenceFirst",
    "LeftToRight",
    "LowConfidence",
    "PlackettLuce",
    "RandomOrder",
    "Rollout",
    "RolloutDenoiser",
    "Sampler",
    "Threshold",
]
