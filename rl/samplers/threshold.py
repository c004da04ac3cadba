"""Threshold decoding: keep every proposal that is confident enough; easy text takes few steps.

    commit all l with p(x_l | z) > tau at temperature 1,   x_l the proposed token,
    or the ceil(L / steps) most confident ones if fewer pass

`steps` is the largest number of forward passes. With steps = L a step commits one token at least.

Source    Fast-dLLM, arXiv:2505.22618 (one token at least); SDAR's dynamic low-confidence decoding
          (the schedule's share at least)
"""

from dataclasses import dataclass, replace

from jaxtyping import Int
from torch import Tensor

from estimators import Decoding

from .base import Sampler
from .proposal import Proposal


@dataclass(frozen=True, kw_only=True)
class Threshold(Sampler):
    """threshold: tau, a probability."""

    rule = "threshold"
    summary = "every proposal above a confidence, and the best ones at least"
    paper = "Fast-dLLM, arXiv:2505.22618"

    threshold: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.threshold <= 1:
            raise ValueError(
                f"threshold is {self.threshold}; use a probability above 0 and up to 1, such as 0.9"
            )

    def decoding(self, length: int) -> Decoding:
        share = -(-length // self.steps)
        common = super().decoding(length)
        return replace(common, threshold=self.threshold, at_least=share, one_by_one=False)

    def choose(self, proposal: Proposal) -> Int[Tensor, "R L"]:
        L = proposal.eligible.shape[1]
        decoding = self.decoding(L)
        passing = proposal.eligible & (proposal.logp > decoding.log_threshold)
        return proposal.first(proposal.logp, passing.sum(-1).clamp(min=decoding.at_least))
