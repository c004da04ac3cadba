"""The chain rule in reading order (JustGRPO).

    log p(o | q)  =  sum_k log p(o_k | q, o_1..o_{k-1}, the rest masked)

Exact for rollouts written strictly from left to right, one token per step; for others it is the
likelihood of a decoder that did not write them. One view gives one token.

subset=m scores m of the n positions, one drawn in each of m equal parts of the completion, with
importance n/m: without bias, and very noisy per forward pass.
top_entropy=f scores the share f of the positions whose recorded entropy is highest: JustGRPO's fast
variant with f = 0.25, biased.

Paper     JustGRPO, arXiv:2601.15165
Estimates the log-probability of left-to-right decoding, exactly
Cost      one forward pass per token scored
Level     token
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from .base import AfterEos, Estimator
from .decoding import Decoding
from .row_random import RowRandom
from .rows import MaskPlan, Sequences
from .subset import draw, highest, mean_by_step, tokens_by_step


@dataclass(frozen=True, kw_only=True)
class LeftToRight(Estimator):
    paper = "JustGRPO, arXiv:2601.15165"
    estimates = "exact"
    level = "token"
    cost = "L (subset, or top_entropy x L)"
    scores = "left-to-right decoding, token by token"
    exact_settings = ({},)

    subset: int | None = None
    top_entropy: float | None = None
    after_eos: AfterEos = "score"  # tokens after EOS were actions too
    at_rollout_temperature: bool = True

    def __post_init__(self) -> None:
        if self.subset is not None and self.subset < 1:
            raise ValueError(f"subset is {self.subset}; use at least 1, or null for every position")
        if self.top_entropy is not None and not 0 < self.top_entropy <= 1:
            raise ValueError(
                f"top_entropy is {self.top_entropy}; it is a share of the positions in (0, 1], "
                "JustGRPO uses 0.25"
            )
        if self.subset is not None and self.top_entropy is not None:
            raise ValueError("subset and top_entropy both choose positions; set one of them")

    def exact_for(self, decoding: Decoding) -> bool:
        return self.subset is None and self.unbiased_for(decoding)

    def unbiased_for(self, decoding: Decoding) -> bool:
        token_by_token = decoding.rule == "left_to_right" and decoding.one_by_one
        return token_by_token and self.as_drawn(decoding) and self.top_entropy is None

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        scored_BL = self.scored(seqs).cpu()
        # the number of each token among those to be scored; what is given keeps out of it
        place_BL = (scored_BL.cumsum(-1) - 1).clamp(min=0).masked_fill(seqs.fixed.cpu(), -1)
        which_BM, importance = self._which(seqs, place_BL, scored_BL, random)
        now = (place_BL[:, None] == which_BM[..., None]) & scored_BL[:, None]
        masked = place_BL[:, None] >= which_BM[..., None]
        return self.planned(seqs, masked=masked, weight=now, importance=importance)

    def _which(
        self,
        seqs: Sequences,
        place: Int[Tensor, "B L"],
        scored: Bool[Tensor, "B L"],
        random: RowRandom,
    ) -> tuple[Int[Tensor, "B M"], Tensor | None]:
        if self.subset is not None:
            return draw(tokens_by_step(place, scored), self.subset, random)
        if self.top_entropy is None:
            return torch.arange(scored.shape[1]).expand(scored.shape), None
        exists_BK = tokens_by_step(place, scored) > 0
        m_B1 = (scored.sum(-1, keepdim=True) * self.top_entropy).ceil().long()
        entropy_BK = mean_by_step(seqs.recorded("entropy"), place, scored)
        return highest(entropy_BK, exists_BK, m_B1), None

    def views(self, *, length: int, steps: int) -> int:
        if self.subset is not None:
            return min(self.subset, length)
        return length if self.top_entropy is None else math.ceil(length * self.top_entropy)
