"""The clipped surrogate of PPO and GRPO, and its relatives.

    J_u = min(r_u A, clip(r_u, 1 - epsilon, 1 + epsilon_high) A)     clip "ppo"
    J_u = clip(r_u, 1 - epsilon, 1 + epsilon_high) A                 clip "unconditional"
    J_u = [clip(r_u, 1 - epsilon, 1 + epsilon_high)] A log p_u       clip "cispo"; [] is detached

    level "token"       r_u = exp(new_u - old_u), one per term       GRPO, d1, UniGRPO
    level "step"        the product over the terms of one view       EGSPO
    level "sequence"    r = exp((new - old) / c), and c J            GSPO, ESPO, GDPO

c is the number of scored tokens ("scored"; not of tokens that this plan happened to mask), L
("canvas") or 1 ("none"). With the factor c, the gradient at ratio 1 is A times that of the
log-prob at every level. GSPO is c = n with sequence_mean, ESPO c = L with constant, GDPO c = 1
with sequence_mean; a sequence_sum with c = 1 has no normalisation at all.

`epsilon_choice` gives the choices of positions a clip, and at the levels of steps and sequences a
ratio, of their own (Mask-Aware Policy Gradients); c then counts choices.

min(r A, clip(r) A) is clipped from above where A >= 0 and from below where A < 0. There the
published form has no upper bound, and a stray ratio of a bad completion decides the whole step.

Papers    GRPO, arXiv:2402.03300; GSPO, arXiv:2507.18071; ESPO, arXiv:2512.03759; GDPO,
          arXiv:2510.08554; EGSPO, arXiv:2603.12554; CISPO, arXiv:2506.13585; unconditional:
          StableDRL, arXiv:2603.06743; Mask-Aware Policy Gradients, arXiv:2607.15200

Shapes: B rows, U units (terms, steps or sequences).
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from rl.exponential import finite_exp

from .base import Metrics, Objective
from .comparison import Comparison, Level, Size, Totals


@dataclass(frozen=True, kw_only=True)
class Clipped(Objective):
    summary = "ratios to the old policy, of tokens, steps or sequences, clipped (GRPO, GSPO, CISPO)"
    paper = "GRPO, arXiv:2402.03300; GSPO, arXiv:2507.18071; ESPO, arXiv:2512.03759"
    linear_when = "on_policy"

    level: Level = "token"
    normalize_ratio: Size = "scored"
    clip: Literal["ppo", "unconditional", "cispo"] = "ppo"
    epsilon: float = 0.2
    epsilon_high: float | None = None  # None: the same as epsilon
    epsilon_choice: float | None = None  # None: choices are clipped as, and with, the tokens

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.epsilon <= 1:
            raise ValueError(f"epsilon is {self.epsilon}; it must be in (0, 1]")
        if self.epsilon_high is not None and self.epsilon_high <= 0:
            raise ValueError(f"epsilon_high is {self.epsilon_high}; it must be positive or null")
        if self.epsilon_choice is not None and not 0 < self.epsilon_choice <= 1:
            raise ValueError(
                f"epsilon_choice is {self.epsilon_choice}; it must be in (0, 1] or null"
            )
        if self.normalize_ratio != "scored" and self.level != "sequence":
            raise ValueError(
                f"normalize_ratio is {self.normalize_ratio!r}, but only ratios of sequences are "
                f"normalised; set level to sequence, or leave normalize_ratio out"
            )

    def surrogate(self, c: Comparison, totals: Totals) -> tuple[Tensor, Metrics]:
        high = self.epsilon if self.epsilon_high is None else self.epsilon_high
        if self.epsilon_choice is None:
            gain_B, metrics = self._gain(c, self.epsilon, high)
            return -self.mean(gain_B, c, totals), metrics
        alone = {"new": replace(c.new, choice_logp=None), "old": replace(c.old, choice_logp=None)}
        gain_B, metrics = self._gain(replace(c, **alone), self.epsilon, high)
        other_B, others = self._gain(c.choices(), self.epsilon_choice, self.epsilon_choice)
        metrics |= {f"choice_{name}": value for name, value in others.items()}
        return -self.mean(gain_B + other_B, c, totals), metrics

    def _gain(self, c: Comparison, low: float, high: float) -> tuple[Tensor, Metrics]:
        """Of each row; clipping log-ratios keeps infinities out of the backward pass."""
        units = c.units(self.level, c.old)
        size_B1 = c.size(self.normalize_ratio if self.level == "sequence" else "none")[:, None]
        advantage = c.unit_advantages(self.level)
        log_ratio = units.difference / size_B1
        lowest, highest = math.log1p(-low) if low < 1 else -math.inf, math.log1p(high)
        held = log_ratio.clamp(lowest, highest)
        if self.clip == "ppo":
            below, above = log_ratio.clamp(min=lowest), log_ratio.clamp(max=highest)
            held = torch.where(advantage < 0, below, above)
        ratio = finite_exp(held)
        weight = units.weight * units.mask * size_B1
        if self.clip == "cispo":
            gain = ratio.detach() * units.logp / size_B1 * advantage * weight
        else:
            gain = ratio * advantage * weight
        counts = advantage.ne(0) & units.mask
        count = units.mask.sum()
        metrics = {
            "ratio/mean": ((finite_exp(log_ratio.detach()) * units.mask).sum(), count),
            "clip_ratio/low": (((held > log_ratio) & counts).sum(), count),
            "clip_ratio/high": (((held < log_ratio) & counts).sum(), count),
        }
        return gain.sum(-1), metrics
