"""The recorded order in one forward pass, through an any-order-causal model.

    log p(o | q)  =  sum_l log p(o_l | q, the tokens of earlier steps)

An any-order-causal model takes the completion and the order in which it was written, and predicts
every token from the prompt and the tokens of earlier steps, at once. The result is the one of
`trajectory` with every step, at the cost of one pass. Such a model is a denoiser with a method

    in_order(ids, attention, order, index, reduce)

which is a denoiser's call with unmasked ids and `order`: -1 for the prompt and what is given, the
step for the rest. A bidirectional model (LLaDA, Dream, ...) is not one, and answers wrongly if
asked as if it were. No model family that we ship has it yet.

Paper     d2-AnyOrder, arXiv:2509.21474 (Eso-LM)
Estimates the tokens' log-probability on the trajectory, exactly
Cost      1 forward pass
Level     token
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from .base import AfterEos, Estimator
from .choice import Asked
from .decoding import PLAIN, Decoding
from .row_random import RowRandom
from .rows import MaskPlan, Scores, Sequences
from .scoring import Answer, Denoiser, Reduce
from .stepwise import TOKENS_ARE_ALL


@runtime_checkable
class AnyOrderDenoiser(Denoiser, Protocol):
    """A denoiser that can also score a whole order at once."""

    def in_order(
        self,
        ids: Int[Tensor, "N S"],
        attention: Bool[Tensor, "N S"],
        order: Int[Tensor, "N S"],
        index: Int[Tensor, " K"],
        reduce: Reduce,
    ) -> tuple[Tensor, ...]:
        """Predict each position from those of lower order; otherwise as `__call__`."""
        ...


@dataclass(frozen=True, kw_only=True)
class AnyOrder(Estimator):
    paper = "d2-AnyOrder, arXiv:2509.21474"
    estimates = "exact"
    level = "token"
    cost = "1"
    scores = "the tokens of the rollout's own steps, but not its choice of positions"

    after_eos: AfterEos = "score"  # tokens after EOS were actions too
    at_rollout_temperature: bool = True

    def exact_for(self, decoding: Decoding) -> bool:
        return self.as_drawn(decoding) and decoding.rule in TOKENS_ARE_ALL

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        written_B1L = seqs.recorded("step_map")[:, None] >= 0
        return self.planned(seqs, masked=written_B1L, weight=self.scored(seqs)[:, None])

    def views(self, *, length: int, steps: int) -> int:
        return 1

    def accepts(self, denoiser: type) -> None:
        if not hasattr(denoiser, "in_order"):
            raise ValueError(
                f"any_order needs an any-order-causal model, and {denoiser.__name__} has no "
                "in_order: LLaDA and other bidirectional models see what was written later. "
                "Use trajectory with segments null, which scores the same in one pass per step"
            )

    def run(
        self, denoiser: Denoiser, seqs: Sequences, plan: MaskPlan, decoding: Decoding = PLAIN
    ) -> Scores:
        self.accepts(type(denoiser))
        assert isinstance(denoiser, AnyOrderDenoiser)
        assert seqs.step_map is not None
        Q, S = seqs.prompt_ids.shape[1], seqs.prompt_ids.shape[1] + plan.weight.shape[-1]
        never = torch.iinfo(seqs.step_map.dtype).max  # comes after everything
        step_BL = seqs.step_map.masked_fill(self.hidden_after_eos(seqs), never)
        row_K, place_K = plan.weight[:, 0].nonzero(as_tuple=True)
        token_K = seqs.completion_ids[row_K, place_K]
        written_K = torch.ones_like(token_K, dtype=torch.bool)
        asked = Asked(view=row_K, place=place_K, token=token_K, written=written_K)
        (logp_K,) = denoiser.in_order(
            torch.cat([seqs.prompt_ids, seqs.completion_ids], dim=1),
            torch.cat([seqs.prompt_mask, torch.ones_like(seqs.completion_mask)], dim=1),
            torch.cat([torch.full_like(seqs.prompt_ids, -1), step_BL], dim=1),
            row_K * S + Q + place_K,
            Answer(asked=asked, decoding=self.seen(decoding), choice=False),
        )
        token_BML = logp_K.new_zeros(plan.weight.shape)
        zero_K = torch.zeros_like(row_K)
        return Scores(token=token_BML.index_put((row_K, zero_K, place_K), logp_K))
