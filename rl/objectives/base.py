"""What every objective consumes and returns.

An objective is a pure function of log-probs and advantages. It knows nothing of models, masks or
trainers; it decides only how each log-prob is weighed.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from estimators import Estimate


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Size of the whole optimizer step, over all micro-batches and ranks.

    Dividing by these makes a loss that does not depend on how the step was cut up.
    """

    tokens: float  # scored tokens
    sequences: int
    length: int  # max_completion_length


@dataclass(frozen=True, kw_only=True)
class ObjectiveOutput:
    """`loss` is this micro-batch's share; the shares of a step add up to its loss.

    metrics: name -> (sum, count) over this micro-batch.
    """

    loss: Tensor
    metrics: dict[str, tuple[Tensor, Tensor]]


@dataclass(frozen=True, kw_only=True)
class Objective(ABC):
    """Settings of an objective.

    beta: weight of the KL divergence to the reference policy; 0 needs no reference.
    """

    beta: float = 0.0

    @abstractmethod
    def __call__(
        self,
        new: Estimate,
        old: Estimate,
        ref: Estimate | None,
        advantages: Float[Tensor, " B"],
        scored: Bool[Tensor, "B L"],
        totals: Totals,
    ) -> ObjectiveOutput:
        """`scored`: tokens that may carry weight, the denominator of every per-token mean."""
