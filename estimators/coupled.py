"""Full mask and a complementary pair of masks, as published (coupled-GRPO).

    log p(o_l | q)  ~  1/2 [ s_l(all masked) + w s_l(the view of the pair that masks l) ]
    r ~ U(min_ratio, max_ratio),  z ~ Bernoulli(r),  w = 1/r for l in z, 1/(1 - r) for the others

s_l(view) is log p(o_l | view). Every token is scored twice, once with part of the completion.
Kept as published: the weights of a token add up to 1.5 in the mean, not to 1, so exp(new - old) is
about the ratio to the power 1.5, and the value is no bound. `elbo` with coupled=True has the same
pairs and is one. DiffuCoder draws one r per batch; here each row has its own.

Paper     DiffuCoder, arXiv:2506.20639
Estimates a surrogate, half one-step value and half an estimate that is the ELBO for r ~ U(0, 1)
Cost      3 forward passes, the first shared by a group
Level     token
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from .base import Estimator
from .masks import random_tokens, uniform
from .row_random import RowRandom
from .rows import MaskPlan, Sequences


@dataclass(frozen=True, kw_only=True)
class Coupled(Estimator):
    paper = "DiffuCoder, arXiv:2506.20639"
    estimates = "surrogate"
    level = "token"
    cost = "3 (2 + 1/G)"
    scores = "each token from the fully masked and from a partly masked completion"
    total_weight: ClassVar[float] = 1.5  # mean sum of a token's weights

    min_ratio: float = 0.2
    max_ratio: float = 0.8

    def __post_init__(self) -> None:
        if not 0 < self.min_ratio <= self.max_ratio < 1:
            raise ValueError(
                f"min_ratio {self.min_ratio} and max_ratio {self.max_ratio} are no range of "
                "masking ratios for a pair; use 0 < min_ratio <= max_ratio < 1, as 0.2 and 0.8"
            )

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        scored_B1L = self.scored(seqs).cpu()[:, None]
        r_B11 = self.min_ratio + (self.max_ratio - self.min_ratio) * uniform(random, 1)[..., None]
        z_B1L = random_tokens(random, scored_B1L, r_B11)
        rest_B1L = ~z_B1L & scored_B1L
        return self.planned(
            seqs,
            masked=torch.cat([scored_B1L, z_B1L, rest_B1L], dim=1),
            weight=torch.cat([scored_B1L, z_B1L / r_B11, rest_B1L / (1 - r_B11)], dim=1) / 2,
        )

    def views(self, *, length: int, steps: int) -> int:
        return 3
