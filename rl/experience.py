"""One rollout and all that is known about it, row by row."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from estimators import Estimate, MaskPlan, Sequences
from rl.objectives import Totals


@dataclass(frozen=True, kw_only=True)
class Experience:
    """Completions with everything the updates need. Every tensor has one row per completion.

    plans, old, ref: one entry per pass over the rollout (a single one if masks are not fresh).
    old is empty when every update is on-policy, ref when there is no KL term.
    """

    sequences: Sequences
    plans: tuple[MaskPlan, ...]
    old: tuple[Estimate, ...]
    ref: tuple[Estimate, ...]
    scored: Bool[Tensor, "B L"]
    advantages: Float[Tensor, " B"]

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
        )

    def split(self, parts: int) -> list["Experience"]:
        """Equal consecutive pieces, in order."""
        assert len(self) % parts == 0, f"{len(self)} rows in {parts} parts"
        size = len(self) // parts
        return [self.rows(slice(i * size, (i + 1) * size)) for i in range(parts)]

    def contributing(self) -> "Experience":
        """The rows with an advantage; one row at least, so that every rank runs a backward pass."""
        keep = self.advantages.ne(0).nonzero()[:, 0]
        return self.rows(keep if len(keep) else keep.new_zeros(1))


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """What one call of `compute_loss` gets."""

    experience: Experience
    iteration: int  # pass over the rollout, 0 .. num_iterations - 1
    totals: Totals  # of the whole optimizer step, over all ranks
