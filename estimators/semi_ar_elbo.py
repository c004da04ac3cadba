"""ELBO of a completion that is written block by block (semi-autoregressive).

    log p(o | q)  =  sum_b log p(block b | q, blocks before b)
    log p(block b | ..)  >=  E_{k ~ U{1..n_b}} E_{|z| = k} [ n_b/k  sum_{l in z} log p(o_l | view) ]

In a view the blocks before b are shown, z is masked in b, and everything after b is masked but not
scored. n_b is the number of scored tokens of block b; blocks without any are left out.
blocks="one" draws one block per sample, uniformly, with the number of blocks as its weight (SPG);
"every" takes all of them (EBPO, which needs one forward pass for all blocks if the model is
block-causal; here each is a view). The mean is the same. block_length=None is one block, the ELBO.

context_mask_prob masks that share of the prompt and of the blocks before b, as regularisation:
SPG uses 0.15, and the quantity estimated is then another one. Masked context is not scored.
SPG's released code scores the later blocks and the masked context too; we follow the paper.

Paper     SPG, arXiv:2510.09541; EBPO in LLaDA2.1, arXiv:2602.08676
Estimates a lower bound, without bias for any `samples`
Cost      `samples` forward passes, times the number of blocks for "every"
Level     sequence
"""

from dataclasses import dataclass
from typing import Literal

import torch

from .base import Estimator
from .masks import random_prompt_tokens, random_sets
from .row_random import RowRandom
from .rows import MaskPlan, Sequences


@dataclass(frozen=True, kw_only=True)
class SemiArElbo(Estimator):
    paper = "SPG, arXiv:2510.09541; EBPO, arXiv:2602.08676"
    estimates = "lower bound"
    level = "sequence"
    cost = "samples (times the blocks for every)"
    scores = "random-order decoding inside blocks, from left to right"

    block_length: int | None = 32
    samples: int = 1
    blocks: Literal["one", "every"] = "one"
    context_mask_prob: float = 0.0

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}; an ELBO needs at least 1")
        if self.block_length is not None and self.block_length < 1:
            raise ValueError(
                f"block_length is {self.block_length}; use at least 1, or null for one block"
            )
        if not 0 <= self.context_mask_prob < 1:
            raise ValueError(
                f"context_mask_prob is {self.context_mask_prob}; it must be in [0, 1), "
                "SPG uses 0.15"
            )

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        scored_BL = self.scored(seqs).cpu()
        L = scored_BL.shape[1]
        block_L = torch.arange(L) // (self.block_length or L)
        in_block_BKL = (block_L == torch.arange(int(block_L[-1]) + 1)[:, None]) & scored_BL[:, None]
        used_BK = in_block_BKL.any(-1)
        if self.blocks == "every":
            block_BM = torch.arange(used_BK.shape[1]).repeat(self.samples).expand(len(used_BK), -1)
            weight_BM = used_BK.gather(1, block_BM).double()
        else:
            count_B1 = used_BK.sum(-1, keepdim=True)
            pick_BM = (random.per_row(self.samples) * count_B1).long()
            # the pick-th of the used blocks
            block_BM = torch.searchsorted(used_BK.cumsum(-1), pick_BM, right=True)
            block_BM = block_BM.clamp(max=used_BK.shape[1] - 1)
            weight_BM = count_B1.double().expand(block_BM.shape)
        here_BML = in_block_BKL.gather(1, block_BM[..., None].expand(-1, -1, L))
        n_BM = here_BML.sum(-1)
        k_BM = 1 + (random.per_row(block_BM.shape[1]) * n_BM).long()
        masked = random_sets(random, here_BML, k_BM)
        weight = masked * (weight_BM * n_BM / k_BM / self.samples)[..., None]

        prompt = None
        later = (block_L > block_BM[..., None]) & ~seqs.fixed.cpu()[:, None]
        if self.context_mask_prob:
            earlier = (block_L < block_BM[..., None]) & ~seqs.fixed.cpu()[:, None]
            noise_BML = random.per_row(*masked.shape[1:])
            later = later | (earlier & (noise_BML < self.context_mask_prob))
            prompt = random_prompt_tokens(random, seqs, masked.shape[1], self.context_mask_prob)
        return self.planned(seqs, masked=masked | later, weight=weight, prompt=prompt)

    def views(self, *, length: int, steps: int) -> int:
        every = -(-length // (self.block_length or length)) if self.blocks == "every" else 1
        return self.samples * every
