"""Every completion is written from the prompt alone, and its reward is that of all its tokens.

    A_i = advantage of r_i among the rewards of its prompt's completions

Paper     GRPO, arXiv:2402.03300
"""

from dataclasses import dataclass

from estimators import stable_seed
from rl.rollouts import completed

from .base import Rollouts, RolloutScheme, Window


@dataclass(frozen=True, kw_only=True)
class Independent(RolloutScheme):
    paper = "GRPO, arXiv:2402.03300"
    changes = "nothing: completions are written apart and compared within their prompt's group"

    def __call__(self, window: Window) -> Rollouts:
        seeds = [stable_seed("rollout", *key) for key in window.keys]
        written = completed(window.loaded, window.rows, window.write(window.rows, seeds))
        rewards = window.grade(window.rows, written)
        return Rollouts(
            rows=window.rows,
            keys=window.keys,
            completions=written,
            advantages=window.compare(rewards, window.num_generations),
            rewards=rewards,
        )
