"""The policy gradient without a ratio.

    J = sum_u A log p_u,  u over the terms

Exact for the first update after a rollout, whatever the estimator is exact for. Later updates go
on with the same weights (SPG, wd1); there is no clip that could stop them. With wd1's advantages
(`weighting: softmax`) and sequence_sum it is wd1's weighted likelihood; with a left-to-right
estimator, JustGRPO. `negative` is SPG's choice of a bound for bad completions (`sign_rule.py`).

Papers    REINFORCE; SPG, arXiv:2510.09541; wd1, arXiv:2507.08838; JustGRPO, arXiv:2601.15165
"""

from dataclasses import dataclass

from torch import Tensor

from .base import Metrics, Objective
from .comparison import Comparison, Totals
from .sign_rule import Negative, bound_by_sign, check_sign_rule


@dataclass(frozen=True, kw_only=True)
class PolicyGradient(Objective):
    summary = "advantage times log-prob, no ratio; `negative` is the bound of bad completions (SPG)"
    paper = "SPG, arXiv:2510.09541; wd1, arXiv:2507.08838"
    needs_old = False
    linear_when = "always"

    negative: Negative = "lower"
    mixture_weight: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sign_rule(self.negative, self.mixture_weight)

    def linear(self, on_policy: bool) -> bool:
        """An upper bound is the log of a mean: not linear in what the model says."""
        return self.negative == "lower" and super().linear(on_policy)

    def surrogate(self, c: Comparison, totals: Totals) -> tuple[Tensor, Metrics]:
        terms = bound_by_sign(c.new, c.advantages, self.negative, self.mixture_weight).terms
        gain_B = (c.unit_advantages("token") * terms.logp * terms.weight * terms.mask).sum(-1)
        return -self.mean(gain_B, c, totals), {}
