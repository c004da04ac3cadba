"""Weighted likelihood: the completions of a group as samples of a better policy.

    w_i = softmax_i(A_i / alpha + log p_ref(o_i) - log p_old(o_i)) - 1/G,  i over a group of G
    J   = sum_i w_i log p(o_i)

The softmax weighs samples of the old policy as samples of p_ref exp(A / alpha), the solution of the
KL-regularised problem; the constant, which a score function does not feel, makes the weights of the
worse completions negative. A shift of the advantages changes nothing, but a scale does: use
`scale: none`. Weights are made once per rollout (`reweigh`), from whole groups.

A completion without a grade has advantage 0 and counts as an average one.

Paper     DMPO, arXiv:2510.08233 (the released code draws masks of its own law for the likelihood)
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from .base import Metrics, Objective
from .comparison import Aggregation, Comparison, Totals


@dataclass(frozen=True, kw_only=True)
class Weighted(Objective):
    summary = "log-prob under softmax weights towards the KL-regularised optimum"
    paper = "DMPO, arXiv:2510.08233"
    needs_reference = True
    reweighs = True
    linear_when = "always"

    alpha: float = 0.04
    aggregation: Aggregation = "sequence_sum"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha < float("inf"):
            raise ValueError(f"alpha is {self.alpha}; it must be positive")

    def reweigh(
        self,
        advantages: Float[Tensor, " N"],
        old: Float[Tensor, " N"],
        ref: Float[Tensor, " N"] | None,
        num_generations: int,
    ) -> Float[Tensor, " N"]:
        if ref is None:
            raise ValueError("weights need log-probs of the reference policy; they got none")
        tilted = (advantages / self.alpha + ref - old).view(-1, num_generations)
        return (tilted.softmax(1) - 1 / num_generations).flatten()

    def surrogate(self, c: Comparison, totals: Totals) -> tuple[Tensor, Metrics]:
        """The advantages are the weights by now."""
        return -self.mean(c.row_advantages * c.new.sequence_logp, c, totals), {}
