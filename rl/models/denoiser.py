"""A masked diffusion model behind one calling convention.

Takes ids, a padding mask and the positions to predict. Attention, position ids, the shift of the
predictions, forbidden ids and the output head live behind it. Equal rows are run once and equal
positions meet the head once; results are gathered back, and gradients add up as if each had been
run.

    shift 0    token p is predicted by the hidden state at p
    shift 1    by the one at p - 1; the first real token has none before it and is predicted by its
               own, as the hub's code does by repeating the first row of logits (Dream)

Shapes: N rows, S tokens, K requested positions, P distinct ones, V vocabulary.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Int
from peft import PeftModel
from torch import Tensor, nn

from estimators import Denoiser, Reduce

from .attention import AttentionMasks, token_positions
from .block_layout import BlockLayout, has_predecessor
from .head import HeadRequest
from .in_blocks import InBlocks, nothing
from .inputs import Inputs

if TYPE_CHECKING:
    from .loading import LoadedModel

LOGITS_PER_CHUNK = 2**25  # 128 MB of fp32 logits at a time


def _as_is(count: int) -> int:
    return count


@dataclass
class ModelDenoiser:
    """Callable as `estimators.Denoiser`.

    model: anything that accepts `request=` (see head.py), bare or wrapped by DDP/DeepSpeed/PEFT.
    forbidden: ids that may never be written: mask, padding, rows beyond the tokenizer.
    causal_class, attn_implementation: see attention.py.
    layout: of a model that writes in blocks.
    shift: see above.
    rows_per_forward: split larger calls; bounds activation memory.
    equalize: maps a local number of forwards to the number all ranks must run. Strategies that
        gather parameters inside the forward (ZeRO-3, FSDP) hang if ranks disagree.
    """

    model: nn.Module
    mask_id: int
    forbidden: tuple[int, ...]
    vocab_size: int
    causal_class: bool = False
    attn_implementation: str = "sdpa"
    layout: BlockLayout | None = None
    shift: int = 0
    rows_per_forward: int | None = None
    equalize: Callable[[int], int] = _as_is
    forwards: int = field(default=0, init=False)  # rows run so far, after removing duplicates
    masks: AttentionMasks = field(init=False)

    def __post_init__(self) -> None:
        size = self.layout.size if self.layout else None
        self.masks = AttentionMasks(self.causal_class, self.attn_implementation, size)

    def __call__(
        self,
        ids: Int[Tensor, "N S"],
        attention: Bool[Tensor, "N S"],
        index: Int[Tensor, " K"],
        reduce: Reduce,
    ) -> tuple[Tensor, ...]:
        S = ids.shape[1]
        if self.shift:
            index = index - has_predecessor(attention).flatten()[index].long()
        distinct_US, member_N = torch.unique(
            ids.masked_fill(~attention, -1), dim=0, return_inverse=True
        )
        real_US = distinct_US >= 0
        inputs = Inputs(
            ids=distinct_US.clamp(min=0),
            positions=token_positions(real_US),
            attention=lambda rows: self.masks(real_US[rows], self.dtype),
            index=member_N[index // S] * S + index % S,
        )
        return self.run(inputs, reduce)

    def run(self, inputs: Inputs, reduce: Reduce) -> tuple[Tensor, ...]:
        """What `reduce` keeps at the positions `inputs.index`, in their order."""
        R, W = inputs.ids.shape
        limit = self.rows_per_forward or max(1, R)
        parts: list[tuple[Tensor, ...]] = []
        order: list[Tensor] = []
        for lo in range(0, self.equalize(-(-R // limit)) * limit, limit):
            index = inputs.index
            entries = ((index >= lo * W) & (index < (lo + limit) * W)).nonzero()[:, 0]
            part = inputs.part(slice(lo, lo + limit)) if lo < R else self._idle(W, index.device)
            parts.append(self._forward(part, index[entries] - lo * W, entries, reduce))
            order.append(entries)
        back = torch.cat(order).argsort()
        return tuple(torch.cat(kept)[back] for kept in zip(*parts, strict=True))

    @property
    def block_size(self) -> int | None:
        return None if self.layout is None else self.layout.size

    def blocks(
        self, prompt_mask: Bool[Tensor, "B Q"], length: int
    ) -> tuple[Int[Tensor, " B"], Bool[Tensor, "B {length}"]]:
        """See `estimators.BlockwiseDenoiser`."""
        assert self.layout is not None
        return self.layout.of_completions(prompt_mask, length)

    def in_context(self, start: int, text: Int[Tensor, "N S"] | None = None) -> Denoiser:
        """See `estimators.BlockwiseDenoiser`."""
        if self.layout is None:
            return self
        return InBlocks(self, replace(self.layout, start=start), text)

    @property
    def dtype(self) -> torch.dtype:
        """Of the activations; weights of 4 bits are kept as integers."""
        return next(p.dtype for p in self.model.parameters() if p.is_floating_point())

    @classmethod
    def of(
        cls,
        loaded: "LoadedModel",
        model: nn.Module | None = None,
        *,
        rows_per_forward: int | None = None,
        equalize: Callable[[int], int] | None = None,
    ) -> "ModelDenoiser":
        """The denoiser of a loaded model; `model` is the same model as the trainer wrapped it."""
        return cls(
            model=loaded.model if model is None else model,
            mask_id=loaded.mask_id,
            forbidden=loaded.forbidden_ids,
            vocab_size=loaded.vocab_size,
            causal_class=loaded.spec.causal,
            attn_implementation=loaded.attn_implementation,
            layout=loaded.layout,
            shift=loaded.spec.shift,
            rows_per_forward=rows_per_forward,
            equalize=equalize or _as_is,
        )

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """No gradients, evaluation mode, dropout off; restores the mode afterwards."""
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.model.train(was_training)

    @property
    def cache_argument(self) -> str:
        """What the native model calls the keys and values that it continues."""
        native: Any = self.model
        while hasattr(native, "module"):
            native = native.module
        native = native.get_base_model() if isinstance(native, PeftModel) else native
        names = inspect.signature(native.base_model.forward).parameters
        return "cache" if "cache" in names else "past_key_values"

    def idle(self) -> None:
        """Other ranks have something to run: take part in it."""
        self.run(self._idle(1, next(self.model.parameters()).device), nothing)

    def _idle(self, width: int, device: torch.device) -> Inputs:
        """Other ranks still have rows: one to run and ask for nothing."""
        ids = torch.full((1, width), self.mask_id, device=device)
        real = torch.ones_like(ids, dtype=torch.bool)
        return Inputs(
            ids=ids,
            positions=token_positions(real),
            attention=lambda _: self.masks(real, self.dtype),
            index=ids.new_zeros(0),
        )

    def _forward(
        self, inputs: Inputs, index: Tensor, names: Tensor, reduce: Reduce
    ) -> tuple[Tensor, ...]:
        """Run all rows of `inputs`. `names` are the caller's entry numbers."""
        self.forwards += len(inputs.ids)
        whole = inputs.ids.shape[1] if getattr(reduce, "whole_views", False) else None
        positions, chunks, order = self._chunks(index, names, whole)
        forbidden = torch.tensor(self.forbidden, dtype=torch.long, device=index.device)
        kept = self.model(
            input_ids=inputs.ids,
            position_ids=inputs.positions,
            request=HeadRequest(
                positions=positions, chunks=chunks, forbidden=forbidden, reduce=reduce
            ),
            **inputs.attention(slice(None)),
        )
        back = order.argsort()
        return tuple(x[back] for x in kept)

    def _chunks(
        self, index: Tensor, names: Tensor, whole: int | None
    ) -> tuple[Tensor, list[tuple[slice, Tensor, Tensor]], Tensor]:
        """Distinct positions, the chunks that cover them, and the entries in chunk order.

        whole: length of a row of ids whose positions may not be parted; None: all may be.
        """
        positions, place_K = torch.unique(index, return_inverse=True)
        if len(positions) == 0:
            positions = index.new_zeros(1)
        size = max(1, LOGITS_PER_CHUNK // self.vocab_size)
        if whole is None:
            ends = [*range(size, len(positions), size), len(positions)]
        else:
            ends = _whole_ends(positions // whole, size)
        chunks: list[tuple[slice, Tensor, Tensor]] = []
        order: list[Tensor] = []
        lo = 0
        for hi in ends + ends[-1:] * (self.equalize(len(ends)) - len(ends)):
            where = slice(lo, hi) if lo < hi else slice(0, 1)
            inside = ((place_K >= lo) & (place_K < hi)).nonzero()[:, 0]
            chunks.append((where, names[inside], place_K[inside] - lo))
            order.append(inside)
            lo = hi
        return positions, chunks, torch.cat(order)


def _whole_ends(row: Int[Tensor, " P"], size: int) -> list[int]:
    """Ends of chunks of at most `size` positions, or of one row where a row has more."""
    counts: list[int] = torch.unique_consecutive(row, return_counts=True)[1].tolist()
    ends = [0]
    start = 0
    for count in counts:
        if ends[-1] > start and ends[-1] + count - start > size:
            start = ends[-1]
            ends.append(start)
        ends[-1] += count
    return ends


def switch_off_dropout(model: nn.Module) -> None:
    """For good: with dropout, two scores of the same weights differ."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0  # pyright: ignore[reportArgumentType]
        if hasattr(module, "attention_dropout"):  # a number of its own in Llama and its kin
            module.attention_dropout = 0.0  # pyright: ignore[reportArgumentType]
