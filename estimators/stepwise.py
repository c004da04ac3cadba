"""Views at steps of the recorded decode: what the trajectory estimators share.

The view of step k shows what was committed before it and masks the rest; it scores the tokens U_k
that the step committed. Steps may be merged into segments: a segment is one step that commits the
whole segment, seen from the state at its start.

    selection > 0 adds  selection x log p(the step commits the positions U_k | view)

to each step: together they are the log-probability of what the sampler did (see `choice.py`).
step_mean=True weighs each step by n / (K #U_k), K steps and n scored tokens: in a loss that is a
mean over the tokens of each sequence, every step then counts the same (CJ-GRPO, TraceRL).

Shapes: B rows, M views, L completion tokens.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .base import AfterEos, Estimator
from .choice import choice_logp
from .decoding import PLAIN, Decoding
from .rows import Estimate, MaskPlan, Scores, Sequences
from .subset import tokens_by_step

# rules that choose where to write without looking at what they write; the others need `selection`
TOKENS_ARE_ALL = ("confidence_first", "left_to_right", "random")
WITH_SELECTION = (*TOKENS_ARE_ALL, "low_confidence", "plackett_luce", "threshold")


@dataclass(frozen=True, kw_only=True)
class Stepwise(Estimator):
    """Base of the estimators whose views are recorded steps."""

    segments: int | None = None  # None: every step is its own
    step_mean: bool = False
    selection: float = 0.0
    after_eos: AfterEos = "score"  # tokens after EOS were actions too
    at_rollout_temperature: bool = True

    def __post_init__(self) -> None:
        if self.segments is not None and self.segments < 1:
            raise ValueError(f"segments is {self.segments}; use at least 1, or null for every step")
        if self.selection < 0:
            raise ValueError(
                f"selection is {self.selection}; use 0 for the tokens alone, 1 for the whole step"
            )

    @property
    def linear(self) -> bool:
        return self.selection == 0

    def combine(
        self, seqs: Sequences, plan: MaskPlan, scores: Scores, decoding: Decoding = PLAIN
    ) -> Estimate:
        estimate = super().combine(seqs, plan, scores, decoding)
        if plan.choice is None:
            return estimate
        logp_BM = choice_logp(seqs, plan, scores, decoding)
        # All tokens of a step have one weight, which is that of its choice too.
        weight_BM = self.selection * plan.choice.any(-1) * plan.weight.amax(-1).to(logp_BM)
        return replace(estimate, choice_logp=weight_BM * logp_BM)

    def seen(self, decoding: Decoding) -> Decoding:
        """Merged steps, or steps of which some tokens are not scored, have other sizes."""
        whole = self.after_eos == "score" and self.segments is None
        return replace(super().seen(decoding), whole_steps=whole and decoding.whole_steps)

    def segment_map(self, seqs: Sequences) -> Int[Tensor, "B L"]:
        """Segment that committed each token; negative for fixed text."""
        step_BL = seqs.recorded("step_map")
        if self.segments is None:
            return step_BL
        steps_B1 = (step_BL.amax(-1, keepdim=True) + 1).clamp(min=1)  # each row's own number
        return step_BL * steps_B1.clamp(max=self.segments) // steps_B1

    def views_at(
        self,
        seqs: Sequences,
        segment: Int[Tensor, "B L"],
        which: Int[Tensor, "B M"],
        importance: Float[Tensor, "B M"] | None = None,
    ) -> MaskPlan:
        """The views of some segments; `importance` of each, 1 by default."""
        scored_B1L = self.scored(seqs).cpu()[:, None]
        now = (segment[:, None] == which[..., None]) & scored_B1L
        masked = segment[:, None] >= which[..., None]
        if self.step_mean:
            steps_B1 = tokens_by_step(segment, scored_B1L[:, 0]).gt(0).sum(-1, keepdim=True)
            mean_BM = scored_B1L.sum(-1) / (steps_B1.clamp(min=1) * now.sum(-1).clamp(min=1))
            importance = mean_BM if importance is None else importance * mean_BM
        choice = None
        if self.selection:
            choice = masked & scored_B1L & now.any(-1, keepdim=True)
            if seqs.block_map is not None:
                block = seqs.block_map.cpu()[:, None].expand_as(now)
                choice = choice & (block <= torch.where(now, block, -1).amax(-1, keepdim=True))
        return self.planned(seqs, masked=masked, weight=now, importance=importance, choice=choice)

    def every_action(self, decoding: Decoding) -> bool:
        """Whether all that the sampler did is scored, step by step, as it was drawn."""
        rules = WITH_SELECTION if self.selection == 1 else TOKENS_ARE_ALL
        return self.as_drawn(decoding) and self.segments is None and decoding.rule in rules
