"""BGPO's lower bound of the sequence ratio's surrogate, a sum over Monte Carlo draws.

    d_j = log p(draw j) - log p_old(draw j),  whose mean over the n draws is the difference of the
                                              sequence's log-prob
    J   = A mean_j (1 + d_j)      A >= 0, as exp(x) >= 1 + x
    J   = A mean_j exp(d_j)       A < 0, by Jensen's inequality

    J <= A exp(mean_j d_j), with equal value and gradient where new = old

As a sum over draws it can be back-propagated draw by draw. A draw is a view of the plan. Nothing is
clipped, so for A < 0 a single d_j of a few nats outweighs all else: keep steps small. DARE's code
writes 1 + d as exp(log(1 + d)), which is NaN for d < -1, and clips it.

Paper     BGPO, arXiv:2510.11683
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rl.exponential import finite_exp

from .base import Metrics, Objective, mean_over_rows
from .comparison import Aggregation, Comparison, Totals


@dataclass(frozen=True, kw_only=True)
class LinearBound(Objective):
    summary = "a bound of the sequence ratio that is linear in the draws"
    paper = "BGPO, arXiv:2510.11683"
    linear_when = "on_policy"

    aggregation: Aggregation = "sequence_sum"

    def surrogate(self, c: Comparison, totals: Totals) -> tuple[Tensor, Metrics]:
        d_BM = c.draws(c.old)
        advantage_B1 = c.row_advantages[:, None]
        bound_BM = torch.where(advantage_B1 < 0, finite_exp(d_BM), 1 + d_BM)
        gain_B = (advantage_B1 * bound_BM).mean(-1)
        metrics = {"ratio/mean": mean_over_rows(finite_exp(d_BM.mean(-1)))}
        return -self.mean(gain_B, c, totals), metrics
