"""Samplers: how a completion is written, step by step."""

from .base import Rollout, Sampler
from .confidence_first import ConfidenceFirst
from .left_to_right import LeftToRight
from .low_confidence import LowConfidence
from .random_order import RandomOrder

SAMPLERS: dict[str, type[Sampler]] = {
    "low_confidence": LowConfidence,
    "confidence_first": ConfidenceFirst,
    "random": RandomOrder,
    "left_to_right": LeftToRight,
}

__all__ = [
    "SAMPLERS",
    "ConfidenceFirst",
    "LeftToRight",
    "LowConfidence",
    "RandomOrder",
    "Rollout",
    "Sampler",
]
