"""Who may attend to whom, in the form that the attention implementation takes.

    full     a token sees every real token
    block    token p sees real token k if  p // block_size >= k // block_size,  both counted from
             the row's first real token (the prompt is tiled too)

Padding is never seen. A padding query sees what the first token sees: no row of the attention
matrix is empty, so no NaN can arise.

A native class that is causal gets a mask of every pair. SDPA takes it as booleans; eager attention
would *add* booleans to its scores, so it gets 0 and the lowest number. FlashAttention-2 ignores
such a mask; it gets the padding only, and the word that nothing is causal. A native encoder also
gets the padding only: its layers may differ in what they see (ModernBERT's local ones).

Shapes: N rows, S tokens.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

IMPLEMENTATIONS = ("sdpa", "eager", "flash_attention_2")
LAYOUTS_KEPT = 4  # masks of blocks; a rollout has the same paddings at every step


@dataclass
class AttentionMasks:
    """Callable: which tokens are real -> keyword arguments of the native model.

    causal_class: the native class is causal unless told otherwise.
    """

    causal_class: bool
    implementation: str
    block_size: int | None = None
    built: int = field(default=0, init=False)  # masks of blocks made so far
    _kept: dict[tuple[Any, ...], Tensor] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        assert self.implementation in IMPLEMENTATIONS
        if self.block_size is not None and self.implementation == "flash_attention_2":
            raise ValueError(
                "model.attn_implementation: flash_attention_2 ignores the mask of blocks of "
                f"{self.block_size} tokens that this model needs; use sdpa."
            )
        assert self.block_size is None or self.causal_class

    def __call__(self, real: Bool[Tensor, "N S"], dtype: torch.dtype) -> dict[str, Any]:
        """dtype: of the attention scores."""
        padding = None if bool(real.all()) else real
        if not self.causal_class:
            return {"attention_mask": padding}
        if self.implementation == "flash_attention_2":
            return {"attention_mask": padding, "is_causal": False}
        if self.block_size is None:
            return {"attention_mask": self._everyone(real, dtype)}
        return {"attention_mask": self._blocks(real, dtype)}

    def of_pairs(self, seen: Bool[Tensor, "N Q S"], dtype: torch.dtype) -> dict[str, Any]:
        """For a causal class: query q sees key s where `seen` says so; no query may see nothing."""
        mask = self._added(seen, dtype) if self.implementation == "eager" else seen
        return {"attention_mask": mask[:, None]}

    def _everyone(self, real_NS: Tensor, dtype: torch.dtype) -> Tensor:
        """[N, 1, S, S], query, then key: a view of one row of numbers, so nothing to keep."""
        N, S = real_NS.shape
        row_NS = real_NS
        if self.implementation == "eager":
            row_NS = self._added(real_NS, dtype)
        return row_NS[:, None, None, :].expand(N, 1, S, S)

    def _blocks(self, real_NS: Tensor, dtype: torch.dtype) -> Tensor:
        assert self.block_size is not None
        key = (real_NS.device, dtype, real_NS.shape, real_NS.cpu().numpy().tobytes())
        if key not in self._kept:
            self.built += 1
            if len(self._kept) == LAYOUTS_KEPT:
                del self._kept[next(iter(self._kept))]
            block_NS = token_positions(real_NS) // self.block_size
            seen = block_NS[:, None, :, None] >= block_NS[:, None, None, :]
            seen &= real_NS[:, None, None, :]
            self._kept[key] = self._added(seen, dtype) if self.implementation == "eager" else seen
        return self._kept[key]

    def _added(self, seen: Tensor, dtype: torch.dtype) -> Tensor:
        return torch.zeros_like(seen, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)


def token_positions(real: Bool[Tensor, "N S"]) -> Tensor:
    """Number of a token in its row, from the first real one; 0 for the padding before it."""
    return (real.long().cumsum(-1) - 1).clamp(min=0)
