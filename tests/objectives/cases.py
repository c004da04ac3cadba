"""Estimates by hand and at random, and every objective in its settings."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from estimators import Estimate
from rl.objectives import (
    Clipped,
    Kto,
    LinearBound,
    Objective,
    ObjectiveOutput,
    PolicyGradient,
    Preference,
    SelfNormalized,
    Squared,
    Totals,
    Weighted,
)


def tensor(x: Any) -> Tensor:
    return torch.as_tensor(x, dtype=torch.float64)


def estimate(
    logp: Any,
    mask: Any = None,
    *,
    view: Any = None,
    importance: Any = None,
    choice: Any = None,
    upper: Any = None,
) -> Estimate:
    """Each token in the view of its number; all in view 0 by default."""
    token_logp = tensor(logp)
    mask_BL = torch.ones_like(token_logp) if mask is None else torch.as_tensor(mask)
    mask_BL = mask_BL.bool()
    view_BL = torch.zeros_like(mask_BL).long() if view is None else torch.as_tensor(view)
    one_hot_BLM = torch.nn.functional.one_hot(view_BL).to(token_logp)
    token_logp = token_logp * mask_BL
    return Estimate(
        token_logp=token_logp,
        token_mask=mask_BL,
        view_logp=torch.einsum("bl,blm->bm", token_logp, one_hot_BLM),
        view=torch.where(mask_BL, view_BL, -1),
        importance=None if importance is None else tensor(importance),
        choice_logp=None if choice is None else tensor(choice),
        upper_logp=None if upper is None else tensor(upper),
    )


def totals_of(scored: Tensor, statistic: float | None = None) -> Totals:
    return Totals(
        tokens=float(scored.sum()),
        sequences=len(scored),
        length=scored.shape[1],
        statistic=statistic,
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """The arguments of an objective for a whole optimizer step."""

    new: Estimate
    old: Estimate
    ref: Estimate | None
    advantages: Tensor
    scored: Tensor
    groups: Tensor | None

    def rows(self, index: Any) -> "Case":
        index = torch.as_tensor(index)
        return Case(
            new=self.new.rows(index),
            old=self.old.rows(index),
            ref=None if self.ref is None else self.ref.rows(index),
            advantages=self.advantages[index],
            scored=self.scored[index],
            groups=None if self.groups is None else self.groups[index],
        )

    def statistic(self, objective: Objective) -> float | None:
        if not objective.has_statistic:
            return None
        return objective.step_statistic(self.new, self.old, self.ref, self.advantages, self.scored)

    def apply(self, objective: Objective, totals: Totals | None = None) -> ObjectiveOutput:
        totals = totals or totals_of(self.scored, self.statistic(objective))
        return objective(
            self.new, self.old, self.ref, self.advantages, self.scored, totals, self.groups
        )


def case(new: Estimate, advantages: Any, **parts: Any) -> Case:
    """With old and reference log-probs of 0, so that `new` holds log-ratios."""
    zeros = {
        name: torch.zeros_like(x)
        for name, x in vars(new).items()
        if name.endswith("logp") and x is not None
    }
    zero = replace(new, **zeros)
    given = {
        "old": zero,
        "ref": zero,
        "scored": torch.ones_like(new.token_mask),
        "groups": torch.zeros(len(new.token_mask), dtype=torch.long),
    }
    return Case(new=new, advantages=tensor(advantages), **{**given, **parts})


B, L, M = 6, 5, 3
GROUPS = [0, 0, 0, 1, 1, 1]


def random_case(
    seed: int = 0, *, importance: bool = False, choice: bool = False, noise: float = 0.1
) -> Case:
    """Six rows, two groups of three, five tokens in three views, not all scored or masked."""
    g = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=g, dtype=torch.float64)

    scored = uniform(B, L) < 0.8
    scored[:, 0] = True
    mask = scored & (uniform(B, L) < 0.8)
    mask[:, 0] = True
    view = (uniform(B, L) * M).long()
    view[0] = torch.tensor([0, 1, 2, 1, 0])  # so that every view exists
    importances = 0.5 + 2 * uniform(B, M) if importance else None
    upper_gap = uniform(B, L)

    def policy() -> Estimate:
        logp = -1 - noise * uniform(B, L)
        choices = -0.5 - noise * uniform(B, M) if choice else None
        return estimate(
            logp, mask, view=view, importance=importances, choice=choices, upper=logp + upper_gap
        )

    return Case(
        new=policy(),
        old=policy(),
        ref=policy(),
        advantages=torch.tensor([1.0, -2.0, 0.5, 1.5, 0.0, -1.0], dtype=torch.float64),
        scored=scored,
        groups=torch.tensor(GROUPS),
    )


def on_policy(c: Case) -> Case:
    return replace(c, old=c.new)


def leaves(c: Case) -> tuple[Case, list[Tensor]]:
    """The same case as a differentiable function of its new log-probs (tokens, choices)."""
    token = c.new.token_logp.clone().requires_grad_()
    tensors = [token]
    choice = None
    if c.new.choice_logp is not None:
        choice = c.new.choice_logp.clone().requires_grad_()
        tensors.append(choice)
    return replace(c, new=rebuild(c.new, token, choice)), tensors


def rebuild(like: Estimate, token: Tensor, choice: Tensor | None = None) -> Estimate:
    """`like` with other log-probs; its upper bound keeps its distance from the lower one."""
    assert like.view is not None
    assert like.view_logp is not None
    one_hot = torch.nn.functional.one_hot(like.view.clamp(min=0), like.view_logp.shape[1])
    one_hot = one_hot.to(token) * like.token_mask[..., None]
    upper = None if like.upper_logp is None else 2 * token + (like.upper_logp - like.token_logp)
    return replace(
        like,
        token_logp=token * like.token_mask,
        view_logp=torch.einsum("bl,blm->bm", token, one_hot),
        choice_logp=choice if choice is not None else like.choice_logp,
        upper_logp=upper,
    )


def gradients(objective: Objective, c: Case) -> list[Tensor]:
    """d loss / d new log-prob of tokens (and choices)."""
    c, tensors = leaves(c)
    grads = torch.autograd.grad(c.apply(objective).loss, tensors, allow_unused=True)
    return [torch.zeros_like(t) if x is None else x for x, t in zip(grads, tensors, strict=True)]


def values(out: ObjectiveOutput) -> dict[str, float]:
    return {name: (total / count).item() for name, (total, count) in out.metrics.items()}


EVERY: dict[str, Objective] = {
    "clipped": Clipped(),
    "clipped step": Clipped(level="step"),
    "clipped GSPO": Clipped(level="sequence", aggregation="sequence_mean"),
    "clipped ESPO": Clipped(level="sequence", normalize_ratio="canvas", aggregation="constant"),
    "clipped GDPO": Clipped(level="sequence", normalize_ratio="none", aggregation="sequence_mean"),
    "clipped unconditional": Clipped(clip="unconditional"),
    "clipped unconditional sequence": Clipped(clip="unconditional", level="sequence"),
    "clipped cispo": Clipped(clip="cispo"),
    "clipped cispo step": Clipped(clip="cispo", level="step"),
    "clipped cispo sequence": Clipped(clip="cispo", level="sequence"),
    "policy_gradient": PolicyGradient(),
    "policy_gradient upper": PolicyGradient(negative="upper"),
    "policy_gradient mixture": PolicyGradient(negative="mixture", mixture_weight=0.3),
    "weighted": Weighted(),
    "linear_bound": LinearBound(),
    "self_normalized": SelfNormalized(),
    "self_normalized none": SelfNormalized(normalize_ratio="none", aggregation="sequence_sum"),
    "self_normalized mixture": SelfNormalized(negative="mixture"),
    "squared": Squared(psi=0.5),
    "squared stop": Squared(psi=0.5, stop=0.01, normalize_ratio="scored"),
    "preference": Preference(),
    "preference extremes": Preference(pairs="extremes", smoothing=0.1, beta_dpo=1.0),
    "kto": Kto(),
    "kto mean": Kto(baseline="mean", desirable=2.0),
    "kto zero": Kto(baseline="zero", undesirable=0.5),
    "KL to the reference": PolicyGradient(beta=0.3, kl="k3"),
    "KL k1": PolicyGradient(beta=0.3, kl="k1"),
    "KL to old": Clipped(beta=0.3, kl="k2", kl_to="old"),
    "KL of steps": Clipped(level="step", beta=0.3, kl_level="step"),
    "KL of sequences": Clipped(
        level="sequence", normalize_ratio="canvas", aggregation="constant",
        beta=0.3, kl="k2", kl_level="sequence",
    ),
    "distill": Clipped(distill=0.05),
}  # fmt: skip
