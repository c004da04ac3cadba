"""KTO: completions that are good or bad by themselves, without a partner.

    x    = beta_kto (log p(o) - log p_ref(o))
    loss = desirable   (1 - sigmoid(x - z))      A > 0
           undesirable (1 - sigmoid(z - x))      A < 0

    baseline "kl"      z = max(mean x, 0), an estimate of beta_kto KL(policy || reference)   KTO
             "mean"    z = mean x                                                       ELBO-KTO
             "zero"    z = 0

The mean is over the optimizer step, and has no gradient. KTO takes it over completions of other
prompts; here, as in ELBO-KTO, over the rows themselves. Advantage 0 is no label.

Papers    KTO, arXiv:2402.01306; ELBO-KTO, arXiv:2510.23658
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from estimators import Estimate

from .base import Metrics, Objective
from .comparison import Aggregation, Comparison, Totals


@dataclass(frozen=True, kw_only=True)
class Kto(Objective):
    summary = "KTO on good and bad completions without partners"
    paper = "KTO, arXiv:2402.01306; ELBO-KTO, arXiv:2510.23658"
    needs_old = False
    needs_reference = True
    has_statistic = True

    beta_kto: float = 0.1
    desirable: float = 1.0
    undesirable: float = 1.0
    baseline: Literal["kl", "mean", "zero"] = "kl"
    aggregation: Aggregation = "sequence_sum"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.beta_kto < float("inf"):
            raise ValueError(f"beta_kto is {self.beta_kto}; it must be positive")
        if min(self.desirable, self.undesirable) < 0:
            raise ValueError(
                f"desirable is {self.desirable} and undesirable is {self.undesirable}; "
                f"these weights cannot be negative"
            )

    def step_statistic(
        self,
        new: Estimate,
        old: Estimate,
        ref: Estimate | None,
        advantages: Float[Tensor, "B *A"],
        scored: Bool[Tensor, "B L"],
    ) -> float:
        """Sum of x."""
        c = Comparison(new=new, old=old, ref=ref, advantages=advantages, scored=scored)
        return self._x(c).detach().sum().item()

    def surrogate(self, c: Comparison, totals: Totals) -> tuple[Tensor, Metrics]:
        x_B, advantage_B = self._x(c), c.row_advantages
        margin_B = (x_B - self._z(totals)) * advantage_B.sign()
        good_B, bad_B = (advantage_B > 0).to(x_B), (advantage_B < 0).to(x_B)
        weight_B = self.desirable * good_B + self.undesirable * bad_B
        right = (margin_B > 0).sum()
        metrics: Metrics = {"preference/accuracy": (right, advantage_B.ne(0).sum())}
        return self.mean(weight_B * torch.sigmoid(-margin_B), c, totals), metrics

    def _x(self, c: Comparison) -> Float[Tensor, " B"]:
        return self.beta_kto * c.sequence_difference(c.reference)

    def _z(self, totals: Totals) -> float:
        assert totals.statistic is not None, "the sum of the step's x"
        mean = totals.statistic / totals.sequences
        return {"kl": max(mean, 0.0), "mean": mean, "zero": 0.0}[self.baseline]
