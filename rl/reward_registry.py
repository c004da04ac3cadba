"""The rewards that a recipe can name: the graders of `rewards`, and what needs more than they may.

{name: reward_model, path: runs/judge}                  a transformers sequence classifier
{name: http_endpoint, url: "http://localhost:8000"}     a server of the user's own
"""

from collections.abc import Callable
from typing import Any

from rewards import REWARDS


def known_rewards() -> dict[str, Callable[..., Any]]:
    """Name -> grader, reward or a class of such."""
    return dict(REWARDS)
