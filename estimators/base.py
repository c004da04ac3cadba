"""What every log-likelihood estimator consumes and returns.

A masked diffusion model gives p(o_l | z) for the masked positions of a partly masked
sequence z, never log p(o) itself. Every estimator answers the same two questions: where do
the masks go, and how much does each prediction count? Those answers are a `MaskPlan`.
`score` then runs the model; it is the only place that does.

    log p(o | q)  ~  sum_m sum_l  w_ml  log p(o_l | view m)

Shapes: B rows (prompts x num_generations), Q prompt tokens, L completion tokens, S = Q + L,
M views (masked copies) per row, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .row_random import RowRandom

AfterEos = Literal["mask", "keep", "score"]

# reduce(logits, entries, row): what to keep of the logits of some requested positions.
# logits[row[j]] belongs to the request number entries[j]; equal requests share a row.
Reduce = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, ...]]


@runtime_checkable
class Denoiser(Protocol):
    """A masked diffusion model behind one calling convention."""

    mask_id: int

    def __call__(
        self,
        ids: Int[Tensor, "N S"],
        attention: Bool[Tensor, "N S"],
        index: Int[Tensor, " K"],
        reduce: Reduce,
    ) -> tuple[Tensor, ...]:
        """Predict the tokens at the flat positions `index` (n * S + s) of `ids`.

        `reduce` sees fp32 logits in which row i predicts token i and ids that may never be
        written (mask, padding, rows beyond the tokenizer) are -inf. Returns one tensor per
        output of `reduce`, with K entries in the order of `index`.
        """
        ...


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
    """Prompts and the completions to be scored."""

    prompt_ids: Int[Tensor, "B Q"]  # left-padded
    prompt_mask: Bool[Tensor, "B Q"]
    completion_ids: Int[Tensor, "B L"]  # the whole canvas, after EOS too
    completion_mask: Bool[Tensor, "B L"]  # True up to and including the first EOS
    step_map: Int[Tensor, "B L"] | None = None  # sampler step that committed each token


@dataclass(frozen=True, kw_only=True)
class MaskPlan(RowAligned):
    """All the randomness of one estimate, drawn once per rollout.

    The current, old and reference policies are scored under the same plan, so that their
    ratio is 1 exactly before the first update. Each tensor has a row per rollout: shuffle
    it, split it or move it to another device, and it still belongs to its rollout.
    """

    prompt: Bool[Tensor, "B M Q"]  # prompt positions shown as [MASK]
    completion: Bool[Tensor, "B M L"]  # completion positions shown as [MASK]
    weight: Float[Tensor, "B M L"]  # how much each prediction counts; 0 where unmasked

    def __post_init__(self) -> None:
        if bool((self.weight.ne(0) & ~self.completion).any()):
            raise ValueError(
                "a MaskPlan gives weight to an unmasked position, whose token the model sees; "
                "weight must be 0 wherever `completion` is False"
            )


@dataclass(frozen=True, kw_only=True)
class Estimate(RowAligned):
    """Per-token contributions whose sum over L estimates log p(completion | prompt)."""

    token_logp: Float[Tensor, "B L"]
    token_mask: Bool[Tensor, "B L"]  # tokens that this plan scored

    @property
    def sequence_logp(self) -> Float[Tensor, " B"]:
        return self.token_logp.sum(-1)

    def detach(self) -> "Estimate":
        return Estimate(token_logp=self.token_logp.detach(), token_mask=self.token_mask)


@dataclass(frozen=True, kw_only=True)
class Estimator(ABC):
    """Base of every estimator: a frozen dataclass of its settings. Write `plan`.

    after_eos: tokens after the first EOS are always shown as masks and not scored ("mask"),
        shown as written and not scored ("keep"), or treated like every other token ("score").
    at_rollout_temperature: score under the temperature that the rollouts were sampled at,
        instead of temperature 1.
    """

    paper: ClassVar[str]
    estimates: ClassVar[Literal["exact", "lower bound", "surrogate"]]
    level: ClassVar[Literal["token", "sequence"]]
    cost: ClassVar[str]  # forward passes per row
    scores: ClassVar[str] = "its own approximation"  # what it scores where it is not exact

    after_eos: AfterEos = "mask"
    at_rollout_temperature: bool = False

    @abstractmethod
    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        """Draw where the masks go. Runs on the CPU: plans do not depend on the device."""

    def scored(self, seqs: Sequences) -> Bool[Tensor, "B L"]:
        """Tokens that may carry weight; their number normalises the losses."""
        everything = torch.ones_like(seqs.completion_mask)
        return everything if self.after_eos == "score" else seqs.completion_mask

    def exact_for(self, rule: str) -> bool:
        """Whether the estimate is the exact log-probability of rollouts with this sampler rule."""
        return False

    def __call__(
        self, denoiser: Denoiser, seqs: Sequences, plan: MaskPlan, temperature: float = 1.0
    ) -> Estimate:
        """Score `seqs` under `plan`; `temperature` is that of the rollouts."""
        logp_BML = score(denoiser, seqs, plan, temperature if self.at_rollout_temperature else 1.0)
        return Estimate(
            token_logp=(plan.weight * logp_BML).sum(1), token_mask=plan.weight.ne(0).any(1)
        )

    def hidden_after_eos(self, seqs: Sequences) -> Bool[Tensor, "B L"]:
        """Positions shown as [MASK] in every view because they follow the first EOS."""
        if self.after_eos == "mask":
            return ~seqs.completion_mask
        return torch.zeros_like(seqs.completion_mask)


def score(
    denoiser: Denoiser, seqs: Sequences, plan: MaskPlan, temperature: float = 1.0
) -> Float[Tensor, "B M L"]:
    """log p(completion token | masked sequence) in each of the M views; 0 where weight is 0.

    Views without any weight are not run, and the denoiser runs equal views once.
    """
    needed_BML = plan.weight.ne(0)
    row_R, view_R = needed_BML.any(-1).nonzero(as_tuple=True)  # R views to run
    needed_RL = needed_BML[row_R, view_R]
    hidden_RS = torch.cat([plan.prompt[row_R, view_R], plan.completion[row_R, view_R]], dim=1)
    ids_BS = torch.cat([seqs.prompt_ids, seqs.completion_ids], dim=1)
    attention_BS = torch.cat([seqs.prompt_mask, torch.ones_like(seqs.completion_mask)], dim=1)

    Q, S = seqs.prompt_ids.shape[1], ids_BS.shape[1]
    r, place = needed_RL.nonzero(as_tuple=True)
    targets_K = seqs.completion_ids[row_R[r], place]

    def target_logp(logits: Tensor, entries: Tensor, row: Tensor) -> tuple[Tensor, ...]:
        logits = logits if temperature == 1.0 else logits / temperature
        return (logits[row, targets_K[entries]] - logits.logsumexp(-1)[row],)

    (logp_K,) = denoiser(
        ids_BS[row_R].masked_fill(hidden_RS, denoiser.mask_id),
        attention_BS[row_R],
        r * S + Q + place,
        target_logp,
    )
    out_BML = logp_K.new_zeros(plan.weight.shape)
    return out_BML.index_put((row_R[r], view_R[r], place), logp_K)
