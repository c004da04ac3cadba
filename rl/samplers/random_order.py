"""Commit positions in a uniformly random order: the sampler that the ELBO bounds.

    rank_l ~ U(0, 1)

Source    LLaDA, arXiv:2502.09992 ("random remasking")
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from .base import Proposal, Sampler


@dataclass(frozen=True, kw_only=True)
class RandomOrder(Sampler):
    rule = "random"
    blind = True

    def rank(self, proposal: Proposal) -> Float[Tensor, "B W"]:
        return proposal.noise
