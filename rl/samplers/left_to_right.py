"""Commit positions in reading order, as an autoregressive model would.

    rank_l = -l

Source    JustGRPO, arXiv:2601.15165
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from .base import Sampler
from .proposal import Proposal


@dataclass(frozen=True, kw_only=True)
class LeftToRight(Sampler):
    rule = "left_to_right"
    summary = "positions in reading order"
    paper = "JustGRPO, arXiv:2601.15165"
    blind = True

    def choose(self, proposal: Proposal) -> Int[Tensor, "R L"]:
        return proposal.first(torch.zeros_like(proposal.noise))  # ties go to the left
