"""Choose positions by the model's highest probability, then sample their tokens.

    rank_l = max_v p(v | z) at temperature 1

The choice of positions does not look at the sampled tokens: the product of the token
probabilities is the exact probability of the step. At temperature 0 it equals low_confidence.

Source    the order of Dream's "maskgit_plus" (MaskGIT, arXiv:2202.04200) with the draw taken last
"""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from .base import Sampler
from .proposal import Proposal


@dataclass(frozen=True, kw_only=True)
class ConfidenceFirst(Sampler):
    rule = "confidence_first"
    summary = "the positions of highest probability; tokens are drawn afterwards"
    paper = "MaskGIT, arXiv:2202.04200, with the draw taken last"

    def choose(self, proposal: Proposal) -> Int[Tensor, "R L"]:
        return proposal.first(proposal.peak)
