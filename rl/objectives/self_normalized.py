"""Self-normalised importance weights without a gradient.

    w = [ min(exp((new - old) / c), cap) ]        [] has no gradient; c as in `clipped.py`
    J = sum_b w_b A_b log p(o_b) / mean_b w_b

The weights are ratios of the lower bound; what they multiply is the bound of `negative`
(`sign_rule.py`). A ratio is cut whatever the sign of A, and however large the weights are, their
mean over the optimizer step is 1: the step stays inside the convex hull of the rows' gradients.

Paper     StableDRL, arXiv:2603.06743. The released code scores the old policy under other masks
          than the current one; here they share the plan, and a weight is 1 at the same parameters.
"""

import math
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from estimators import Estimate
from rl.exponential import CEILING

from .base import Metrics, Objective, mean_over_rows
from .comparison import Aggregation, Comparison, Size, Totals
from .sign_rule import Negative, bound_by_sign, check_sign_rule


@dataclass(frozen=True, kw_only=True)
class SelfNormalized(Objective):
    summary = "advantage times log-prob under detached, capped, self-normalised ratios"
    paper = "StableDRL, arXiv:2603.06743"
    has_statistic = True
    linear_when = "on_policy"

    cap: float = 5.0
    normalize_ratio: Size = "scored"
    negative: Negative = "lower"
    mixture_weight: float = 0.5
    aggregation: Aggregation = "sequence_mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 < self.cap < float("inf"):
            raise ValueError(f"cap is {self.cap}; the largest weight must be above 1")
        check_sign_rule(self.negative, self.mixture_weight)

    def linear(self, on_policy: bool) -> bool:
        """An upper bound is the log of a mean: not linear in what the model says."""
        return self.negative == "lower" and super().linear(on_policy)

    def _log_weights(self, c: Comparison) -> Float[Tensor, " B"]:
        log_ratio_B = c.sequence_difference(c.old).detach() / c.size(self.normalize_ratio)
        return log_ratio_B.clamp(-CEILING, math.log(self.cap))  # their sum is never 0

    def step_statistic(
        self,
        new: Estimate,
        old: Estimate,
        ref: Estimate | None,
        advantages: Float[Tensor, "B *A"],
        scored: Bool[Tensor, "B L"],
    ) -> float:
        """Sum of the weights."""
        c = Comparison(new=new, old=old, ref=ref, advantages=advantages, scored=scored)
        return self._log_weights(c).exp().sum().item()

    def surrogate(self, c: Comparison, totals: Totals) -> tuple[Tensor, Metrics]:
        assert totals.statistic is not None, "the sum of the step's weights"
        log_weight_B = self._log_weights(c)
        terms = bound_by_sign(c.new, c.advantages, self.negative, self.mixture_weight).terms
        gain_B = (c.unit_advantages("token") * terms.logp * terms.weight * terms.mask).sum(-1)
        gain_B = log_weight_B.exp() * gain_B * (totals.sequences / totals.statistic)
        metrics = {
            "ratio/mean": mean_over_rows(log_weight_B.exp()),
            "clip_ratio/high": mean_over_rows(log_weight_B >= math.log(self.cap)),
        }
        return -self.mean(gain_B, c, totals), metrics
