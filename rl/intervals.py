"""Accuracy with Wilson's 95 % interval.

    centre = (k + z^2/2) / (n + z^2)
    half   = z sqrt(k (n - k) / n + z^2/4) / (n + z^2)         z = 1.96 (the 97.5 % normal quantile)

for k correct answers out of n. Unlike p +- 1.96 s.e. it stays inside [0, 1] and does not shrink
to nothing at k = 0 or k = n.

Source    Wilson, J. Am. Stat. Assoc. 22 (1927); Brown, Cai and DasGupta, Statist. Sci. 16 (2001)
Note      n counts prompts, each answered once: several answers to one prompt are not independent
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

Z95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """`correct` out of `total`; value, low and high are fractions in [0, 1]."""

    correct: int
    total: int

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.total or self.total == 0:
            raise ValueError(
                f"an accuracy of {self.correct} correct out of {self.total} is not one: needed "
                "are 0 <= correct <= total and at least one graded answer"
            )

    @property
    def value(self) -> float:
        return self.correct / self.total

    @property
    def low(self) -> float:
        return max(0.0, self._centre - self._half)

    @property
    def high(self) -> float:
        return min(1.0, self._centre + self._half)

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"

    def as_dict(self) -> dict[str, int | float]:
        return {
            "correct": self.correct,
            "total": self.total,
            "value": self.value,
            "low": self.low,
            "high": self.high,
        }

    @property
    def _centre(self) -> float:
        return (self.correct + Z95**2 / 2) / (self.total + Z95**2)

    @property
    def _half(self) -> float:
        k, n = self.correct, self.total
        return Z95 * math.sqrt(k * (n - k) / n + Z95**2 / 4) / (n + Z95**2)
