"""Monte Carlo evidence lower bound, with optional coupled (complementary) masks.

    log p(o | q)  >=  E_{k ~ U{1..n}} E_{|z| = k} [ n/k  sum_{l in z} log p(o_l | q, o outside z) ]
                   =  E_{t ~ U(0, 1)} E_{z ~ Bernoulli(t)} [ 1/t  sum_{l in z} ... ]

where n is the number of scored tokens and z the set of masked ones. `law` picks the first form
("count", far less noise for short completions) or the second ("bernoulli").
`coupled=True` scores both z and its complement, so that each token is scored once per pair; k is
then drawn from U{0..n}, and the weights are (n+1)/k for z and (n+1)/(n-k) for its complement, or
1/t and 1/(1-t), halved. `stratified=True` draws the `samples` masking levels from as many equal
parts of their range, `stratify_rows=True` those of all completions of a prompt, in random order
(ESPO). The mean is the bound in every case.

It is no longer the bound, but what some papers train on, with
min_ratio, max_ratio: t ~ U(min_ratio, max_ratio)      DMPO, arXiv:2510.08233 (0.1 to 1, coupled)
weighting="flat": every masked token weighs 1 / E[t] (1 if coupled), so that masks with many
    tokens count too much: GDSD, arXiv:2605.29398 (coupled)

DiPOD's code draws k = floor(u n), which is never n; ours does not.

Paper     LLaDA, arXiv:2502.09992; VRPO, arXiv:2505.19223; BGPO, arXiv:2510.11683;
          coupling: DiffuCoder, arXiv:2506.20639 and ESPO, arXiv:2512.03759
Estimates a lower bound, without bias for any `samples`
Cost      `samples` forward passes, twice that when coupled
Level     sequence
"""

from dataclasses import dataclass
from typing import Literal

import torch

from .base import Estimator
from .masks import random_sets, random_tokens, uniform
from .row_random import RowRandom
from .rows import MaskPlan, Sequences

NONE_MASKED = 1e-12  # in place of a chance of zero


@dataclass(frozen=True, kw_only=True)
class Elbo(Estimator):
    paper = "LLaDA, arXiv:2502.09992"
    estimates = "lower bound"
    level = "sequence"
    cost = "samples (2 x samples when coupled)"
    scores = "random-order decoding"

    samples: int = 1
    coupled: bool = False
    stratified: bool = False
    stratify_rows: bool = False
    law: Literal["count", "bernoulli"] = "count"
    weighting: Literal["elbo", "flat"] = "elbo"
    min_ratio: float = 0.0
    max_ratio: float = 1.0

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}; an ELBO needs at least 1")
        if not 0 <= self.min_ratio < self.max_ratio <= 1:
            raise ValueError(
                f"min_ratio {self.min_ratio} and max_ratio {self.max_ratio} are no range of "
                "masking ratios; use 0 <= min_ratio < max_ratio <= 1"
            )
        if self.law == "count" and (self.min_ratio, self.max_ratio) != (0.0, 1.0):
            raise ValueError(
                f"min_ratio {self.min_ratio} and max_ratio {self.max_ratio} need law bernoulli; "
                "law count draws every number of masked tokens"
            )

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        scored_B1L = self.scored(seqs).cpu()[:, None]
        n_B1 = scored_B1L.sum(-1).double()
        u_BM = uniform(
            random, self.samples, stratified=self.stratified, over_rows=self.stratify_rows
        )
        if self.law == "count":
            low = 0 if self.coupled else 1
            k_BM = low + (u_BM * (n_B1 + 1 - low)).long()  # U{low..n}
            masked = random_sets(random, scored_B1L, k_BM)
            chance_BM, rest_BM = k_BM / (n_B1 + 1 - low), (n_B1 - k_BM) / (n_B1 + 1 - low)
        else:
            chance_BM = self.min_ratio + (self.max_ratio - self.min_ratio) * u_BM
            rest_BM = 1 - chance_BM
            masked = random_tokens(random, scored_B1L, chance_BM[..., None])
        if self.weighting == "flat":
            mean = 0.5 if self.coupled else (self.min_ratio + self.max_ratio) / 2
            chance_BM, rest_BM = torch.full_like(u_BM, mean), torch.full_like(u_BM, mean)
        if self.coupled:
            masked = torch.cat([masked, ~masked & scored_B1L], dim=1)
            chance_BM = 2 * torch.cat([chance_BM, rest_BM], dim=1)
        weight = masked / chance_BM[..., None].clamp(min=NONE_MASKED) / self.samples
        return self.planned(seqs, masked=masked, weight=weight)

    def views(self, *, length: int, steps: int) -> int:
        return self.samples * (1 + self.coupled)
