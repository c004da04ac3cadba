"""Advantages: how much better a completion is than the others of its prompt.

    A_i = r_i - mean(group)                     baseline "mean"           (Dr. GRPO, d1)
    A_i = r_i - mean(group without i)           baseline "leave_one_out"  (RLOO, ESPO)
    A_i / (std + 1e-4)                          scale "group" or "batch"  (GRPO)
    A_i * negative_scale  where A_i < 0

`negative_scale` < 1 pushes down on bad completions less than it pushes up on good ones. Pushing a
log-prob down has no floor, and most estimators here do not see the states where it would be felt.

A reward of NaN means "not graded": it takes part in no mean and gets advantage 0.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

EPSILON = 1e-4  # TRL's


@dataclass(frozen=True, kw_only=True)
class GroupAdvantage:
    baseline: Literal["mean", "leave_one_out"] = "mean"
    scale: Literal["none", "group", "batch"] = "group"
    negative_scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.negative_scale < float("inf"):
            raise ValueError(
                f"negative_scale is {self.negative_scale}; use 0 (ignore bad completions) to 1"
            )

    def __call__(self, rewards: Float[Tensor, " N"], num_generations: int) -> Float[Tensor, " N"]:
        """Rewards of whole groups, completions of one prompt next to each other."""
        if len(rewards) % num_generations:
            raise ValueError(f"{len(rewards)} rewards are not whole groups of {num_generations}")
        group = rewards.view(-1, num_generations)
        # The result does not depend on a shift; from the lowest, equal rewards are exactly 0.
        group = group - group.nan_to_num(torch.inf).amin(1, keepdim=True)
        mean = group.nanmean(1, keepdim=True)
        advantages = group - mean
        if self.baseline == "leave_one_out":
            graded = (~group.isnan()).sum(1, keepdim=True)
            advantages = advantages * graded / (graded - 1).clamp(min=1)
        if self.scale == "group":
            advantages = advantages / (_nanstd(group, mean) + EPSILON)
        elif self.scale == "batch":
            batch = rewards[None]
            advantages = advantages / (_nanstd(batch, batch.nanmean(1, keepdim=True)) + EPSILON)
        advantages = advantages.nan_to_num(0.0).flatten()
        return torch.where(advantages < 0, advantages * self.negative_scale, advantages)


def _nanstd(x: Tensor, mean: Tensor) -> Tensor:
    """Sample standard deviation of each row, 0 where fewer than two values are graded."""
    count = (~x.isnan()).sum(1, keepdim=True)
    return ((x - mean).square().nansum(1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
