"""Sandwiched bounds: a lower and an upper bound from the same forward passes (SPG).

    lower  =        sum_l         sum_m w_ml log p_ml                    an ELBO, as `semi_ar_elbo`
    upper  =  n/u   sum_{l in U}  1/b log sum_m w_ml p_ml^b              for b >= 1

p_ml is the probability of token l in view m, w_ml its weight in the ELBO (0 where it is not masked,
1/samples included), U the u tokens that some view masks, n the scored ones. Objectives take the
upper bound, or a mixture, where the advantage is negative: lowering a lower bound would not lower
the likelihood.

Of the views in which a token is likely the upper bound's gradient takes more; a token masked once
gets the plain score of that view. The upper bound is missing a term that does not depend on the
model, so it is a bound only up to that; as the logarithm of a mean it is biased down for few
samples; b = 1 is the tightest.

Paper     SPG, arXiv:2510.09541 (b = 1.5, two samples, blocks of 32)
Estimates a lower and an upper bound, of the semi-autoregressive likelihood
Cost      `samples` forward passes
Level     sequence
"""

from dataclasses import dataclass, replace

import torch

from .base import Estimator
from .decoding import PLAIN, Decoding
from .row_random import RowRandom
from .rows import Estimate, MaskPlan, Scores, Sequences
from .semi_ar_elbo import SemiArElbo


@dataclass(frozen=True, kw_only=True)
class Sandwich(Estimator):
    paper = "SPG, arXiv:2510.09541"
    estimates = "lower and upper bound"
    level = "sequence"
    cost = "samples"
    scores = "random-order decoding inside blocks, from left to right"

    samples: int = 2
    exponent: float = 1.5  # b
    block_length: int | None = 32
    context_mask_prob: float = 0.15

    def __post_init__(self) -> None:
        if self.exponent < 1:
            raise ValueError(
                f"exponent is {self.exponent}; below 1 there is no upper bound, SPG uses 1 to 2"
            )
        self._lower()  # checks the rest

    def _lower(self) -> SemiArElbo:
        return SemiArElbo(
            samples=self.samples,
            block_length=self.block_length,
            context_mask_prob=self.context_mask_prob,
            after_eos=self.after_eos,
        )

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        return self._lower().plan(seqs, random)

    def combine(
        self, seqs: Sequences, plan: MaskPlan, scores: Scores, decoding: Decoding = PLAIN
    ) -> Estimate:
        lower = super().combine(seqs, plan, scores, decoding)
        needed_BML = plan.weight.ne(0)
        w_BML = plan.weight.to(scores.token)
        log_BML = torch.where(needed_BML, w_BML.clamp(min=1e-30).log(), -1e30)
        upper_BL = (log_BML + self.exponent * scores.token).logsumexp(1) / self.exponent
        n_B1 = self.scored(seqs).sum(-1, keepdim=True)
        u_B1 = lower.token_mask.sum(-1, keepdim=True).clamp(min=1)
        upper_BL = torch.where(lower.token_mask, upper_BL * n_B1 / u_B1, 0.0)
        return replace(lower, upper_logp=upper_BL)

    def views(self, *, length: int, steps: int) -> int:
        return self.samples
