"""What every log-likelihood estimator is: where the masks go, and how much each prediction counts.

    log p(o | q)  ~  sum_m sum_l  w_ml  log p(o_l | view m)

A masked diffusion model gives p(o_l | z) for the masked positions of a partly masked sequence z,
never log p(o) itself. An estimator chooses views z (a `MaskPlan`), `score` runs the model on them,
and `combine` puts the answers together.

Shapes: B rows (prompts x num_generations), Q prompt tokens, L completion tokens, M views per row.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .decoding import PLAIN, Decoding
from .row_random import RowRandom
from .rows import Estimate, MaskPlan, Scores, Sequences
from .scoring import Denoiser, score

AfterEos = Literal["mask", "keep", "score"]


@dataclass(frozen=True, kw_only=True)
class Estimator(ABC):
    """Base of every estimator: a frozen dataclass of its settings. Write `plan` and `views`.

    after_eos: tokens after the first EOS are always shown as masks and not scored ("mask"),
        shown once written and not scored ("keep"), or treated like every other token ("score").
    at_rollout_temperature: score under the distribution that the rollouts were sampled from
        (temperature, top_k, top_p), instead of temperature 1 and all tokens.
    """

    paper: ClassVar[str]
    estimates: ClassVar[
        Literal[
            "exact", "exact in expectation", "lower bound", "lower and upper bound", "surrogate"
        ]
    ]
    level: ClassVar[Literal["token", "step", "sequence"]]
    cost: ClassVar[str]  # forward passes per row
    scores: ClassVar[str]  # the way of writing whose likelihood it approximates
    exact_settings: ClassVar[tuple[dict[str, Any], ...]] = ()  # that are exact for some decoding

    after_eos: AfterEos = "mask"
    at_rollout_temperature: bool = False

    @abstractmethod
    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        """Draw where the masks go: end with `self.planned(...)`."""

    @abstractmethod
    def views(self, *, length: int, steps: int) -> int:
        """Views per completion of `length` tokens written in `steps` steps: its forward passes."""

    def combine(
        self, seqs: Sequences, plan: MaskPlan, scores: Scores, decoding: Decoding = PLAIN
    ) -> Estimate:
        """Scores to log-probs: a differentiable function without a network in it."""
        weighted_BML = plan.weight.to(scores.token) * scores.token
        needed_BML = plan.weight.ne(0)
        alone_BL = needed_BML.sum(1) == 1
        return Estimate(
            token_logp=weighted_BML.sum(1),
            token_mask=needed_BML.any(1),
            view_logp=weighted_BML.sum(2),
            view=torch.where(alone_BL, needed_BML.int().argmax(1), -1),
            importance=plan.importance,
        )

    @property
    def linear(self) -> bool:
        """Whether `combine` is a linear function of the scores: its derivative needs no scores."""
        return type(self).combine is Estimator.combine

    def accepts(self, denoiser: type) -> None:  # noqa: B027 - most accept all
        """Raise ValueError if this class of denoisers cannot give the answers that are needed."""

    def exact_for(self, decoding: Decoding) -> bool:
        """Whether the estimate is the exact log-probability of rollouts decoded so."""
        return False

    def unbiased_for(self, decoding: Decoding) -> bool:
        """Whether its mean over the plan's randomness is, for rollouts decoded so."""
        return self.exact_for(decoding)

    def as_drawn(self, decoding: Decoding) -> bool:
        """Whether all tokens are scored, under the distribution that they were drawn from."""
        same = self.at_rollout_temperature or decoding.unchanged
        return same and self.after_eos == "score"

    def __call__(
        self, denoiser: Denoiser, seqs: Sequences, plan: MaskPlan, decoding: Decoding = PLAIN
    ) -> Estimate:
        """Score `seqs` under `plan`; `decoding` is that of the rollouts."""
        return self.combine(
            seqs, plan, self.run(denoiser, seqs, plan, decoding), self.seen(decoding)
        )

    def run(
        self, denoiser: Denoiser, seqs: Sequences, plan: MaskPlan, decoding: Decoding = PLAIN
    ) -> Scores:
        """The model's answers to a plan, or to some of its views."""
        return score(denoiser, seqs, plan, self.seen(decoding))

    def scored(self, seqs: Sequences) -> Bool[Tensor, "B L"]:
        """Tokens that may carry weight; their number normalises the losses."""
        everything = torch.ones_like(seqs.completion_mask)
        written = everything if self.after_eos == "score" else seqs.completion_mask
        return written & ~seqs.fixed

    def hidden_after_eos(self, seqs: Sequences) -> Bool[Tensor, "B L"]:
        """Positions shown as [MASK] in every view because they follow the first EOS."""
        if self.after_eos == "mask":
            return ~seqs.completion_mask & ~seqs.fixed
        return torch.zeros_like(seqs.completion_mask)

    def planned(
        self,
        seqs: Sequences,
        *,
        masked: Bool[Tensor, "B M L"],
        weight: Float[Tensor, "B M L"] | Bool[Tensor, "B M L"],
        prompt: Bool[Tensor, "B M Q"] | None = None,
        importance: Float[Tensor, "B M"] | None = None,
        choice: Bool[Tensor, "B M L"] | None = None,
    ) -> MaskPlan:
        """A plan on the sequences' device, in which what follows EOS is hidden if it has to be."""
        device = seqs.completion_ids.device
        exact = torch.float32 if device.type == "mps" else torch.float64
        B, M = masked.shape[:2]
        if prompt is None:
            prompt = torch.zeros(B, M, seqs.prompt_ids.shape[1], dtype=torch.bool)
        return MaskPlan(
            prompt=prompt.to(device),
            completion=masked.to(device) | self.hidden_after_eos(seqs)[:, None],
            weight=weight.to(device=device, dtype=exact),
            importance=None if importance is None else importance.to(device=device, dtype=exact),
            choice=None if choice is None else choice.to(device),
        )

    def seen(self, decoding: Decoding) -> Decoding:
        """The distribution to score under."""
        if self.at_rollout_temperature:
            return decoding
        return replace(decoding, temperature=1.0, top_k=None, top_p=None)
