"""Sums over the micro-batches and ranks since the last log, and the numbers made of them.

A metric is kept as a few sums, which add up over micro-batches and ranks; its formula is applied
when it is logged. A mean of means would depend on how a step was cut up.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

ROUNDING = 1e-12  # of a variance made of sums in double precision, as a share of the mean square

Formula = Callable[..., float | None]  # of the sums; None if there is nothing to tell


def mean(total: float, count: float) -> float | None:
    return total / count if count else None


def std(count: float, x: float, xx: float) -> float | None:
    """Of x, from its first two moments."""
    return math.sqrt(max(xx / count - (x / count) ** 2, 0.0)) if count else None


def correlation(count: float, x: float, y: float, xx: float, yy: float, xy: float) -> float | None:
    """Pearson's, of x and y; None if one of them does not vary."""
    if not count:
        return None
    spread_x, spread_y = xx - x * x / count, yy - y * y / count
    if spread_x <= ROUNDING * xx or spread_y <= ROUNDING * yy:
        return None
    return (xy - x * y / count) / math.sqrt(spread_x * spread_y)


def effective_share(count: float, w: float, ww: float) -> float | None:
    """Effective sample size of the weights w, (sum w)^2 / sum w^2, divided by their number."""
    return w * w / (ww * count) if ww else None


@dataclass(frozen=True)
class Sums:
    """What a metric is made of: `values` holds the arguments of `formula`, in order."""

    values: Tensor
    formula: Formula = mean


def quotient(total: Tensor, count: Tensor) -> Sums:
    return Sums(torch.stack([total.detach().double(), count.detach().double()]))


class Metrics:
    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._formulas: dict[str, Formula] = {}

    def add_sums(self, name: str, sums: Sums) -> None:
        values = sums.values.detach().double().cpu()
        self._sums[name] = self._sums[name] + values if name in self._sums else values
        self._formulas[name] = sums.formula

    def add(self, name: str, value: float) -> None:
        self.add_sums(name, Sums(torch.tensor([value, 1.0], dtype=torch.float64)))

    def add_sum(self, name: str, total: Tensor, count: Tensor) -> None:
        self.add_sums(name, quotient(total, count))

    def add_all(self, name: str, values: Tensor) -> None:
        count = torch.tensor(values.numel(), device=values.device)
        self.add_sum(name, values.double().sum(), count)

    def total(self, *names: str) -> float:
        """Sum of these metrics on this rank since the last log."""
        found = [self._sums[name][0] for name in names if name in self._sums]
        return float(sum(found))

    def take(self, over_ranks: Callable[[Tensor], Tensor]) -> dict[str, float]:
        """All metrics, in alphabetical order, and start anew.

        over_ranks: the sum of a tensor over the ranks. Every rank must call this, having
            added to the same metrics.
        """
        names = sorted(self._sums)
        if not names:
            return {}
        sizes = [len(self._sums[name]) for name in names]
        sums = over_ranks(torch.cat([self._sums[name] for name in names])).split(sizes)
        self._sums.clear()
        values = {
            name: self._formulas[name](*each.tolist())
            for name, each in zip(names, sums, strict=True)
        }
        return {name: value for name, value in values.items() if value is not None}
