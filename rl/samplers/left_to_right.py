"""Commit positions in reading order, as an autoregressive model would.

    rank_l = -l

Source    JustGRPO, arXiv:2601.15165
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from .base import Proposal, Sampler


@dataclass(frozen=True, kw_only=True)
class LeftToRight(Sampler):
    rule = "left_to_right"
    blind = True

    def rank(self, proposal: Proposal) -> Float[Tensor, "B W"]:
        return -proposal.place.float().expand_as(proposal.noise)
