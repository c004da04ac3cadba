"""The rewards that a recipe can name: the graders of `rewards`, and two that are no graders.

{name: reward_model, path: runs/judge}                        a transformers sequence classifier
{name: http_endpoint, url: "http://localhost:8000/score"}     a server of the user's own
"""

from collections.abc import Callable
from typing import Any

from rewards import REWARDS
from rewards.http_endpoint import HttpEndpoint
from rl.reward_model import RewardModel

ADAPTERS: dict[str, Callable[..., Any]] = {
    "http_endpoint": HttpEndpoint,
    "reward_model": RewardModel,
}


def known_rewards() -> dict[str, Callable[..., Any]]:
    """Name -> grader, or class that makes a reward."""
    return {**REWARDS, **ADAPTERS}
