"""What a rule chooses from: the model's proposals for the tokens that may be committed now.

Shapes: R rows still being written, L completion tokens.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What a rule may look at."""

    logp: Float[Tensor, "R L"]  # T = 1 log-prob of the proposed token
    peak: Float[Tensor, "R L"]  # T = 1 log-prob of the most likely token
    noise: Float[Tensor, "R L"]  # U[0, 1), the row's own
    eligible: Bool[Tensor, "R L"]  # masked, in the current block
    due: Int[Tensor, " R"]  # tokens that the schedule asks for now

    def first(
        self, rank: Float[Tensor, "R L"], count: Int[Tensor, " R"] | None = None
    ) -> Int[Tensor, "R L"]:
        """0, 1, ... at the `count` (or due) positions of highest rank, leftmost first; else -1."""
        count = self.due if count is None else count
        falling = rank.masked_fill(~self.eligible, -torch.inf)
        place = falling.argsort(dim=-1, descending=True, stable=True).argsort(-1)
        return torch.where(self.eligible & (place < count[:, None]), place, -1)
