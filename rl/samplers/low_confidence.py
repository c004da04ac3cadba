"""LLaDA's low-confidence remasking: propose everywhere, keep the most confident proposals.

    rank_l = p(x_l | z) at temperature 1,   x_l the proposed token

Source    LLaDA, arXiv:2502.09992, and its released generate.py
Note      which positions are kept depends on the proposed tokens, so the product of the token
          probabilities is not the probability of the step; `estimators/choice.py` has the rest
"""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from .base import Sampler
from .proposal import Proposal


@dataclass(frozen=True, kw_only=True)
class LowConfidence(Sampler):
    rule = "low_confidence"
    summary = "the proposals that the model finds most likely (LLaDA)"
    paper = "LLaDA, arXiv:2502.09992"

    def choose(self, proposal: Proposal) -> Int[Tensor, "R L"]:
        return proposal.first(proposal.logp)
