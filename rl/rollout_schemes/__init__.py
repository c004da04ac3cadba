"""Rollout schemes: where completions come from and how they are credited."""

from .base import Key, Rollouts, RolloutScheme, Share, Window, Write
from .independent import Independent
from .inpaint import Inpaint
from .intermediate import Intermediate
from .recorded import Recorded
from .tree import Tree

ROLLOUTS: dict[str, type[RolloutScheme]] = {
    "independent": Independent,
    "tree": Tree,
    "intermediate": Intermediate,
    "inpaint": Inpaint,
    "recorded": Recorded,
}

__all__ = [
    "ROLLOUTS",
    "Independent",
    "Inpaint",
    "Intermediate",
    "Key",
    "Recorded",
    "RolloutScheme",
    "Rollouts",
    "Share",
    "Tree",
    "Window",
    "Write",
]
