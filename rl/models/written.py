"""Rows cut in three: what is finished before the block that is being written, the block, the rest.

Shapes: U distinct rows of S tokens, P tokens before the block, W tokens to run (the last one before
the block if it predicts the first of the block, then the block), C = P + W, K requested positions.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from .block_layout import BlockLayout


@dataclass(frozen=True, kw_only=True)
class Written:
    """Ids of -1 are nothing. A prefix is padded on the left, a block on the right."""

    prefix: Int[Tensor, "U P"]
    prefix_block: Int[Tensor, "U P"]
    ids: Int[Tensor, "U W"]
    positions: Int[Tensor, "U W"]
    ahead: int  # 1 if the first column is the last token before the block
    index: Int[Tensor, " K"]  # flat positions u * W + w of the hidden states that answer

    def seen(self) -> Bool[Tensor, "U W C"]:
        """All sees the prefix, and the block itself. What is nothing sees itself."""
        real_UP, real_UW = self.prefix >= 0, self.ids >= 0
        in_block_UW = real_UW.clone()
        in_block_UW[:, : self.ahead] = False  # it is in the prefix too, and that copy is seen
        before = real_UW[:, :, None] & real_UP[:, None, :]
        own = in_block_UW[:, :, None] & in_block_UW[:, None, :]
        own = own | torch.eye(own.shape[1], dtype=torch.bool, device=own.device)
        if self.ahead:  # its own copy in the prefix is the one that it sees
            own[:, 0, 0] = ~real_UW[:, 0]
        return torch.cat([before, own], dim=2)


def cut(
    layout: BlockLayout,
    ids: Int[Tensor, "N S"],
    attention: Bool[Tensor, "N S"],
    index: Int[Tensor, " K"],
    mask_id: int,
) -> Written | None:
    """None if a row is asked for tokens of several blocks, or one before them is not finished."""
    if len(index) == 0:
        return None
    S = ids.shape[1]
    shown_US, row_N = ids.masked_fill(~attention, -1).unique(dim=0, return_inverse=True)
    row_K = row_N[index // S]
    index = row_K * S + index % S
    block_US = layout.blocks(shown_US >= 0)
    asked_K = block_US.flatten()[index]
    none_U = asked_K.new_full((len(shown_US),), -1)
    last_U = none_U.scatter_reduce(0, row_K, asked_K, "amax")
    first_U = last_U.scatter_reduce(0, row_K, asked_K, "amin")
    unfinished_US = (shown_US == mask_id) & (block_US < last_U[:, None])
    if bool(last_U.ne(first_U).any() | last_U.lt(0).any() | unfinished_US.any()):
        return None
    inside_US = block_US == last_U[:, None]
    start_U1 = inside_US.int().argmax(1, keepdim=True)  # column of the block's first token
    pad_U1 = (shown_US < 0).int().argmin(1, keepdim=True)
    ahead = int(layout.shift == 1 or layout.seed_first)
    P, size = int((start_U1 - pad_U1).max()), int(inside_US.sum(1).max())

    columns_UP = start_U1 - P + torch.arange(P, device=ids.device)
    columns_UW = start_U1 - ahead + torch.arange(ahead + size, device=ids.device)
    before_UP = columns_UP >= pad_U1
    there_UW = (columns_UW >= pad_U1) & (columns_UW < start_U1 + inside_US.sum(1, keepdim=True))
    at_UP, at_UW = columns_UP.clamp(min=0), columns_UW.clamp(0, S - 1)
    source_K, early_K = layout.sources(shown_US >= 0, block_US, index)
    column_K = torch.where(early_K, 0, source_K % S - start_U1[row_K, 0] + ahead)
    return Written(
        prefix=torch.where(before_UP, shown_US.gather(1, at_UP), -1),
        prefix_block=torch.where(before_UP, block_US.gather(1, at_UP), -1),
        ids=torch.where(there_UW, shown_US.gather(1, at_UW), -1),
        positions=(columns_UW - pad_U1).clamp(min=0),
        ahead=ahead,
        index=row_K * (ahead + size) + column_K,
    )
