"""One-step mean-field estimate (diffu-GRPO).

    log p(o | q)  ~  sum_l log p(o_l | q', [MASK]^L),     q' = q with each token masked w.p. p

`share_prompt_mask="group"` draws one q' per prompt. All completions of a group then have the
same input and the denoiser runs it once: one forward per prompt instead of one per completion.
d1 draws a q' per completion (`"row"`); the estimated quantity and its mean are the same.

Paper     d1, arXiv:2504.12216
Estimates a surrogate: neither bound nor unbiased; it ignores dependence between tokens
Cost      1 forward pass, shared by a group
Level     token
"""

from dataclasses import dataclass
from typing import Literal

from .base import Estimator
from .row_random import RowRandom
from .rows import MaskPlan, Sequences


@dataclass(frozen=True, kw_only=True)
class MeanField(Estimator):
    paper = "d1, arXiv:2504.12216"
    estimates = "surrogate"
    level = "token"
    cost = "1 (1/G with a shared prompt mask)"
    scores = "each token from the fully masked completion"

    prompt_mask_prob: float = 0.15
    share_prompt_mask: Literal["group", "row"] = "group"

    def __post_init__(self) -> None:
        if not 0 <= self.prompt_mask_prob < 1:
            raise ValueError(
                f"prompt_mask_prob is {self.prompt_mask_prob}; it must be in [0, 1), d1 uses 0.15"
            )

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        Q = seqs.prompt_ids.shape[1]
        draw = random.per_group if self.share_prompt_mask == "group" else random.per_row
        # Numbers are counted from the prompt's end, so that left padding changes nothing.
        hide_BQ = (draw(Q).flip(-1) < self.prompt_mask_prob) & seqs.prompt_mask.cpu()
        scored_B1L = self.scored(seqs)[:, None]
        return self.planned(seqs, masked=scored_B1L, weight=scored_B1L, prompt=hide_BQ[:, None])

    def views(self, *, length: int, steps: int) -> int:
        return 1
