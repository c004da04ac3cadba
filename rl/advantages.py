"""Advantages: how much better a completion is than the others of its prompt.

    A_i = r_i - mean(group)                     baseline "mean"           (Dr. GRPO, d1)
    A_i = r_i - mean(group without i)           baseline "leave_one_out"  (RLOO, ESPO)
    A_i / (std + 1e-4)                          scale "group" or "batch"  (GRPO)
    softmax_i(A / psi) - softmax_i(-A / psi)    weighting "softmax", over a group (wd1)
    A_i * negative_scale  where A_i < 0

`negative_scale` < 1 pushes down on bad completions less than it pushes up on good ones. Pushing a
log-prob down has no floor, and most estimators here do not see the states where it would be felt.

A reward of NaN means "not graded": it takes part in no mean or softmax and gets advantage 0. In a
group of equal rewards all advantages are exactly 0.

Papers    GRPO, arXiv:2402.03300; Dr. GRPO, arXiv:2503.20783; RLOO, arXiv:2402.14740;
          wd1, arXiv:2507.08838 (its code takes the softmax over a micro-batch)
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
    weighting: Literal["linear", "softmax"] = "linear"
    softmax_temperature: float = 1.0  # psi
    negative_scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.negative_scale < float("inf"):
            raise ValueError(
                f"negative_scale is {self.negative_scale}; use 0 (ignore bad completions) to 1"
            )
        if not 0 < self.softmax_temperature < float("inf"):
            raise ValueError(
                f"softmax_temperature is {self.softmax_temperature}; it must be positive"
            )
        if self.softmax_temperature != 1 and self.weighting != "softmax":
            raise ValueError(
                f"softmax_temperature is {self.softmax_temperature}, but weighting is "
                f"{self.weighting!r}; it belongs to weighting: softmax"
            )

    def __call__(
        self,
        rewards: Float[Tensor, " N"],
        num_generations: int,
        spread: Float[Tensor, " N"] | None = None,
    ) -> Float[Tensor, " N"]:
        """Rewards of whole groups, completions of one prompt next to each other.

        spread: what to divide by; by default that of these rewards.
        """
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
        if self.scale != "none":
            spread = self.spread(rewards, num_generations) if spread is None else spread
            advantages = advantages / spread.view(-1, num_generations)
        if self.weighting == "softmax":
            tilted = advantages / self.softmax_temperature
            advantages = _nansoftmax(tilted) - _nansoftmax(-tilted)
        advantages = advantages.nan_to_num(0.0).flatten()
        return torch.where(advantages < 0, advantages * self.negative_scale, advantages)

    def spread(self, rewards: Float[Tensor, " N"], num_generations: int) -> Float[Tensor, " N"]:
        """What `scale` divides by: 1, or the rewards' standard deviation + 1e-4."""
        if self.scale == "none":
            return torch.ones_like(rewards)
        group = rewards.view(-1, num_generations) if self.scale == "group" else rewards[None]
        return (_nanstd(group) + EPSILON).expand_as(group).flatten()


def _nansoftmax(x: Tensor) -> Tensor:
    """Softmax of each row over what is graded."""
    return x.masked_fill(x.isnan(), -torch.inf).softmax(1)


def _nanstd(x: Tensor) -> Tensor:
    """Sample standard deviation of each row, 0 where fewer than two values are graded."""
    count = (~x.isnan()).sum(1, keepdim=True)
    x = x - x.nan_to_num(torch.inf).amin(1, keepdim=True)  # equal values have exactly 0
    return (
        (x - x.nanmean(1, keepdim=True)).square().nansum(1, keepdim=True) / (count - 1).clamp(min=1)
    ).sqrt()
