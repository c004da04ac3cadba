"""Expectations over all that `plan` can draw, exactly: one row for each case, with its chance.

`Scripted` hands a plan the numbers that lead to the cases; values and gradients are then weighted
means over the rows.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from estimators import Decoding, Estimator, RowRandom, Sequences
from tests.tiny_models import TinyDenoiser, order_logps, token_logps

Case = tuple[float, *tuple[Any, ...]]  # chance, then a number or one per position for each draw


class Scripted(RowRandom):
    """Gives row i the numbers of case i, draw after draw; the same for every sample."""

    def __init__(self, *draws: Tensor, pass_index: int = 0, passes: int = 1) -> None:
        super().__init__([0] * len(draws[0]), pass_index=pass_index, passes=passes)
        self.draws = list(draws)

    def per_row(self, *shape: int) -> Tensor:
        numbers = self.draws.pop(0)
        wide = numbers.view(len(self), *[1] * (len(shape) + 1 - numbers.ndim), *numbers.shape[1:])
        return wide.expand(len(self), *shape)

    per_group = per_rollout = per_row


def expectation(
    est: Estimator,
    model: TinyDenoiser,
    seqs: Sequences,
    cases: Sequence[Case],
    *,
    decoding: Decoding | None = None,
    **passes: int,
) -> Tensor:
    """Mean of the estimate of one row over the cases, whose chances add up to 1."""
    chance = torch.tensor([case[0] for case in cases], dtype=torch.float64)
    assert abs(chance.sum() - 1) < 1e-9
    _, *columns = zip(*cases, strict=True)
    draws = [torch.tensor(numbers, dtype=torch.float64) for numbers in columns]
    many = seqs.rows(torch.zeros(len(cases), dtype=torch.long))
    plan = est.plan(many, Scripted(*draws, **passes))
    return (chance * est(model, many, plan, decoding or Decoding()).sequence_logp).sum()


def assert_same(model: TinyDenoiser, found: Tensor, expected: Tensor) -> None:
    """Two values and their gradients with respect to every parameter, to 1e-9."""
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    weights = list(model.parameters())
    for one, other in zip(gradient(found, weights), gradient(expected, weights), strict=True):
        assert other.abs().max() > 1e-3, "a gradient that shows nothing"
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


def gradient(value: Tensor, weights: list[Any]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(value, weights, retain_graph=True)


def subsets(places: Sequence[int]) -> list[tuple[int, ...]]:
    return [z for k in range(len(places) + 1) for z in itertools.combinations(places, k)]


def noise(z: Sequence[int], length: int) -> list[float]:
    """One number per position, low in z."""
    return [1e-9 if i in z else 1 - 1e-9 for i in range(length)]


def count_cases(scored: int, length: int, *, lowest: int = 1) -> list[Case]:
    """k ~ U{lowest..scored}, then a uniformly random set of k of the first `scored` tokens."""
    sizes = scored + 1 - lowest
    return [
        (
            1 / sizes / math.comb(scored, len(z)),
            (len(z) - lowest + 0.5) / sizes,
            noise(z, length),
        )
        for z in subsets(range(scored))
        if len(z) >= lowest
    ]


def bernoulli_cases(length: int, low: float = 0.0, high: float = 1.0) -> list[Case]:
    """t ~ U(low, high) by 20 nodes, exact for polynomials; then every set of tokens."""
    nodes, weights = _nodes()
    cases: list[Case] = []
    for u, w in zip(nodes, weights, strict=True):
        t = low + (high - low) * u
        for z in subsets(range(length)):
            chance = t ** len(z) * (1 - t) ** (length - len(z))
            cases.append((w * chance, u, noise(z, length)))
    return cases


def _nodes() -> tuple[list[float], list[float]]:
    """Roots of the Legendre polynomial of degree 20, by Newton's method, moved to (0, 1)."""
    nodes: list[float] = []
    weights: list[float] = []
    for i in range(20):
        x = math.cos(math.pi * (i + 0.75) / 20.5)
        for _ in range(100):
            value, slope = _legendre(20, x)
            x -= value / slope
        nodes.append((x + 1) / 2)
        weights.append(1 / ((1 - x * x) * _legendre(20, x)[1] ** 2))
    return nodes, weights


def _legendre(degree: int, x: float) -> tuple[float, float]:
    """The polynomial and its derivative."""
    before, value = 1.0, x
    for k in range(2, degree + 1):
        before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
    return value, degree * (x * value - before) / (x * x - 1)


def masked_sum(model: TinyDenoiser, seqs: Sequences, z: Sequence[int], hidden: Sequence[int] = ()):
    """sum over z of log p(o_l | the tokens outside of z and hidden)."""
    L = seqs.completion_ids.shape[1]
    mask = torch.tensor([[i in z or i in hidden for i in range(L)]])
    return token_logps(model, seqs, mask)[0, list(z)].sum()


def elbo(model: TinyDenoiser, seqs: Sequences) -> Tensor:
    """Mean over all orders of the chain rule."""
    return order_logps(model, seqs).mean()


def weighted_sets(model: TinyDenoiser, seqs: Sequences, weight: Sequence[float]) -> Tensor:
    """sum_k weight[k] x the mean of `masked_sum` over the sets of k tokens."""
    L = seqs.completion_ids.shape[1]
    total = torch.zeros((), dtype=torch.float64)
    for z in subsets(range(L)):
        if z and weight[len(z)]:
            total = total + weight[len(z)] / math.comb(L, len(z)) * masked_sum(model, seqs, z)
    return total
