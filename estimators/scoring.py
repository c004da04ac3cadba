"""Running the model on a plan: the only place where an estimator meets a network.

A masked diffusion model gives p(o_l | z) for the masked positions of a partly masked sequence z.

Shapes: N rows shown to the model, S = Q + L tokens each, K requested positions, R views to run;
B, M, Q, L as in `rows.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from .choice import CHOOSING, PROPOSING, Asked, choice_scores
from .decoding import PLAIN, Decoding
from .rows import MaskPlan, Scores, Sequences

# reduce(logits, entries, row): what to keep of the logits of some requested positions.
# logits[row[j]] belongs to the request number entries[j]; equal requests share a row.
# A reduce with a true attribute `whole_views` gets all requests of one row of ids in one call.
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


@runtime_checkable
class BlockwiseDenoiser(Denoiser, Protocol):
    """A model whose answers may depend on more than the masked copy that it is shown.

    A block model writes a block given finished blocks before it, so it scores a block given the
    finished text before it, whatever the masked copy hides there.
    """

    @property
    def block_size(self) -> int | None:
        """Tokens of a block; None where every token sees every token."""
        ...

    def blocks(
        self, prompt_mask: Bool[Tensor, "B Q"], length: int
    ) -> tuple[Int[Tensor, " B"], Bool[Tensor, "B {length}"]]:
        """(tokens of each prompt in the completion's first block, tokens to be written first)."""
        ...

    def in_context(self, start: int, text: Int[Tensor, "N S"] | None = None) -> Denoiser:
        """The denoiser for rows whose completions begin at column `start`.

        text: the finished rows, when masked copies of them are scored; None while they are written.
        """
        ...


def in_context(denoiser: Denoiser, start: int, text: Int[Tensor, "N S"] | None = None) -> Denoiser:
    """`denoiser.in_context(...)` if it has one."""
    if isinstance(denoiser, BlockwiseDenoiser):
        return denoiser.in_context(start, text)
    return denoiser


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What to keep of logits: log-probs of the asked tokens and, with `choice`, its summands."""

    asked: Asked
    decoding: Decoding
    choice: bool

    @property
    def whole_views(self) -> bool:
        """A kept proposal is compared with all others of its view."""
        return self.choice and self.decoding.rule in PROPOSING

    def __call__(self, logits: Tensor, entries: Tensor, row: Tensor) -> tuple[Tensor, ...]:
        here = self.asked.rows(entries)
        tempered = self.decoding.tempered(logits)
        logp_K = self.decoding.token_logp(logits, tempered, row, here.token)
        if not self.choice:
            return (logp_K,)
        return logp_K, choice_scores(logits, tempered, row, here, self.decoding)


def score(
    denoiser: Denoiser, seqs: Sequences, plan: MaskPlan, decoding: Decoding = PLAIN
) -> Scores:
    """log p_T(completion token | masked sequence) in each of the M views; 0 where weight is 0.

    With `plan.choice`, and a rule that chooses by chance, the summands of that chance as well.
    Views without any weight are not run, and the denoiser runs equal views once.
    """
    written_BML = asked_BML = plan.weight.ne(0)
    choice = plan.choice is not None and decoding.rule in CHOOSING
    if plan.choice is not None and choice:
        asked_BML = written_BML | (plan.choice & written_BML.any(-1, keepdim=True))
    runs_BM = written_BML.any(-1)
    runs_BM[:1, :1] |= ~runs_BM.any()  # with nothing to ask, gradients are 0 and not missing
    row_R, view_R = runs_BM.nonzero(as_tuple=True)  # R views to run
    hidden_RS = torch.cat([plan.prompt[row_R, view_R], plan.completion[row_R, view_R]], dim=1)
    ids_BS = torch.cat([seqs.prompt_ids, seqs.completion_ids], dim=1)
    attention_BS = torch.cat([seqs.prompt_mask, torch.ones_like(seqs.completion_mask)], dim=1)

    Q, S = seqs.prompt_ids.shape[1], ids_BS.shape[1]
    view_K, place_K = asked_BML[row_R, view_R].nonzero(as_tuple=True)
    at = (row_R[view_K], view_R[view_K], place_K)
    asked = Asked(
        view=view_K,
        place=place_K,
        token=seqs.completion_ids[row_R[view_K], place_K],
        written=written_BML[at],
    )
    logp_K, *choice_K = in_context(denoiser, Q, ids_BS[row_R])(
        ids_BS[row_R].masked_fill(hidden_RS, denoiser.mask_id),
        attention_BS[row_R],
        view_K * S + Q + place_K,
        Answer(asked=asked, decoding=decoding, choice=choice),
    )
    none_BML = logp_K.new_zeros(plan.weight.shape)
    logp_K = logp_K.masked_fill(~asked.written, 0.0)
    return Scores(
        token=none_BML.index_put(at, logp_K),
        choice=none_BML.index_put(at, choice_K[0]) if choice_K else None,
    )
