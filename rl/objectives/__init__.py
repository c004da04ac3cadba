"""Objectives: how log-probs and advantages become a loss."""

from .base import Objective, ObjectiveOutput, Totals
from .clipped import Clipped

OBJECTIVES: dict[str, type[Objective]] = {"clipped": Clipped}

__all__ = ["OBJECTIVES", "Clipped", "Objective", "ObjectiveOutput", "Totals"]
