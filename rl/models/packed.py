"""Noisy blocks beside the finished text: one forward pass scores one noise level of every block.

    shown to the model      [ text | noisy ]        S tokens each, at the same positions
    a token of the text     sees the text's blocks up to its own
    a token of a noisy block    sees the finished blocks before it, and its own block

A block model writes a block given finished blocks before it, so that is how a masked copy of the
whole text must be scored (BD3-LM, Arriola et al., arXiv:2503.09573): run as it stands, its later
blocks would see masks in earlier ones, which no rollout ever had.
Each noisy block of a masked copy is scored on its own. Equal ones of a text are run once; those
that differ are spread over as few passes as there are versions of one block: all steps of a
recorded trajectory take as many passes as one block took steps.

Shapes: N masked copies, S tokens, K requested positions, T texts, W pairs of copy and block,
U distinct noisy blocks, R packed rows of D = 2 S tokens.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from .block_layout import BlockLayout


@dataclass(frozen=True, kw_only=True)
class PackedRows:
    """What to run, and where each request is answered. -1: padding, or no noisy block."""

    text: Int[Tensor, "R S"]
    noisy: Int[Tensor, "R S"]
    block: Int[Tensor, "R S"]
    index: Int[Tensor, " K"]  # flat positions r * 2 S + s of the hidden states that answer

    def part(self, rows: slice) -> "PackedRows":
        return replace(self, text=self.text[rows], noisy=self.noisy[rows], block=self.block[rows])


def pack(
    layout: BlockLayout,
    ids: Int[Tensor, "N S"],
    text: Int[Tensor, "N S"],
    attention: Bool[Tensor, "N S"],
    index: Int[Tensor, " K"],
) -> PackedRows:
    """`index` holds flat positions n * S + s of `ids`, the masked copies of `text`."""
    S = ids.shape[1]
    block_NS = layout.blocks(attention)
    source_K, early_K = layout.sources(attention, block_NS, index)
    text_TS, text_N = text.masked_fill(~attention, -1).unique(dim=0, return_inverse=True)
    copy_K, block_K = index // S, block_NS.flatten()[index]

    pair_K = copy_K * (block_NS.max() + 1) + block_K
    pair_W = pair_K[~early_K].unique()
    copy_W, block_W = pair_W // (block_NS.max() + 1), pair_W % (block_NS.max() + 1)
    noisy_WS = ids[copy_W].masked_fill(block_NS[copy_W] != block_W[:, None], -1)
    keyed_WF = torch.cat([text_N[copy_W, None], block_W[:, None], noisy_WS], dim=1)
    keyed_UF, unit_W = keyed_WF.unique(dim=0, return_inverse=True)
    text_U, noisy_US = keyed_UF[:, 0], keyed_UF[:, 2:]
    level_U = _rank_within(keyed_UF[:, :2])

    asked_T = text_N[copy_K].unique()
    first_T2 = torch.stack([asked_T, torch.zeros_like(asked_T)], dim=1)
    needed_X2 = torch.cat([first_T2, torch.stack([text_U, level_U], dim=1)])
    row_R2, row_X = needed_X2.unique(dim=0, return_inverse=True)
    row_U = row_X[len(first_T2) :]
    noisy_RS = text_TS[row_R2[:, 0]].new_zeros(len(row_R2), S)
    noisy_RS = noisy_RS.index_add(0, row_U, noisy_US + 1) - 1  # blocks of a row never overlap

    # a token that the text before its block predicts: beside the rest of its block, if that is run
    row_K = row_X[torch.searchsorted(asked_T, text_N[copy_K])]
    if len(pair_W):
        at_K = torch.searchsorted(pair_W, pair_K).clamp(max=len(pair_W) - 1)
        row_K = torch.where(pair_W[at_K] == pair_K, row_U[unit_W[at_K]], row_K)
    index_K = row_K * 2 * S + source_K % S + torch.where(early_K, 0, S)
    text_RS = text_TS[row_R2[:, 0]]
    return PackedRows(
        text=text_RS, noisy=noisy_RS, block=layout.blocks(text_RS >= 0), index=index_K
    )


def visible(layout: BlockLayout, rows: PackedRows) -> Bool[Tensor, "R D D"]:
    """Who sees whom. What is no token sees itself, so that no row of the mask is empty."""
    there_RS = rows.noisy >= 0
    block_q, block_k = rows.block[:, :, None], rows.block[:, None, :]
    real_k = (rows.text >= 0)[:, None, :]
    text = layout.finished(rows.block) & real_k
    before = (block_k < block_q) & real_k & there_RS[:, :, None]
    own = (block_k == block_q) & there_RS[:, :, None] & there_RS[:, None, :]
    top = torch.cat([text, torch.zeros_like(text)], dim=2)
    seen = torch.cat([top, torch.cat([before, own], dim=2)], dim=1)
    return seen | torch.eye(seen.shape[1], dtype=torch.bool, device=seen.device)


def _rank_within(key: Int[Tensor, "U F"]) -> Int[Tensor, " U"]:
    """0, 1, ... among the rows with an equal key, which stand together."""
    _, counts = key.unique_consecutive(dim=0, return_counts=True)
    start = counts.cumsum(0) - counts
    at = torch.arange(len(key), device=key.device)
    return at - start.repeat_interleave(counts)
