"""The cosine of a mean gradient with the true one, from independent noisy rounds.

    |E g|^2 ~ mean of g_r . g_s over r != s,      E g . g* ~ mean of g_r . g*

Products of different rounds have no noise of their own in the mean, so that the cosine is that of
E g and not of a noisy mean.

Shapes: R rounds, P parameters.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Direction:
    """square: |mean|^2 without its noise. error: standard error of the cosine."""

    cosine: float
    error: float
    square: float


def direction(rounds: Float[Tensor, "R P"], truth: Float[Tensor, " P"]) -> Direction:
    """The direction of the mean of independent rounds; the error is the jackknife's."""
    cosine, square = _cosine(rounds, truth)
    R = len(rounds)
    if R < 3:
        return Direction(cosine=cosine, error=0.0, square=square)
    others = [torch.cat([rounds[:r], rounds[r + 1 :]]) for r in range(R)]
    without = torch.tensor([_cosine(some, truth)[0] for some in others])
    error = float(without.std(correction=0)) * math.sqrt(R - 1)
    return Direction(cosine=cosine, error=error, square=square)


def _cosine(rounds: Float[Tensor, "R P"], truth: Float[Tensor, " P"]) -> tuple[float, float]:
    """The cosine of the mean, and |mean|^2 from products of different rounds.

    Where noise is nearly all there is, a tenth of |mean|^2 with the noise is the least.
    """
    R, total = len(rounds), rounds.sum(0)
    square = plain = float(total.square().sum()) / R**2
    if R > 1:
        different = float(total.square().sum() - rounds.square().sum()) / (R * (R - 1))
        square = max(different, plain / 10)
    cosine = float(total @ truth) / R / math.sqrt(square) / float(truth.norm())
    return min(max(cosine, -1.0), 1.0), square
