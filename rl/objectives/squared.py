"""Regression of the log-ratio on the advantage.

    loss = (d - psi A)^2,   d = (log p - log p_old) / c,  c = L ("canvas") or n ("scored")

The minimum is the old policy tilted by the advantage, p_old exp(c psi A), a teacher made of the
policy itself. With `stop`, d is held in log(1 -+ stop), where both signs have no gradient; the
stop applies to d, after the division. The released code holds the difference of whole sequences,
and squares every pair of masks by itself; here d is the mean over the draws.

Paper     GDSD, arXiv:2605.29398
"""

import math
from dataclasses import dataclass

from torch import Tensor

from rl.exponential import finite_exp

from .base import Metrics, Objective, mean_over_rows
from .comparison import Aggregation, Comparison, Size, Totals


@dataclass(frozen=True, kw_only=True)
class Squared(Objective):
    summary = "squared distance of the log-ratio to the scaled advantage"
    paper = "GDSD, arXiv:2605.29398"
    linear_when = "on_policy"
    zero_is_silent = False  # it pulls the policy back to the old one

    psi: float = 1.0
    stop: float | None = None
    normalize_ratio: Size = "canvas"
    aggregation: Aggregation = "sequence_sum"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.psi < float("inf"):
            raise ValueError(f"psi is {self.psi}; it must be positive")
        if self.stop is not None and not 0 < self.stop < 1:
            raise ValueError(f"stop is {self.stop}; it must be between 0 and 1, or null for none")

    def surrogate(self, c: Comparison, totals: Totals) -> tuple[Tensor, Metrics]:
        free_B = c.sequence_difference(c.old) / c.size(self.normalize_ratio)
        metrics = {"ratio/mean": mean_over_rows(finite_exp(free_B))}
        d_B = free_B
        if self.stop is not None:
            d_B = free_B.clamp(math.log1p(-self.stop), math.log1p(self.stop))
            metrics["clip_ratio/low"] = mean_over_rows(d_B > free_B)
            metrics["clip_ratio/high"] = mean_over_rows(d_B < free_B)
        return self.mean((d_B - self.psi * c.row_advantages).square(), c, totals), metrics
