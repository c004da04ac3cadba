"""Which tokens of a block model belong together, who sees whom, and whose hidden state predicts.

    origin "absolute"    blocks of `size` tokens are counted from the first token: a prompt shares
                         its last block with the completion (SDAR, LLaDA2)
    origin "response"    the prompt is a block, and the completion starts a new one (Nemotron)
    context "block"      a token of a finished block sees its block and those before it
    context "causal"     it sees itself and what is before it; noisy blocks are bidirectional
    seed_first           the first token of a block is predicted from the last one before it

Shapes: N rows, S tokens, K requested positions; B prompts of Q tokens.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class BlockLayout:
    """start: column at which the completions begin; needed for origin "response"."""

    size: int
    origin: Literal["absolute", "response"] = "absolute"
    context: Literal["block", "causal"] = "block"
    shift: Literal[0, 1] = 0
    seed_first: bool = False
    start: int = 0

    def blocks(self, attention: Bool[Tensor, "N S"]) -> Int[Tensor, "N S"]:
        """The number of each token's block, from 0; -1 for padding."""
        if self.origin == "absolute":
            block_NS = (attention.long().cumsum(-1) - 1).clamp(min=0) // self.size
        else:
            column_S = torch.arange(attention.shape[1], device=attention.device)
            after_S = torch.where(column_S < self.start, -1, (column_S - self.start) // self.size)
            block_NS = (after_S + 1).expand(attention.shape)
        return block_NS.masked_fill(~attention, -1)

    def of_completions(
        self, prompt_mask: Bool[Tensor, "B Q"], length: int
    ) -> tuple[Int[Tensor, " B"], Bool[Tensor, "B {length}"]]:
        """(tokens of each prompt in the completion's first block, tokens to be written first)."""
        shared_B = prompt_mask.sum(-1) % self.size
        if self.origin == "response":
            shared_B = torch.zeros_like(shared_B)
        place_L = torch.arange(length, device=prompt_mask.device)
        opens_BL = (shared_B[:, None] + place_L) % self.size == 0
        return shared_B, opens_BL if self.seed_first else torch.zeros_like(opens_BL)

    def finished(self, block: Int[Tensor, "N S"]) -> Bool[Tensor, "N S S"]:
        """Who sees whom in finished text, padding left to the caller."""
        if self.context == "block":
            return block[:, None, :] <= block[:, :, None]
        S = block.shape[1]
        causal = torch.ones(S, S, dtype=torch.bool, device=block.device).tril()
        return causal.expand(len(block), S, S)

    def sources(
        self,
        attention: Bool[Tensor, "N S"],
        block: Int[Tensor, "N S"],
        index: Int[Tensor, " K"],
    ) -> tuple[Int[Tensor, " K"], Bool[Tensor, " K"]]:
        """(flat position of the hidden state that predicts each request, is it of a block before).

        The first real token has no predecessor: it is predicted by its own hidden state.
        """
        if self.shift == 0 and not self.seed_first:
            return index, torch.zeros_like(index, dtype=torch.bool)
        before_NS = has_predecessor(attention)
        opens_NS = before_NS & (block != block.roll(1, dims=1))
        from_before_NS = before_NS if self.shift else opens_NS
        return index - from_before_NS.flatten()[index].long(), opens_NS.flatten()[index]


def has_predecessor(attention: Bool[Tensor, "N S"]) -> Bool[Tensor, "N S"]:
    """Real tokens that are not the first of their row."""
    before_NS = attention & attention.roll(1, dims=1)
    before_NS[:, 0] = False
    return before_NS
