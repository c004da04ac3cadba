"""One random mask per pass over the rollout, its weights outside the log-probs (UniGRPO).

    masked_mean   log p(o | q)  ~  n/k  sum_{l in z} log p(o_l | q, o outside z)
    flat          log p(o | q)  ~  1/t  sum_{l in z} ...,      t the mean ratio of this pass

n is the number of scored tokens, z a uniformly random set of k = 1 + floor(ratio n) of them (a
number instead of one coin per token, so that no mask is empty). The factors are `importance`:
a token's ratio exp(new - old) is that of one plain log-prob.

`masked_mean`, with ratio ~ U(0, 1), is the ELBO without bias. In a loss that is a mean over the
tokens of each sequence, every sequence gives the mean over its masked tokens. `flat` is what a
sum over masked tokens is, divided by their number in the batch: masks with many tokens count too
much. Which of them a code base has is decided by its normaliser only.

grid=True spreads the ratios over the P passes: the first pass has r ~ U(min_ratio, max_ratio),
pass p has r + (1 - r) p / (P - 1), and the last masks everything.
coupled=True also shows the complement, so that each token is scored once: k ~ U{0..n}, the
factors are (n+1)/2k and (n+1)/2(n-k), or 1.

Paper     UniGRPO in MMaDA, arXiv:2505.15809; flat from 0.1 to 0.9: TraceRL, arXiv:2509.06949
Estimates a surrogate; a lower bound for masked_mean over all ratios without `grid`
Cost      1 forward pass, 2 when coupled
Level     token
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .base import Estimator
from .masks import random_sets
from .row_random import RowRandom
from .rows import MaskPlan, Sequences

NONE_MASKED = 1e-12  # in place of a share of zero


@dataclass(frozen=True, kw_only=True)
class RandomMask(Estimator):
    paper = "UniGRPO in MMaDA, arXiv:2505.15809"
    estimates = "surrogate"
    level = "token"
    cost = "1 (2 when coupled)"
    scores = "random-order decoding, at one masking level"

    weighting: Literal["masked_mean", "flat"] = "masked_mean"
    grid: bool = False
    coupled: bool = False
    min_ratio: float = 0.0
    max_ratio: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.min_ratio < self.max_ratio <= 1:
            raise ValueError(
                f"min_ratio {self.min_ratio} and max_ratio {self.max_ratio} are no range of "
                "masking ratios; use 0 <= min_ratio < max_ratio <= 1"
            )
        if self.coupled and (self.grid or (self.min_ratio, self.max_ratio) != (0.0, 1.0)):
            raise ValueError(
                "coupled masks have the ratios r and 1 - r with r ~ U(0, 1); "
                "grid, min_ratio and max_ratio do not go with coupled"
            )

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        scored_B1L = self.scored(seqs).cpu()[:, None]
        n_B1 = scored_B1L.sum(-1).double()
        first_B1 = random.per_rollout(1) if self.grid else random.per_row(1)
        ratio_B1 = self._in_this_pass(
            self.min_ratio + (self.max_ratio - self.min_ratio) * first_B1, random
        )
        low = 0 if self.coupled else 1
        k_BM = (low + ratio_B1 * (n_B1 + 1 - low)).long().clamp(max=n_B1.long())
        masked = random_sets(random, scored_B1L, k_BM)
        if self.coupled:
            masked = torch.cat([masked, ~masked & scored_B1L], dim=1)
            k_BM = torch.cat([k_BM, n_B1.long() - k_BM], dim=1)
        if self.weighting == "masked_mean":
            share_BM = 2 * k_BM / (n_B1 + 1) if self.coupled else k_BM / n_B1.clamp(min=1)
        else:
            mean_11 = torch.full((1, 1), (self.min_ratio + self.max_ratio) / 2)
            share_BM = torch.ones(k_BM.shape, dtype=torch.float64)
            share_BM = share_BM if self.coupled else share_BM * self._in_this_pass(mean_11, random)
        importance = masked.any(-1) / share_BM.clamp(min=NONE_MASKED)
        return self.planned(seqs, masked=masked, weight=masked, importance=importance)

    def _in_this_pass(self, first: Tensor, random: RowRandom) -> Tensor:
        """The ratio of this pass, given that of the first."""
        if not self.grid or random.passes == 1:
            return first
        return first + (1 - first) * random.pass_index / (random.passes - 1)

    def views(self, *, length: int, steps: int) -> int:
        return 1 + self.coupled
