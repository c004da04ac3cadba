"""Denoisers whose every logit is a sum of entries of one table.

    logit[k, v] = sum_e table[entry[k, v, e]],      J = d table / d theta

The gradient of anything that an estimator returns is then a sparse sum of rows of J, which this
class collects: one backward pass through `combine` gives the gradient of every rollout at once.

A rollout's number stands in the first prompt token, which is padding (attention False): no
estimator looks at it, and the denoiser knows whose view it is shown.

Shapes: N views, S tokens, K requests, V symbols, E entries per logit, R entries in the table, P
parameters, B rollouts.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import embedding_bag

from estimators import Reduce, RowRandom


class BatchRandom(RowRandom):
    """Numbers for many rows from one generator, ten times faster than from one per row.

    Every row is a group and a rollout of its own. even: the numbers of neighbouring rows cover
    the unit cube evenly (a scrambled Sobol sequence): copies of a trajectory average out faster.
    """

    DIMENSIONS = 96  # numbers per row that are spread evenly; those after them are independent

    def __init__(self, rows: int, seed: int, *, even: bool = False) -> None:
        super().__init__([seed])
        self._count = rows
        self._even = torch.empty(rows, 0, dtype=torch.float64)
        if even:
            sobol = torch.quasirandom.SobolEngine(self.DIMENSIONS, scramble=True, seed=seed)
            self._even = sobol.draw(rows, dtype=torch.float64)

    def __len__(self) -> int:
        return self._count

    def per_row(self, *shape: int) -> Float[Tensor, "B *shape"]:
        size = math.prod(shape)
        if size > self._even.shape[1]:
            return super().per_row(self._count, *shape)[0]
        here, self._even = self._even.split([size, self._even.shape[1] - size], dim=1)
        return here.reshape(self._count, *shape)

    def per_group(self, *shape: int) -> Float[Tensor, "B *shape"]:
        return self.per_row(*shape)

    def per_rollout(self, *shape: int) -> Float[Tensor, "B *shape"]:
        return self.per_row(*shape)


@dataclass(frozen=True, kw_only=True)
class _Request:
    row: Int[Tensor, " K"]
    entry: Int[Tensor, "K V E"]
    logits: Float[Tensor, "K V"]  # a leaf


class TableDenoiser(ABC):
    """Callable as `estimators.Denoiser` and as `rl.samplers.RolloutDenoiser`."""

    mask_id: int
    table: Float[Tensor, " R"]
    jacobian: Float[Tensor, "R P"]

    def __init__(self) -> None:
        self._asked: list[_Request] = []
        self._shown: list[Int[Tensor, "N S"]] = []

    @abstractmethod
    def entries(
        self, ids: Int[Tensor, "N S"], attention: Bool[Tensor, "N S"], index: Int[Tensor, " K"]
    ) -> Int[Tensor, "K V E"]:
        """Which entries of the table add up to each requested logit."""

    def __call__(
        self,
        ids: Int[Tensor, "N S"],
        attention: Bool[Tensor, "N S"],
        index: Int[Tensor, " K"],
        reduce: Reduce,
    ) -> tuple[Tensor, ...]:
        entry = self.entries(ids, attention, index)
        logits = self.table[entry].sum(-1)
        self._shown.append(ids)
        if torch.is_grad_enabled():
            logits.requires_grad_()
            row = ids[:, 0][index // ids.shape[1]]
            self._asked.append(_Request(row=row, entry=entry, logits=logits))
        every = torch.arange(len(index))
        return reduce(logits, every, every)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        with torch.no_grad():
            yield

    def equalize(self, count: int) -> int:
        return count

    def forget(self) -> None:
        """Start a new measurement."""
        self._asked.clear()
        self._shown.clear()

    def forwards(self, owner: Int[Tensor, " B"]) -> Int[Tensor, " O"]:
        """Distinct inputs since `forget`, for every owner of rollouts (numbers from 0)."""
        ids = torch.cat(self._shown)
        owner_N = owner[ids[:, 0]]
        ids = torch.cat([owner_N[:, None], ids[:, 1:]], dim=1)
        distinct, number_N = _fingerprint(ids).unique(return_inverse=True)
        owner_U = torch.zeros_like(distinct).scatter(0, number_N, owner_N)
        return torch.bincount(owner_U, minlength=int(owner.max()) + 1)

    def gradients(self, rows: int) -> "Gradients":
        """d (what was back-propagated) / d table for each of the rollouts, after `backward`."""
        entries, weights, owners = [], [], []
        for asked in self._asked:
            if asked.logits.grad is None:
                continue
            shape = asked.entry.shape
            entries.append(asked.entry.flatten())
            weights.append(asked.logits.grad[..., None].expand(shape).flatten())
            owners.append(asked.row[:, None, None].expand(shape).flatten())
        entry, weight, row = torch.cat(entries), torch.cat(weights), torch.cat(owners)
        order = row.argsort(stable=True)
        order = order[weight[order].ne(0)]
        return Gradients(row=row[order], entry=entry[order], weight=weight[order], rows=rows)


def _fingerprint(ids: Int[Tensor, "N S"]) -> Int[Tensor, " N"]:
    """Different for different rows, but for a chance of about N^2 / 2^60."""
    random = torch.Generator().manual_seed(0)
    return (ids * torch.randint(2**60, (ids.shape[1],), generator=random)).sum(-1)


@dataclass(frozen=True, kw_only=True)
class Gradients:
    """Gradients of `rows` rollouts as sparse combinations of table entries, sorted by rollout."""

    row: Int[Tensor, " K"]
    entry: Int[Tensor, " K"]
    weight: Float[Tensor, " K"]
    rows: int

    def total(
        self, jacobian: Float[Tensor, "R P"], weight: Float[Tensor, " B"]
    ) -> Float[Tensor, " P"]:
        """The weighted sum of the rollouts' gradients."""
        table = jacobian.new_zeros(len(jacobian))
        return table.index_add(0, self.entry, self.weight * weight[self.row]) @ jacobian

    def each(self, jacobian: Float[Tensor, "R P"]) -> Float[Tensor, "B P"]:
        """The gradient of every rollout, in the precision of `jacobian`."""
        counts = torch.bincount(self.row, minlength=self.rows)
        return embedding_bag(
            self.entry,
            jacobian,
            counts.cumsum(0) - counts,
            mode="sum",
            per_sample_weights=self.weight.to(jacobian.dtype),
        )
