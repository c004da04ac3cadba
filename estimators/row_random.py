"""Random numbers that belong to rows.

Each row owns a generator, seeded from what the row *is* (run seed, sample, step, generation
index), never from where it stands. What a row draws therefore does not depend on batch size,
row order, padding, rank or world size.
"""

import hashlib
from collections.abc import Hashable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor


def stable_seed(*parts: Hashable) -> int:
    """A seed in [0, 2**56) that is the same in every process and Python version."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=7).digest()
    return int.from_bytes(digest, "little")


class RowRandom:
    """Uniform numbers per row, or shared by the rows of a group or by the passes over a rollout.

    rows:     one seed per row.
    groups:   one seed per row, equal for the rows of a group (completions of one prompt).
    rollouts: one seed per row, equal in every pass over the rollout.
    places:   which completion of its group each row is, from 0; size: completions of a group.
    pass_index, passes: which pass over the rollout this is for, of how many.
    """

    def __init__(
        self,
        rows: Sequence[int],
        groups: Sequence[int] | None = None,
        *,
        rollouts: Sequence[int] | None = None,
        places: Sequence[int] | None = None,
        size: int = 1,
        pass_index: int = 0,
        passes: int = 1,
    ) -> None:
        assert 0 <= pass_index < passes, f"pass {pass_index} of {passes}"
        self.pass_index, self.passes = pass_index, passes
        self.size = size
        self._places = torch.tensor([0] * len(rows) if places is None else list(places))
        self._rows = [Generator().manual_seed(seed) for seed in rows]
        groups = rows if groups is None else groups
        if len(groups) != len(self._rows):
            raise ValueError(f"{len(self._rows)} row seeds but {len(groups)} group seeds")
        rollouts = (
            [stable_seed("rollouts", seed) for seed in rows] if rollouts is None else rollouts
        )
        self._rollouts = [Generator().manual_seed(seed) for seed in rollouts]
        distinct = {seed: Generator().manual_seed(seed) for seed in groups}
        self._groups = list(distinct.values())
        place = {seed: i for i, seed in enumerate(distinct)}
        self._member = torch.tensor([place[seed] for seed in groups], dtype=torch.long)

    def __len__(self) -> int:
        return len(self._rows)

    def per_row(self, *shape: int) -> Float[Tensor, "B *shape"]:
        """U[0, 1) of the given shape for every row."""
        return _draw(self._rows, shape)

    def per_group(self, *shape: int) -> Float[Tensor, "B *shape"]:
        """U[0, 1) of the given shape for every row, equal inside a group."""
        return _draw(self._groups, shape)[self._member]

    def strata(self, samples: int) -> Int[Tensor, "B samples"]:
        """Which of `size * samples` equal parts each sample of a row falls in.

        All parts of a group are different, and each is as likely as any other.
        """
        order = self.per_group(self.size * samples).argsort(-1)
        mine = self._places[:, None] * samples + torch.arange(samples)
        return order.gather(1, mine)

    def per_rollout(self, *shape: int) -> Float[Tensor, "B *shape"]:
        """U[0, 1) of the given shape for every row, equal in every pass over the rollout."""
        return _draw(self._rollouts, shape)


def _draw(generators: list[Generator], shape: tuple[int, ...]) -> Tensor:
    return torch.stack([torch.rand(shape, generator=g, dtype=torch.float64) for g in generators])
