"""A block model while it writes (over its own cache) and while its text is scored (beside itself).

    writing    finished blocks are cached; a step runs the block that is being written
    scoring    noisy blocks run beside the finished text (packed.py), with gradients

Both give the logits of a block that is run after the finished blocks before it.

Shapes: N rows shown, S tokens, K requested positions.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from transformers import DynamicCache

from estimators import Reduce

from .attention import token_positions
from .block_layout import BlockLayout
from .inputs import Inputs
from .packed import pack, visible
from .prefix_cache import PrefixCache
from .written import Written, cut

if TYPE_CHECKING:
    from .denoiser import ModelDenoiser


@dataclass
class InBlocks:
    """Callable as `estimators.Denoiser`; all calls show rows of the same columns.

    text: the finished rows; None while they are being written.
    """

    denoiser: "ModelDenoiser"
    layout: BlockLayout
    text: Int[Tensor, "N S"] | None = None
    mask_id: int = field(init=False)
    cache: PrefixCache = field(init=False)

    def __post_init__(self) -> None:
        self.mask_id = self.denoiser.mask_id
        self.cache = PrefixCache(self.layout.finished)

    def __call__(
        self,
        ids: Int[Tensor, "N S"],
        attention: Bool[Tensor, "N S"],
        index: Int[Tensor, " K"],
        reduce: Reduce,
    ) -> tuple[Tensor, ...]:
        if self.text is not None:
            return self._beside(self.text, ids, attention, index, reduce)
        written = self._cut(ids, attention, index)
        self._fill(written)
        if written is None:  # what is shown is all the text there is
            return self._beside(ids, ids, attention, index, reduce)
        cache = self.cache.take()
        inputs = self._cached(written.ids, written.positions, written.seen(), cache, written.index)
        kept = self.denoiser.run(inputs, reduce)
        cache.crop(-written.ids.shape[1])
        return kept

    def _beside(
        self, text: Tensor, ids: Tensor, attention: Tensor, index: Tensor, reduce: Reduce
    ) -> tuple[Tensor, ...]:
        rows = pack(self.layout, ids, text, attention, index)
        positions_RS = token_positions(rows.text >= 0)
        inputs = Inputs(
            ids=torch.cat([rows.text, rows.noisy], dim=1).clamp(min=0),
            positions=torch.cat([positions_RS, positions_RS], dim=1),
            attention=lambda part: self._seen(visible(self.layout, rows.part(part))),
            index=rows.index,
        )
        return self.denoiser.run(inputs, reduce)

    def _cut(self, ids: Tensor, attention: Tensor, index: Tensor) -> Written | None:
        """None if the cache is of no use."""
        limit = self.denoiser.rows_per_forward
        if torch.is_grad_enabled() or (limit is not None and len(ids) > limit):
            return None
        return cut(self.layout, ids, attention, index, self.mask_id)

    def _fill(self, written: Written | None) -> None:
        """Keys and values of what is finished; ranks that must run equally often all do."""
        missing = None
        if written is not None:
            missing = self.cache.missing(written.prefix, written.prefix_block)
        runs = missing is not None and bool(missing.tokens.any())
        if self.denoiser.equalize(int(runs)) and not runs:
            self.denoiser.idle()
        if missing is not None:
            self.cache.fill(missing, self._run_finished)

    def _run_finished(
        self, ids: Tensor, positions: Tensor, seen: Tensor, cache: DynamicCache
    ) -> None:
        inputs = self._cached(ids, positions, seen, cache, positions.new_zeros(0))
        self.denoiser.run(inputs, nothing)

    def _cached(
        self, ids: Tensor, positions: Tensor, seen: Tensor, cache: DynamicCache, index: Tensor
    ) -> Inputs:
        """All rows at once: the cache has as many."""
        extra = {self.denoiser.cache_argument: cache, "use_cache": True}
        return Inputs(
            ids=ids.clamp(min=0),
            positions=positions,
            attention=lambda _: self._seen(seen) | extra,
            index=index,
        )

    def _seen(self, seen: Bool[Tensor, "R W C"]) -> dict[str, Any]:
        return self.denoiser.masks.of_pairs(seen, self.denoiser.dtype)


def nothing(logits: Tensor, entries: Tensor, row: Tensor) -> tuple[Tensor, ...]:
    """A `Reduce` that keeps nothing."""
    return ()
