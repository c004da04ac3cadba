"""Random numbers that belong to rows.

Each row owns a generator, seeded from what the row *is* (run seed, sample, step, generation
index), never from where it stands. What a row draws therefore does not depend on batch size,
row order, padding, rank or world size.
"""

import hashlib
from collections.abc import Hashable, Sequence

import torch
from jaxtyping import Float
from torch import Generator, Tensor


def stable_seed(*parts: Hashable) -> int:
    """A seed in [0, 2**56) that is the same in every process and Python version."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=7).digest()
    return int.from_bytes(digest, "little")


class RowRandom:
    """Uniform numbers per row, or shared by the rows of a group.

    rows:   one seed per row.
    groups: one seed per row, equal for the rows of a group (completions of one prompt).
    """

    def __init__(self, rows: Sequence[int], groups: Sequence[int] | None = None) -> None:
        self._rows = [Generator().manual_seed(seed) for seed in rows]
        groups = rows if groups is None else groups
        if len(groups) != len(self._rows):
            raise ValueError(f"{len(self._rows)} row seeds but {len(groups)} group seeds")
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


def _draw(generators: list[Generator], shape: tuple[int, ...]) -> Tensor:
    return torch.stack([torch.rand(shape, generator=g, dtype=torch.float64) for g in generators])
