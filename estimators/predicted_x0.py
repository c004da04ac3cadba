"""The whole prediction of an intermediate state (MDPO).

    log p(o | q, z)  ~  L/#z  sum_{l in z} c_l log p(o_l | q, o outside z)

A row is one state of a decode together with what the model predicted for it: z holds the #z tokens
that were masked in the state (they carry a step), the others were visible (their step is -1), and L
is the length of the canvas. The rollout scheme `intermediate` makes such rows; without it, every
token has a step and this is the one-step value.
The factor is `importance`, divided once more by #z, so that a sum over the tokens of each sequence
is MDPO's loss: L/#z times a mean over the masked tokens.
confidence=True has c_l = the rollout's probability of the token, a constant, otherwise 1. It is
part of the log-prob, which gives MDPO's gradient as long as new equals old.

Paper     MDPO, arXiv:2508.13148
Estimates a surrogate: the tokens of a prediction were not sampled jointly
Cost      1 forward pass per row
Level     token
"""

from dataclasses import dataclass

from .base import AfterEos, Estimator
from .row_random import RowRandom
from .rows import MaskPlan, Sequences


@dataclass(frozen=True, kw_only=True)
class PredictedX0(Estimator):
    paper = "MDPO, arXiv:2508.13148"
    estimates = "surrogate"
    level = "token"
    cost = "1"
    scores = "each masked token of an intermediate state from that state"

    confidence: bool = False
    after_eos: AfterEos = "score"  # a prediction has no end yet
    at_rollout_temperature: bool = True

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        masked_B1L = ~seqs.fixed[:, None]
        weight = self.scored(seqs).double()[:, None]
        masked_B1 = weight.sum(-1)
        importance = masked_B1.gt(0) * weight.shape[-1] / masked_B1.clamp(min=1).square()
        if self.confidence:
            probability_BL = seqs.recorded("rollout_logp").detach().exp()
            weight = weight * probability_BL[:, None].to(weight)
        return self.planned(seqs, masked=masked_B1L, weight=weight, importance=importance)

    def views(self, *, length: int, steps: int) -> int:
        return 1
