"""Rows for one or several forward passes, and where in them the answers are read.

Shapes: R rows, W tokens each, K requested positions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """
    attention: some of the rows -> keyword arguments of the native model, a mask above all.
    index: flat positions r * W + w of the hidden states that answer the requests.
    """

    ids: Int[Tensor, "R W"]
    positions: Int[Tensor, "R W"]
    attention: Callable[[slice], dict[str, Any]]
    index: Int[Tensor, " K"]

    def part(self, rows: slice) -> "Inputs":
        """Some of the rows, with nothing asked of them."""
        return Inputs(
            ids=self.ids[rows],
            positions=self.positions[rows],
            attention=lambda _: self.attention(rows),
            index=self.index[:0],
        )
