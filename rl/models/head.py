"""A forward pass that computes the output head only where a prediction is wanted.

    hidden [N, S, D] --positions-> [P, D] --head, in chunks-> logits [c, V] fp32 --reduce-> [K]

Logits exist for one chunk at a time, inside `reduce`; with gradients and more than one chunk they
are recomputed in the backward pass. A tensor of shape [N, S, V] is never built (LLaDA: 512 x
126464 x 4 bytes = 259 MB a row).

The head runs inside `forward`, so that DDP, DeepSpeed and PEFT wrappers see one ordinary module.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from estimators import Reduce

Head = Callable[[Any, Tensor], Tensor]  # (model, hidden [P, D]) -> logits [P, V]


@dataclass(frozen=True, kw_only=True)
class HeadRequest:
    """Which logits to compute, and what to keep of them.

    positions: distinct flat positions n * S + s.
    chunks: (slice of positions, entries, row): `entries` are the requests that the slice
        answers and `row` the slice's row for each of them.
    forbidden: ids whose logits become -inf.
    """

    positions: Int[Tensor, " P"]
    chunks: list[tuple[slice, Tensor, Tensor]]
    forbidden: Int[Tensor, " F"]
    reduce: Reduce


class PositionHead:
    """Mixin for a transformers model: with `request`, `forward` returns reduced logits."""

    position_head: Head
    base_model: nn.Module

    def forward(self, *args: Any, request: HeadRequest | None = None, **kwargs: Any) -> Any:
        if request is None:
            return super().forward(*args, **kwargs)  # pyright: ignore[reportAttributeAccessIssue]
        hidden_NSD = self.base_model(*args, **kwargs).last_hidden_state
        hidden_PD = hidden_NSD.flatten(0, 1)[request.positions]
        recompute = torch.is_grad_enabled() and len(request.chunks) > 1
        kept: list[tuple[Tensor, ...]] = []
        for where, entries, row in request.chunks:
            inputs = (hidden_PD[where], entries, row, request)
            if recompute:
                kept.append(checkpoint(self._reduced, *inputs, use_reentrant=False))  # pyright: ignore[reportArgumentType]
            else:
                kept.append(self._reduced(*inputs))
        return tuple(torch.cat(parts) for parts in zip(*kept, strict=True))

    def _reduced(
        self, hidden: Tensor, entries: Tensor, row: Tensor, request: HeadRequest
    ) -> tuple[Tensor, ...]:
        with torch.autocast(hidden.device.type, enabled=False):
            weight = self.get_output_embeddings().weight  # pyright: ignore[reportAttributeAccessIssue]
            logits = type(self).position_head(self, hidden.to(weight.dtype)).float()
        logits = logits.index_fill(-1, request.forbidden, -torch.inf)
        return request.reduce(logits, entries, row)


@cache
def denoising_class(native: type[nn.Module], head: Head) -> type[nn.Module]:
    """`native` with `PositionHead`'s forward, under the native name, which checkpoints record."""
    return type(
        native.__name__,
        (PositionHead, native),
        {"position_head": staticmethod(head), "__module__": native.__module__},
    )
