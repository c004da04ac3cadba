"""One micro-batch as objectives see it: the same sequences under the current and other policies.

A ratio belongs to a term (token or choice of positions), to a step (all terms of one view), or to
a sequence. `importance` multiplies the losses of terms and steps and is never in their exponents;
a sequence's log-prob is a sum, and has it inside.

Shapes: B rows, L completion tokens, M views, E terms, U units (terms, steps or sequences).
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from estimators import Estimate

# A choice hangs on which of two probabilities is larger, and may flip by rounding alone: the
# log-ratio of one choice is held to this, beyond which it has no gradient.
MOST_BY_CHOICE = math.log(5.0)

Level = Literal["token", "step", "sequence"]
Aggregation = Literal["token_mean", "sequence_mean", "constant", "sequence_sum"]
Size = Literal["scored", "canvas", "none"]


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Size of the whole optimizer step, over all micro-batches and ranks.

    Dividing by these makes a loss that does not depend on how the step was cut up.

    statistic: sum over the step of `Objective.step_statistic`; None if the objective has none.
    """

    tokens: float  # scored tokens
    sequences: int
    length: int  # max_completion_length
    statistic: float | None = None


@dataclass(frozen=True, kw_only=True)
class Units:
    """What has one ratio each, and its weight in sums and losses."""

    logp: Float[Tensor, "B U"]
    difference: Float[Tensor, "B U"]  # to the log-prob of the other policy
    mask: Bool[Tensor, "B U"]
    weight: Float[Tensor, "B U"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The arguments of an objective; see `Objective.__call__`."""

    new: Estimate
    old: Estimate
    ref: Estimate | None
    advantages: Float[Tensor, "B *A"]
    scored: Bool[Tensor, "B L"]
    groups: Int[Tensor, " B"] | None = None
    sizes: Float[Tensor, " B"] | None = None  # what stands for the number of scored tokens

    @property
    def reference(self) -> Estimate:
        if self.ref is None:
            raise ValueError(
                "this objective needs an estimate of the reference policy; it got none"
            )
        return self.ref

    @property
    def row_advantages(self) -> Float[Tensor, " B"]:
        if self.advantages.ndim > 1:
            raise ValueError(
                "these advantages are per token, but this objective (or its level) weighs whole "
                "sequences; use a rollout that credits completions (independent), or level token"
            )
        return self.advantages

    def size(self, kind: Size) -> Float[Tensor, " B"]:
        """By what a sequence's log-ratio is divided."""
        scored_B = self.scored.sum(-1)
        if kind == "scored" and self.sizes is not None:
            return self.sizes
        if kind == "scored":
            scored_B = scored_B.clamp(min=1)
        else:
            scored_B = torch.full_like(scored_B, self.scored.shape[1] if kind == "canvas" else 1)
        return scored_B.to(self.new.token_logp)

    def sequence_difference(self, other: Estimate) -> Float[Tensor, " B"]:
        return self.new.sequence_logp - other.sequence_logp

    def units(self, level: Level, other: Estimate) -> Units:
        """Current log-probs, and how they differ from those of `other`."""
        if level == "token":
            new, tokens = self.new.terms, self.new.token_logp.shape[1]
            difference = (new.logp - other.terms.logp).masked_fill(~new.mask, 0.0)
            held = difference[:, tokens:].clamp(-MOST_BY_CHOICE, MOST_BY_CHOICE)
            difference = torch.cat([difference[:, :tokens], held], dim=1)
            return Units(logp=new.logp, difference=difference, mask=new.mask, weight=new.weight)
        if level == "step":
            logp_BM = _view_logp(self.new)
            weight = self.new.importance
            return Units(
                logp=logp_BM,
                difference=logp_BM - _view_logp(other),
                mask=self._views(),
                weight=torch.ones_like(logp_BM) if weight is None else weight.to(logp_BM),
            )
        logp_B1 = self.new.sequence_logp[:, None]
        return Units(
            logp=logp_B1,
            difference=self.sequence_difference(other)[:, None],
            mask=torch.ones_like(logp_B1, dtype=torch.bool),
            weight=torch.ones_like(logp_B1),
        )

    def unit_advantages(self, level: Level) -> Float[Tensor, "B #U"]:
        """One per unit; a step, and its choice of positions, has the mean of its tokens'."""
        if level == "sequence" or self.advantages.ndim == 1:
            return self.row_advantages[:, None]
        if level == "token" and self.new.choice_logp is None:
            return self.advantages
        count_BM = self._per_view(self.new.token_mask).clamp(min=1)
        steps_BM = self._per_view(self.advantages) / count_BM
        return steps_BM if level == "step" else torch.cat([self.advantages, steps_BM], dim=1)

    def draws(self, other: Estimate) -> Float[Tensor, "B M"]:
        """Each view's own estimate of the sequences' difference: their mean is the difference."""
        difference_BM = _view_logp(self.new) - _view_logp(other)
        if self.new.importance is not None:
            difference_BM = difference_BM * self.new.importance.to(difference_BM)
        return difference_BM * difference_BM.shape[1]

    def choices(self) -> "Comparison":
        """The same with the choices of positions in the place of the tokens."""
        per_token = self.advantages.ndim > 1
        return replace(
            self,
            new=_as_tokens(self.new),
            old=_as_tokens(self.old),
            ref=None if self.ref is None else _as_tokens(self.ref),
            advantages=self.unit_advantages("step") if per_token else self.advantages,
            scored=_as_tokens(self.new).token_mask,
            sizes=self._choices_made(),
        )

    def _choices_made(self) -> Float[Tensor, " B"]:
        """Steps that chose; drawn ones count as those that they stand for."""
        assert self.new.choice_logp is not None
        made_BM = self.new.choice_logp.detach().ne(0).to(self.new.choice_logp)
        if self.new.importance is not None:
            made_BM = made_BM * self.new.importance.to(made_BM)
        return made_BM.sum(-1).clamp(min=1.0)

    def _views(self) -> Bool[Tensor, "B M"]:
        """Views that scored something."""
        some_BM = self._per_view(self.new.token_mask) > 0
        return some_BM if self.new.choice_logp is None else some_BM | self.new.choice_logp.ne(0)

    def _per_view(self, x_BL: Tensor) -> Tensor:
        """Sums over the tokens that each view scored."""
        view_BL, mask_BL = self.new.view, self.new.token_mask
        if view_BL is None or bool((mask_BL & (view_BL < 0)).any()):
            raise ValueError(
                "the step level needs an estimator that scores each token in one view, such as "
                "trajectory; use the token or the sequence level with this one"
            )
        logp_BM = _view_logp(self.new).detach()
        x_BL = (x_BL * mask_BL).to(logp_BM)
        return torch.zeros_like(logp_BM).scatter_add(1, view_BL.clamp(min=0), x_BL)


def _view_logp(estimate: Estimate) -> Float[Tensor, "B M"]:
    """Of all terms of each view."""
    if estimate.view_logp is None:
        raise ValueError(
            "this objective compares single views, but the estimate has none of its own"
        )
    if estimate.choice_logp is None:
        return estimate.view_logp
    return estimate.view_logp + estimate.choice_logp


def _as_tokens(estimate: Estimate) -> Estimate:
    choice_BM = estimate.choice_logp
    if choice_BM is None:
        raise ValueError(
            "epsilon_choice clips the choices of positions, but this estimator scores none; "
            "leave it null, or use an estimator with `selection`"
        )
    mask_BM = choice_BM.ne(0)
    view_BM = torch.arange(choice_BM.shape[1], device=choice_BM.device).expand_as(choice_BM)
    return Estimate(
        token_logp=choice_BM,
        token_mask=mask_BM,
        view_logp=choice_BM,
        view=view_BM,
        importance=estimate.importance,
    )
