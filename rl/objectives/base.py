"""What every objective consumes and returns, and the terms that all of them may have.

    loss = own term  +  beta KL(new || ref or old)  -  distill log p(completion)

An objective is a pure function of log-probs and advantages. It knows nothing of models, masks or
trainers; it decides only how each log-prob is weighed. A row's loss is a sum over its terms
(tokens, then choices of positions). The sums of B rows, with n_b scored tokens of L, become one by

    token_mean      sum_b / sum_b n_b           DAPO; BNPO, over the whole optimizer step
    sequence_mean   1/B sum_b (sum / n_b)       GRPO
    constant        sum_b / (B L)               Dr. GRPO
    sequence_sum    sum_b / B                   DPO, wd1

Papers    GRPO, arXiv:2402.03300; DAPO, arXiv:2503.14476; Dr. GRPO, arXiv:2503.20783;
          distill: DiPOD, arXiv:2606.13795
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from estimators import Estimate
from rl.kl import Kl, kl_divergence

from .comparison import Aggregation, Comparison, Level, Totals

Metrics = dict[str, tuple[Tensor, Tensor]]


def mean_over_rows(x: Shaped[Tensor, " B"]) -> tuple[Tensor, Tensor]:
    """A metric: (sum, count)."""
    return x.detach().sum(), torch.tensor(len(x), device=x.device)


@dataclass(frozen=True, kw_only=True)
class ObjectiveOutput:
    """`loss` is this micro-batch's share; the shares of a step add up to its loss.

    metrics: name -> (sum, count) over this micro-batch.
    """

    loss: Tensor
    metrics: Metrics


@dataclass(frozen=True, kw_only=True)
class Objective(ABC):
    """Settings of an objective. Write `surrogate`.

    beta: weight of the KL divergence; 0 for none.
    kl: its estimate (`rl/kl.py`). kl_to: from the reference policy, or from the one that wrote the
        rollouts. kl_level: of each token, of each step, or of the sequence (ESPO).
    distill: weight of the log-likelihood of the completions themselves, which keeps a bound tight.
    """

    summary: ClassVar[str]  # the loss in a line
    paper: ClassVar[str]

    needs_old: ClassVar[bool] = True  # it compares with the policy that wrote the rollouts
    needs_reference: ClassVar[bool] = False  # it uses the reference even if beta is 0
    whole_groups: ClassVar[bool] = False  # a micro-batch must hold whole groups
    reweighs: ClassVar[bool] = False  # it has a `reweigh` of its own
    has_statistic: ClassVar[bool] = False  # it has a `step_statistic`
    # when d own term / d log-prob does not depend on the current log-probs
    linear_when: ClassVar[Literal["always", "on_policy", "never"]] = "never"
    zero_is_silent: ClassVar[bool] = True  # own term: a row with advantage 0 has no gradient

    beta: float = 0.0
    kl: Kl = "k3"
    kl_to: Literal["ref", "old"] = "ref"
    kl_level: Level = "token"
    distill: float = 0.0
    aggregation: Aggregation = "token_mean"

    def __post_init__(self) -> None:
        if not 0 <= self.beta < float("inf"):
            raise ValueError(f"beta is {self.beta}; use 0 for no KL term, or a positive weight")
        if not 0 <= self.distill < float("inf"):
            raise ValueError(f"distill is {self.distill}; use 0 for none, or a positive weight")

    @abstractmethod
    def surrogate(self, c: Comparison, totals: Totals) -> tuple[Tensor, Metrics]:
        """This micro-batch's share of the own term, and what there is to log."""

    def __call__(
        self,
        new: Estimate,
        old: Estimate,
        ref: Estimate | None,
        advantages: Float[Tensor, "B *A"],
        scored: Bool[Tensor, "B L"],
        totals: Totals,
        groups: Int[Tensor, " B"] | None = None,
    ) -> ObjectiveOutput:
        """`scored`: tokens that may carry weight, the denominator of every per-token mean.

        advantages: one per row, or [B, L] one per token.
        groups: rows with the same number are completions of one prompt.
        """
        c = Comparison(
            new=new, old=old, ref=ref, advantages=advantages, scored=scored, groups=groups
        )
        loss, metrics = self.surrogate(c, totals)
        if self.beta:
            kl_B, metrics["kl"] = self._kl(c)
            loss = loss + self.beta * self.mean(kl_B, c, totals)
        if self.distill:
            loss = loss - self.distill * self.mean(new.sequence_logp, c, totals)
        return ObjectiveOutput(loss=loss, metrics=metrics)

    def mean(self, rows: Float[Tensor, " B"], c: Comparison, totals: Totals) -> Tensor:
        """This micro-batch's share of the step's mean of sums over the terms of each row."""
        if self.aggregation == "token_mean":
            return rows.sum() / max(totals.tokens, 1.0)
        if self.aggregation == "constant":
            return rows.sum() / (totals.sequences * totals.length)
        if self.aggregation == "sequence_mean":
            rows = rows / c.size("scored")
        return rows.sum() / totals.sequences

    @property
    def uses_old(self) -> bool:
        return self.needs_old or (self.beta > 0 and self.kl_to == "old")

    @property
    def uses_reference(self) -> bool:
        return self.needs_reference or (self.beta > 0 and self.kl_to == "ref")

    def linear(self, on_policy: bool) -> bool:
        """Whether d loss / d log-prob (of `new`'s terms) does not depend on the current log-probs.

        on_policy: no update was made since the rollout, so that new equals old. The gradient may
        then be taken at new = old = anything; otherwise at new = anything, with the real old. In
        both cases the metrics of log-probs, KL among them, are those of the stand-ins.
        """
        kl = not self.beta or self.kl == "k1" or (on_policy and self.kl_to == "old")
        own = self.linear_when == "always" or (on_policy and self.linear_when == "on_policy")
        return kl and own

    def reweigh(
        self,
        advantages: Float[Tensor, " N"],
        old: Float[Tensor, " N"],
        ref: Float[Tensor, " N"] | None,
        num_generations: int,
    ) -> Float[Tensor, " N"]:
        """Advantages once old and reference are known; whole groups, next to each other.

        old, ref: log-probs of the sequences. Called once per rollout, with the rows of all ranks.
        """
        return advantages

    def step_statistic(
        self,
        new: Estimate,
        old: Estimate,
        ref: Estimate | None,
        advantages: Float[Tensor, "B *A"],
        scored: Bool[Tensor, "B L"],
    ) -> float:
        """A sum over rows that the loss needs of the whole optimizer step (`Totals.statistic`).

        Called without gradients before the step's first backward pass, for every row of the step,
        also those whose advantage is 0.
        """
        return 0.0

    def _kl(self, c: Comparison) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        other = c.old if self.kl_to == "old" else c.ref
        if other is None:
            raise ValueError(
                f"beta is {self.beta}, which needs an estimate of the reference policy"
            )
        units = c.units(self.kl_level, other)
        weight, difference = units.weight * units.mask, units.difference
        if self.kl_level == "token":  # a choice that one policy cannot make has no finite log-ratio
            tokens = c.scored.shape[1]
            weight, difference = weight[:, :tokens], difference[:, :tokens]
        kl_B = (kl_divergence(difference, torch.zeros_like(weight), self.kl) * weight).sum(-1)
        return kl_B, (kl_B.detach().sum(), weight.sum())
