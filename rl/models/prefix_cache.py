"""Keys and values of finished blocks, so that a step of a rollout runs its block alone.

In a block model finished blocks do not see what comes after them: their keys and values stay what
they are. Rows are known by their text, not by their place in the batch, so that a row that is done
may leave, and rows that begin alike share one pass over what they have in common.

    wanted    A B C D | E F G H      two rows, each with two finished blocks of four tokens
    kept      A B C D                 ... of which one was known: E F G H are run, seeing A B C D

Shapes: N rows, U distinct ones, P tokens of a prefix (left-padded), of which K at most are cached
and X at most are to be run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import DynamicCache

# run(ids [U X], positions [U X], seen [U X K + X], cache): adds X tokens to the K in `cache`
Run = Callable[[Tensor, Tensor, Tensor, DynamicCache], Any]
Finished = Callable[[Tensor], Tensor]  # block numbers [N S] -> who sees whom [N S S]


@dataclass(frozen=True, kw_only=True)
class Missing:
    """How to come from one set of prefixes to another."""

    wanted: Int[Tensor, "N P"]
    distinct: Int[Tensor, "U P"]
    block: Int[Tensor, "U P"]
    row: Int[Tensor, " N"]  # which distinct one each row is
    known: Int[Tensor, " U"]  # how many of its tokens are cached: whole blocks
    source: Int[Tensor, " U"]  # the row of the cache that holds them

    @property
    def tokens(self) -> Int[Tensor, " U"]:
        """Of each distinct row, to be run."""
        return (self.distinct >= 0).sum(1) - self.known


class PrefixCache:
    """The cache of the rows of the last call; ids of -1 are padding."""

    def __init__(self, finished: Finished) -> None:
        self.finished = finished
        self._ids: Tensor | None = None
        self._cache = DynamicCache()

    def missing(self, prefix: Int[Tensor, "N P"], block: Int[Tensor, "N P"]) -> Missing | None:
        """What to do for these rows, with the block number of each token; None: nothing."""
        if self._ids is not None and torch.equal(self._ids, prefix):
            return None
        if prefix.shape[1]:
            distinct_UP, row_N = prefix.unique(dim=0, return_inverse=True)
        else:  # nothing is finished yet
            distinct_UP, row_N = prefix[:1], prefix.new_zeros(len(prefix))
        at_N = torch.arange(len(row_N), device=row_N.device)
        some_U = at_N.new_zeros(len(distinct_UP)).scatter(0, row_N, at_N)
        known_U, source_U = self._known(distinct_UP, block[some_U])
        return Missing(
            wanted=prefix, distinct=distinct_UP, block=block[some_U], row=row_N, known=known_U,
            source=source_U,
        )  # fmt: skip

    def fill(self, missing: Missing, run: Run) -> None:
        """Make it the cache of the wanted rows; `run` is called once if any token is missing."""
        cache = self._extended(missing, run) if missing.wanted.shape[1] else DynamicCache()
        self._ids, self._cache = missing.wanted, _rows(cache, missing.row)

    def take(self) -> DynamicCache:
        """The keys and values; give them back as they were: `cache.crop(-tokens added)`."""
        return self._cache

    def _known(
        self, wanted: Int[Tensor, "U P"], block: Int[Tensor, "U P"]
    ) -> tuple[Int[Tensor, " U"], Int[Tensor, " U"]]:
        """(tokens of each row that are cached, whole blocks; the row of the cache they are in)."""
        known, place = [0] * len(wanted), [0] * len(wanted)
        stored: dict[tuple[int, ...], int] = {}
        if self._ids is not None:
            stored = {_real(ids): i for i, ids in enumerate(self._ids.tolist())}
        for u, (ids, numbers) in enumerate(zip(wanted.tolist(), block.tolist(), strict=True)):
            text, numbers = _real(ids), numbers[len(ids) - len(_real(ids)) :]
            ends = [i for i in range(1, len(text)) if numbers[i] != numbers[i - 1]]
            for end in (*reversed(ends), 0) if text not in stored else (len(text),):
                if text[:end] in stored and end:
                    known[u], place[u] = end, stored[text[:end]]
                    break
        return torch.tensor(known).to(wanted.device), torch.tensor(place).to(wanted.device)

    def _extended(self, missing: Missing, run: Run) -> DynamicCache:
        """The cache of the distinct rows: what is known of each, then the rest, which is run."""
        wanted_UP, known_U1, rest_U1 = (
            missing.distinct, missing.known[:, None], missing.tokens[:, None],
        )  # fmt: skip
        U, P = wanted_UP.shape
        K, X = int(known_U1.max()), int(rest_U1.max())
        pad_U1 = P - known_U1 - rest_U1
        device = wanted_UP.device
        cache = DynamicCache()
        if K:
            assert self._ids is not None
            last_K = torch.arange(self._ids.shape[1] - K, self._ids.shape[1], device=device)
            cache = _columns(_rows(self._cache, missing.source), last_K.expand(U, K))
        if X:
            some = (rest_U1[:, 0] > 0).nonzero()[:, 0]
            at_X = torch.arange(X, device=device)
            place_UX = (pad_U1 + known_U1 + at_X).clamp(max=P - 1)
            kept_UK = torch.arange(K, device=device) >= K - known_U1
            own_UXX = self.finished(missing.block.gather(1, place_UX))
            own_UXX = own_UXX & (at_X < rest_U1)[:, None, :]
            own_UXX = own_UXX | torch.eye(X, dtype=torch.bool, device=device)
            seen_UXC = torch.cat([kept_UK[:, None].expand(U, X, K), own_UXX], dim=2)
            ids_UX = wanted_UP.gather(1, place_UX).clamp(min=0)
            grown = _rows(cache, some)
            run(ids_UX[some], (place_UX - pad_U1)[some], seen_UXC[some], grown)
            cache = _with_rows(cache, grown, some, U)
        text_UP = (torch.arange(P, device=device) - pad_U1).clamp(min=0)
        # each row lies in the cache without a gap; its known part ends at column K
        return _columns(cache, (K - known_U1 + text_UP).clamp(max=K + X - 1))


def _real(ids: list[int]) -> tuple[int, ...]:
    return tuple(token for token in ids if token >= 0)


def _states(cache: DynamicCache) -> list[tuple[Tensor, Tensor]]:
    """Keys and values of each layer."""
    return [(layer.keys, layer.values) for layer in cache.layers]  # pyright: ignore[reportAttributeAccessIssue, reportReturnType]


def _rows(cache: DynamicCache, index: Int[Tensor, " N"]) -> DynamicCache:
    return DynamicCache([(keys[index], values[index]) for keys, values in _states(cache)])


def _with_rows(
    cache: DynamicCache, grown: DynamicCache, index: Int[Tensor, " M"], rows: int
) -> DynamicCache:
    """`cache` as wide as `grown`, whose rows it takes at `index`; zeros are new elsewhere."""

    def joined(old: Tensor | None, new: Tensor) -> Tensor:
        width = 0 if old is None else old.shape[2]
        added = new.new_zeros(rows, new.shape[1], new.shape[2] - width, new.shape[3])
        added = added.index_copy(0, index.to(new.device), new[:, :, width:])
        return added if old is None else torch.cat([old, added], dim=2)

    old = _states(cache) or [(None, None)] * len(grown.layers)
    return DynamicCache(
        [
            (joined(old_keys, keys), joined(old_values, values))
            for (old_keys, old_values), (keys, values) in zip(old, _states(grown), strict=True)
        ]
    )


def _columns(cache: DynamicCache, index: Int[Tensor, "N C"]) -> DynamicCache:
    """Some of the tokens of each row."""

    def chosen(states: Tensor) -> Tensor:
        at = index.to(states.device)[:, None, :, None]
        return states.gather(2, at.expand(-1, states.shape[1], -1, states.shape[3]))

    return DynamicCache([(chosen(keys), chosen(values)) for keys, values in _states(cache)])
