"""LLaDA's low-confidence remasking: propose everywhere, keep the most confident proposals.

    rank_l = p(x_l | z) at temperature 1,   x_l the proposed token

Source    LLaDA, arXiv:2502.09992, and its released generate.py
Note      which positions are kept depends on the proposed tokens, so the product of the token
          probabilities is not the probability of the step
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from .base import Proposal, Sampler


@dataclass(frozen=True, kw_only=True)
class LowConfidence(Sampler):
    rule = "low_confidence"

    def rank(self, proposal: Proposal) -> Float[Tensor, "B W"]:
        return proposal.logp
