"""The clipped surrogate of PPO and GRPO.

    per token   J_l = min(r_l A, clip(r_l, 1 - epsilon, 1 + epsilon_high) A) - beta KL_l
    level "token"       r_l = exp(new_l - old_l)                           GRPO, d1, UniGRPO
    level "sequence"    r_l = exp(sum_l (new_l - old_l) / n)  for all l    GSPO, ESPO

n is the number of scored tokens of the completion (not of tokens this plan happened to mask).
KL_l is per token at either level, of the tokens that the plan scored: `level` is that of the ratio.

Aggregation of -J over the optimizer step (B sequences, L = max_completion_length):

    token_mean      sum_bl / sum_b n_b            DAPO
    sequence_mean   1/B sum_b (sum_l / n_b)       GRPO
    constant        sum_bl / (B L)                Dr. GRPO

Papers    GRPO, arXiv:2402.03300; DAPO, arXiv:2503.14476; Dr. GRPO, arXiv:2503.20783;
          GSPO, arXiv:2507.18071; ESPO, arXiv:2512.03759

Shapes: B rows, L completion tokens.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from estimators import Estimate
from rl.kl import Kl, kl_divergence

from .base import Objective, ObjectiveOutput, Totals


@dataclass(frozen=True, kw_only=True)
class Clipped(Objective):
    level: Literal["token", "sequence"] = "token"
    epsilon: float = 0.2
    epsilon_high: float | None = None  # None: the same as epsilon
    kl: Kl = "k3"
    aggregation: Literal["token_mean", "sequence_mean", "constant"] = "token_mean"

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= 1:
            raise ValueError(f"epsilon is {self.epsilon}; it must be in (0, 1]")
        if self.epsilon_high is not None and self.epsilon_high <= 0:
            raise ValueError(f"epsilon_high is {self.epsilon_high}; it must be positive or null")
        if self.beta < 0:
            raise ValueError(f"beta is {self.beta}; use 0 for no KL term, or a positive weight")

    def __call__(
        self,
        new: Estimate,
        old: Estimate,
        ref: Estimate | None,
        advantages: Float[Tensor, " B"],
        scored: Bool[Tensor, "B L"],
        totals: Totals,
    ) -> ObjectiveOutput:
        length_B1 = scored.sum(-1, keepdim=True).clamp(min=1)
        log_ratio_BL = new.token_logp - old.token_logp
        mask_BL = new.token_mask
        if self.level == "sequence":
            log_ratio_BL = (log_ratio_BL.sum(-1, keepdim=True) / length_B1).expand_as(log_ratio_BL)
            mask_BL = scored
        ratio_BL = log_ratio_BL.exp()
        high = self.epsilon if self.epsilon_high is None else self.epsilon_high
        advantage_B1 = advantages[:, None]
        free_BL = ratio_BL * advantage_B1
        held_BL = ratio_BL.clamp(1 - self.epsilon, 1 + high) * advantage_B1
        loss_BL = -torch.minimum(free_BL, held_BL) * mask_BL
        metrics = _ratio_metrics(ratio_BL.detach(), advantage_B1, mask_BL, self.epsilon, high)
        if self.beta:
            if ref is None:
                raise ValueError(
                    f"beta is {self.beta}, which needs an estimate of the reference policy"
                )
            kl_BL = kl_divergence(new.token_logp, ref.token_logp, self.kl) * new.token_mask
            loss_BL = loss_BL + self.beta * kl_BL
            metrics["kl"] = (kl_BL.detach().sum(), new.token_mask.sum())
        return ObjectiveOutput(loss=self._aggregate(loss_BL, length_B1, totals), metrics=metrics)

    def _aggregate(self, loss_BL: Tensor, length_B1: Tensor, totals: Totals) -> Tensor:
        if self.aggregation == "token_mean":
            return loss_BL.sum() / max(totals.tokens, 1.0)
        if self.aggregation == "sequence_mean":
            return (loss_BL / length_B1).sum() / totals.sequences
        return loss_BL.sum() / (totals.sequences * totals.length)


def _ratio_metrics(
    ratio: Float[Tensor, "B L"],
    advantage: Float[Tensor, "B 1"],
    mask: Bool[Tensor, "B L"],
    low: float,
    high: float,
) -> dict[str, tuple[Tensor, Tensor]]:
    count = mask.sum()
    clipped_low = (ratio < 1 - low) & (advantage < 0) & mask
    clipped_high = (ratio > 1 + high) & (advantage > 0) & mask
    return {
        "ratio/mean": ((ratio * mask).sum(), count),
        "clip_ratio/low": (clipped_low.sum(), count),
        "clip_ratio/high": (clipped_high.sum(), count),
    }
