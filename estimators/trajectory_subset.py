"""Some steps of the recorded trajectory, weighed so that the mean is that of all of them.

    sum_k x_k  ~  sum_{k drawn} f_k x_k,     f_k = c_k / (m p_k),  x_k = sum_{l in U_k} s_l(view k)

s_l(view) is log p(o_l | view). m steps are drawn from p, one in each of m equal parts of its
cumulative distribution; c_k counts how often k came out. f_k is `importance`, outside of a
ratio's exponent.

    by            p is proportional to
    uniform       1, so that f is T/m                                       AGRPO, arXiv:2510.04019
    entropy       the mean recorded entropy of the step's tokens            AGRPO's other choice
    uncertainty   1 / the geometric mean of their rollout probabilities     RLDF, arXiv:2605.25638
                  (published without the factor: importance=False)
    highest_entropy, first, last: no draw but the m steps of highest mean entropy (EGSPO,
                  arXiv:2603.12554), or the first or last m; biased, without a factor

baseline="one_step" uses the one-step value, one more view that a group shares, as control variate:

    sum_l s_l(all masked)  +  sum_{k drawn} f_k  sum_{l in U_k} [ s_l(view k) - s_l(all masked) ]

It has the same mean, and less noise where the one-step value follows the trajectory's. Tokens are
then scored in two views, so the factors are part of the log-prob.

Paper     AGRPO, arXiv:2510.04019; the control variate is ours
Estimates what `trajectory` estimates, without bias if drawn with importance
Cost      m forward passes, and one for a group with the baseline
Level     token
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from .decoding import Decoding
from .row_random import RowRandom
from .rows import MaskPlan, Sequences
from .stepwise import Stepwise
from .subset import draw, highest, mean_by_step, tokens_by_step

DRAWN = ("uniform", "entropy", "uncertainty")
LEAST_ENTROPY = 0.01  # nats: every step can be drawn


@dataclass(frozen=True, kw_only=True)
class TrajectorySubset(Stepwise):
    paper = "AGRPO, arXiv:2510.04019"
    estimates = "exact in expectation"
    level = "token"
    cost = "m (and 1/G with the baseline)"
    scores = "the rollout's own steps, and with selection 1 its choice of positions"

    m: int = 8
    by: Literal["uniform", "entropy", "uncertainty", "highest_entropy", "first", "last"] = "uniform"
    importance: bool = True
    baseline: Literal["none", "one_step"] = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.m < 1:
            raise ValueError(f"m is {self.m}; use at least 1 step, AGRPO uses 24")
        if self.importance and self.by not in DRAWN:
            raise ValueError(
                f"by {self.by} draws nothing, so there is no importance to correct for; "
                f"set importance to false, or by to one of {', '.join(DRAWN)}"
            )
        if self.baseline == "one_step" and (self.step_mean or not self.importance):
            raise ValueError(
                "baseline one_step needs importance true and step_mean false: it corrects the "
                "sum over all steps"
            )

    def unbiased_for(self, decoding: Decoding) -> bool:
        return self.every_action(decoding) and not self.step_mean and self.importance

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        segment_BL, scored_BL = self.segment_map(seqs), self.scored(seqs).cpu()
        exists_BK = tokens_by_step(segment_BL, scored_BL) > 0
        key_BK = self._key(seqs, segment_BL, scored_BL, exists_BK)
        if self.by not in DRAWN:
            return self.views_at(seqs, segment_BL, highest(key_BK, exists_BK, self.m))
        which_BM, factor_BM = draw(key_BK * exists_BK, self.m, random)
        if not self.importance:
            return self.views_at(seqs, segment_BL, which_BM)
        if self.baseline == "none":
            return self.views_at(seqs, segment_BL, which_BM, factor_BM)
        return self._after_one_step(seqs, segment_BL, which_BM, factor_BM)

    def _after_one_step(
        self, seqs: Sequences, segment: Tensor, which: Tensor, factor: Tensor
    ) -> MaskPlan:
        """The drawn views after one where all is masked; a token's weights add up to 1."""
        none = torch.zeros_like(factor[:, :1])
        plan = self.views_at(seqs, segment, torch.cat([none.long(), which], dim=1))
        weight_BML = plan.weight * torch.cat([none, factor], dim=1)[..., None].to(plan.weight)
        weight_BML[:, 0] = self.scored(seqs).to(weight_BML) - weight_BML.sum(1)
        if plan.choice is not None:
            plan.choice[:, 0] = False
        return replace(plan, weight=weight_BML)

    def _key(self, seqs: Sequences, segment: Tensor, scored: Tensor, exists: Tensor) -> Tensor:
        """The number by which steps are chosen, [B, K]."""
        if self.by == "uniform":
            return exists.double()
        if self.by in ("first", "last"):
            k_K = torch.arange(exists.shape[1], dtype=torch.float64)
            return (k_K if self.by == "last" else -k_K).expand(exists.shape)
        if self.by == "uncertainty":
            surprise_BK = -mean_by_step(seqs.recorded("rollout_logp"), segment, scored)
            return (surprise_BK - surprise_BK.amax(-1, keepdim=True)).exp()
        entropy_BK = mean_by_step(seqs.recorded("entropy"), segment, scored)
        return entropy_BK.clamp(min=LEAST_ENTROPY) if self.by == "entropy" else entropy_BK

    def views(self, *, length: int, steps: int) -> int:
        most = steps if self.segments is None else min(self.segments, steps)
        return min(self.m, most) + (self.baseline == "one_step")
