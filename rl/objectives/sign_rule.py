"""Which bound of the log-prob to push on: SPG's rule.

Raising a lower bound raises the log-prob, and lowering an upper bound lowers it; lowering a lower
bound may do nothing. So good completions (A >= 0) use the lower bound, and bad ones

    negative "lower"      the lower bound too
             "upper"      the upper bound
             "mixture"    mixture_weight * upper + (1 - mixture_weight) * lower

Paper     SPG, arXiv:2510.09541
"""

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from estimators import Estimate

Negative = Literal["lower", "upper", "mixture"]


def check_sign_rule(negative: Negative, mixture_weight: float) -> None:
    if not 0 < mixture_weight < 1:
        raise ValueError(
            f"mixture_weight is {mixture_weight}; use a number between 0 and 1, or negative: lower "
            f"or upper for one bound alone"
        )
    if negative != "mixture" and mixture_weight != 0.5:
        raise ValueError(
            f"mixture_weight is {mixture_weight}, but negative is {negative!r}; it belongs to "
            f"negative: mixture"
        )


def bound_by_sign(
    estimate: Estimate, advantages: Tensor, negative: Negative, mixture_weight: float
) -> Estimate:
    """`estimate` with the bound that each row's (or token's) advantage asks for."""
    if negative == "lower":
        return estimate
    if estimate.upper_logp is None:
        raise ValueError(
            f"negative is {negative!r}, but this estimator gives no upper bound; use the estimator "
            f"sandwich, or negative: lower"
        )
    share = mixture_weight if negative == "mixture" else 1.0
    bound_BL = torch.lerp(estimate.token_logp, estimate.upper_logp, share)
    bad = (advantages[:, None] if advantages.ndim == 1 else advantages) < 0
    return replace(estimate, token_logp=torch.where(bad, bound_BL, estimate.token_logp))
