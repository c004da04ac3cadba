"""Objectives: how log-probs and advantages become a loss."""

from .base import Objective, ObjectiveOutput
from .clipped import Clipped
from .comparison import Totals
from .kto import Kto
from .linear_bound import LinearBound
from .policy_gradient import PolicyGradient
from .preference import Preference
from .self_normalized import SelfNormalized
from .squared import Squared
from .weighted import Weighted

OBJECTIVES: dict[str, type[Objective]] = {
    "clipped": Clipped,
    "policy_gradient": PolicyGradient,
    "weighted": Weighted,
    "linear_bound": LinearBound,
    "self_normalized": SelfNormalized,
    "squared": Squared,
    "preference": Preference,
    "kto": Kto,
}

__all__ = [
    "OBJECTIVES",
    "Clipped",
    "Kto",
    "LinearBound",
    "Objective",
    "ObjectiveOutput",
    "PolicyGradient",
    "Preference",
    "SelfNormalized",
    "Squared",
    "Totals",
    "Weighted",
]
