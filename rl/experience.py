"""One rollout and all that is known about it, row by row.

Shapes: B rows (completions of this rank), L completion tokens.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from estimators import Estimate, MaskPlan, Sequences
from rl.objectives import Totals


@dataclass(frozen=True, kw_only=True)
class Experience:
    """Completions with everything the updates need. Every tensor has one row per completion.

    plans, old, ref: one entry per pass over the rollout (a single one if masks are not fresh).
        old and ref are empty where the objective has no use for them.
    advantages: one per completion, or one per token.
    groups: rows with the same number are compared with each other.
    """

    sequences: Sequences
    plans: tuple[MaskPlan, ...]
    old: tuple[Estimate, ...]
    ref: tuple[Estimate, ...]
    scored: Bool[Tensor, "B L"]
    advantages: Float[Tensor, "B *A"]
    groups: Int[Tensor, " B"]

    def __len__(self) -> int:
        return len(self.advantages)

    def rows(self, index: Tensor | slice) -> "Experience":
        return Experience(
            sequences=self.sequences.rows(index),
            plans=tuple(x.rows(index) for x in self.plans),
            old=tuple(x.rows(index) for x in self.old),
            ref=tuple(x.rows(index) for x in self.ref),
            scored=self.scored[index],
            advantages=self.advantages[index],
            groups=self.groups[index],
        )

    def split(self, parts: int) -> list["Experience"]:
        """Equal consecutive pieces, in order."""
        assert len(self) % parts == 0, f"{len(self)} rows in {parts} parts"
        size = len(self) // parts
        return [self.rows(slice(i * size, (i + 1) * size)) for i in range(parts)]

    def contributing(self, *, whole_groups: bool = False) -> "Experience":
        """The rows with an advantage; one row at least, so that every rank runs a backward pass.

        whole_groups: all rows of the groups in which any row has an advantage.
        """
        keep_B = self.advantages.view(len(self), -1).ne(0).any(-1)
        if whole_groups:
            keep_B = torch.isin(self.groups, self.groups[keep_B])
        keep = keep_B.nonzero()[:, 0]
        return self.rows(keep if len(keep) else keep.new_zeros(1))


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """What one call of `compute_loss` gets.

    on_policy: no update was made since the rollout.
    """

    experience: Experience
    iteration: int  # pass over the rollout, 0 .. num_iterations - 1
    on_policy: bool
    totals: Totals  # of the whole optimizer step, over all ranks
