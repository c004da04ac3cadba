"""Commit positions in a uniformly random order: the sampler that the ELBO bounds.

    rank_l ~ U(0, 1)

Source    LLaDA, arXiv:2502.09992 ("random remasking")
"""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from .base import Sampler
from .proposal import Proposal


@dataclass(frozen=True, kw_only=True)
class RandomOrder(Sampler):
    rule = "random"
    summary = "random positions"
    paper = "LLaDA, arXiv:2502.09992"
    blind = True

    def choose(self, proposal: Proposal) -> Int[Tensor, "R L"]:
        return proposal.first(proposal.noise)
