"""ELBO whose masks prefer the tokens that were decoded late (informed masking).

    t ~ U(0, 1);  token l is masked with probability  m_l = sigmoid(logit(t) + strength x_l)
    log p(o | q)  ~  sum_{l in z} 1/m_l log p(o_l | q, o outside z)

x_l is the step that committed token l as a share of the decode, from 0 to 1, less its mean over the
completion. A mask then looks like a state of the decode: what was written early is visible. Every
token keeps the total weight 1, but is seen in other contexts than under uniform masks.

corrected=True weighs the whole view by p(z) / q(z) / t instead, p and q being the uniform and the
informed law: the ELBO without bias, at a noise that grows fast with strength and length.
strength=0 is `elbo` with law "bernoulli".

Paper     Informed Masking for SPG, 2026; its code is not public, and this law is our reading of it
Estimates a surrogate; a lower bound, without bias, if corrected
Cost      `samples` forward passes
Level     sequence
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .base import Estimator
from .masks import random_tokens, uniform
from .row_random import RowRandom
from .rows import MaskPlan, Sequences


@dataclass(frozen=True, kw_only=True)
class InformedElbo(Estimator):
    paper = "Informed Masking, 2026"
    estimates = "surrogate"
    level = "sequence"
    cost = "samples"
    scores = "decoding in an order like the rollout's"

    samples: int = 1
    strength: float = 2.0
    corrected: bool = False

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}; use at least 1")

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        scored_B1L = self.scored(seqs).cpu()[:, None]
        late_B1L = self._late(seqs, scored_B1L)
        t_BM1 = uniform(random, self.samples)[..., None].clamp(min=1e-9)
        m_BML = (t_BM1.logit() + self.strength * late_B1L).sigmoid()
        z_BML = random_tokens(random, scored_B1L, m_BML)
        weight_BML = 1 / m_BML
        if self.corrected:
            odds_BML = torch.where(z_BML, t_BM1 / m_BML, (1 - t_BM1) / (1 - m_BML))
            weight_BML = torch.where(scored_B1L, odds_BML, 1.0).prod(-1, keepdim=True) / t_BM1
        return self.planned(seqs, masked=z_BML, weight=z_BML * weight_BML / self.samples)

    @staticmethod
    def _late(seqs: Sequences, scored: Bool[Tensor, "B 1 L"]) -> Float[Tensor, "B 1 L"]:
        step_B1L = seqs.recorded("step_map")[:, None].double()
        share_B1L = step_B1L / step_B1L.amax(-1, keepdim=True).clamp(min=1)
        n_B11 = scored.sum(-1, keepdim=True).clamp(min=1)
        return share_B1L - (share_B1L * scored).sum(-1, keepdim=True) / n_B11

    def views(self, *, length: int, steps: int) -> int:
        return self.samples
