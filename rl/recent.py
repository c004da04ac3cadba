"""Sums over the last few steps, for what is looked at once in a while and logged nowhere."""

import math
from collections import deque

import torch
from torch import Tensor

STEPS = 8


class Recent:
    """Sums over the last steps: of weights, of values and of their squares."""

    def __init__(self) -> None:
        self._steps: deque[Tensor] = deque(maxlen=STEPS)

    def add(self, values: Tensor) -> None:
        x = values[~values.isnan()].double()
        self._steps.append(torch.stack([x.new_tensor(float(len(x))), x.sum(), x.square().sum()]))

    @property
    def steps(self) -> int:
        return len(self._steps)

    @property
    def count(self) -> float:
        return sum(float(step[0]) for step in self._steps)

    @property
    def mean(self) -> float:
        return sum(float(step[1]) for step in self._steps) / max(self.count, 1.0)

    @property
    def standard_error(self) -> float:
        n = max(self.count, 2.0)
        squares = sum(float(step[2]) for step in self._steps)
        return math.sqrt(max(squares / n - self.mean**2, 0.0) / (n - 1))
