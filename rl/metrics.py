"""Means over the micro-batches and ranks since the last log."""

from collections import defaultdict
from collections.abc import Callable

import torch
from torch import Tensor


class Metrics:
    """Each metric is a (sum, count); its value is the quotient over all ranks."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros(2, dtype=torch.float64))

    def add(self, name: str, value: float) -> None:
        self._sums[name] += torch.tensor([value, 1.0], dtype=torch.float64)

    def add_sum(self, name: str, total: Tensor, count: Tensor) -> None:
        self._sums[name] += torch.stack([total.detach().double(), count.double()]).cpu()

    def add_all(self, name: str, values: Tensor) -> None:
        count = torch.tensor(values.numel(), device=values.device)
        self.add_sum(name, values.double().sum(), count)

    def total(self, *names: str) -> float:
        """Sum of these metrics on this rank since the last log."""
        return sum(float(self._sums[name][0]) for name in names)

    def take(self, over_ranks: Callable[[Tensor], Tensor]) -> dict[str, float]:
        """All means, in alphabetical order, and start anew.

        over_ranks: the sum of a tensor over the ranks. Every rank must call this, having
            added to the same metrics.
        """
        names = sorted(self._sums)
        if not names:
            return {}
        sums = over_ranks(torch.stack([self._sums[name] for name in names])).tolist()
        self._sums.clear()
        return {
            name: total / count for name, (total, count) in zip(names, sums, strict=True) if count
        }
