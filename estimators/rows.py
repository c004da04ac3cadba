"""What flows through an estimator: tensors whose dimension 0 is one rollout each.

    Sequences --plan--> MaskPlan --model--> Scores --combine--> Estimate

Shapes: B rows (prompts x num_generations), Q prompt tokens, L completion tokens, M views (masked
copies) per row, E terms (tokens, then choices of positions).
"""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Rows = TypeVar("Rows", bound="RowAligned")  # beartype knows no `Self` in a single method


@dataclass(frozen=True, kw_only=True)
class RowAligned:
    """Base of dataclasses of tensors (or None) whose dimension 0 is one rollout each."""

    def rows(self: Rows, index: Tensor | slice) -> Rows:
        """The same dataclass for some of the rows."""
        tensors = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{name: x[index] for name, x in tensors.items() if x is not None})


@dataclass(frozen=True, kw_only=True)
class Sequences(RowAligned):
    """Prompts, the completions to be scored, and what the sampler recorded of writing them.

    A step of -1 marks fixed text (a given hint, tokens already visible): shown as written, never
    scored.
    """

    prompt_ids: Int[Tensor, "B Q"]  # left-padded
    prompt_mask: Bool[Tensor, "B Q"]
    completion_ids: Int[Tensor, "B L"]  # the whole canvas, after EOS too
    completion_mask: Bool[Tensor, "B L"]  # True up to and including the first EOS
    step_map: Int[Tensor, "B L"] | None = None  # sampler step that committed each token
    order_map: Int[Tensor, "B L"] | None = None  # rank of each token inside its step, from 0
    block_map: Int[Tensor, "B L"] | None = None  # block of the canvas, from left to right
    rollout_logp: Float[Tensor, "B L"] | None = None  # of each token when it was committed
    entropy: Float[Tensor, "B L"] | None = None  # of its prediction then, at T = 1, in nats

    @property
    def fixed(self) -> Bool[Tensor, "B L"]:
        """Text that was given, not written."""
        if self.step_map is None:
            return torch.zeros_like(self.completion_mask)
        return self.step_map < 0

    def recorded(self, name: str) -> Tensor:
        """One of the sampler's records, on the CPU."""
        record = getattr(self, name)
        if record is None:
            raise ValueError(
                f"this estimator needs Sequences.{name}, what the sampler did; "
                "take sequences from one of our samplers, which record it"
            )
        return record.cpu()


@dataclass(frozen=True, kw_only=True)
class MaskPlan(RowAligned):
    """All the randomness of one estimate, drawn once per rollout.

    The current, old and reference policies are scored under the same plan, so that their
    ratio is 1 exactly before the first update. Each tensor has a row per rollout: shuffle
    it, split it or move it to another device, and it still belongs to its rollout.

    weight is part of the log-prob, and so of a ratio's exponent. importance stands outside: it
    weighs the terms of a view in sums and losses (a sampled step stands for several).
    """

    prompt: Bool[Tensor, "B M Q"]  # prompt positions shown as [MASK]
    completion: Bool[Tensor, "B M L"]  # completion positions shown as [MASK]
    weight: Float[Tensor, "B M L"]  # how much each prediction counts; 0 where unmasked
    importance: Float[Tensor, "B M"] | None = None  # None: 1 everywhere
    choice: Bool[Tensor, "B M L"] | None = None  # positions among which the step chose

    def __post_init__(self) -> None:
        seen = ~self.completion
        if bool((self.weight.ne(0) & seen).any()):
            raise ValueError(
                "a MaskPlan gives weight to an unmasked position, whose token the model sees; "
                "weight must be 0 wherever `completion` is False"
            )
        if self.importance is not None and bool((self.weight.ne(0).sum(1) > 1).any()):
            raise ValueError(
                "a MaskPlan with `importance` scores a token in more than one view; a token may "
                "have one weight in the loss only: put the weights of views into `weight`"
            )

    def views(self, part: slice) -> "MaskPlan":
        """The plan of some of the views."""
        tensors = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{k: x[:, part] for k, x in tensors.items() if x is not None})


@dataclass(frozen=True, kw_only=True)
class Scores(RowAligned):
    """What the model says of a plan; 0 where nothing was asked.

    choice: rule-dependent numbers for the probability of the chosen positions (`choice.py`).
    """

    token: Float[Tensor, "B M L"]  # log p(token | view)
    choice: Float[Tensor, "B M L"] | None = None


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The summands of an estimate, B x E: log-probs, which exist, and their weight in sums."""

    logp: Float[Tensor, "B E"]
    mask: Bool[Tensor, "B E"]
    weight: Float[Tensor, "B E"]


@dataclass(frozen=True, kw_only=True)
class Estimate(RowAligned):
    """Per-token contributions whose weighted sum over L estimates log p(completion | prompt).

    view: the view that scored each token; -1 where none or several did.
    """

    token_logp: Float[Tensor, "B L"]
    token_mask: Bool[Tensor, "B L"]  # tokens that this plan scored
    view_logp: Float[Tensor, "B M"] | None = None  # the same contributions, summed by view
    view: Int[Tensor, "B L"] | None = None
    importance: Float[Tensor, "B M"] | None = None  # of each view; None: 1
    choice_logp: Float[Tensor, "B M"] | None = None  # of the positions that each view chose
    upper_logp: Float[Tensor, "B L"] | None = None  # an upper bound in place of token_logp

    @property
    def sequence_logp(self) -> Float[Tensor, " B"]:
        terms = self.terms
        return (terms.logp * terms.weight).sum(-1)

    @property
    def token_weight(self) -> Float[Tensor, "B L"]:
        """Weight of each token in sums and losses: the importance of its view."""
        if self.importance is None:
            return torch.ones_like(self.token_logp)
        assert self.view is not None
        importance = self.importance.to(self.token_logp)
        return importance.gather(1, self.view.clamp(min=0)) * self.token_mask

    @property
    def terms(self) -> Terms:
        """The tokens' terms, followed by those of the choices of positions, if there are any."""
        tokens = Terms(logp=self.token_logp, mask=self.token_mask, weight=self.token_weight)
        if self.choice_logp is None:
            return tokens
        choice = self.choice_logp
        weight = torch.ones_like(choice) if self.importance is None else self.importance.to(choice)
        return Terms(
            logp=torch.cat([tokens.logp, choice], dim=1),
            mask=torch.cat([tokens.mask, choice.ne(0)], dim=1),
            weight=torch.cat([tokens.weight, weight], dim=1),
        )

    def detach(self) -> "Estimate":
        tensors = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{k: x.detach() for k, x in tensors.items() if x is not None})
