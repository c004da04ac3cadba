"""Iterative denoising: write a completion by committing tokens over a number of steps.

    canvas = [MASK]^L;  blocks from left to right;  in each step of a block
        propose tokens at its masked positions, commit the n that the rule ranks first

A rule only ranks positions (see the files beside this one). Proposals are drawn by inverting the
cumulative distribution at one uniform number per position, which every row draws from its own
generator: the same row gives the same completion at any batch size, padding or rank.

Shapes: B rows, Q prompt tokens, L completion tokens, T steps, V vocabulary, K requested positions.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from estimators import Denoiser, RowRandom


@runtime_checkable
class RolloutDenoiser(Denoiser, Protocol):
    """A denoiser that can write as well as score."""

    def evaluating(self) -> AbstractContextManager[None]:
        """No gradients and no dropout while the context lasts."""
        ...


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """Completions, and how they came about."""

    completion_ids: Int[Tensor, "B L"]
    step_map: Int[Tensor, "B L"]  # step that committed each token
    logp: Float[Tensor, "B L"]  # of each token in that step, at the rollout temperature
    nfe: Int[Tensor, " B"]  # forward passes that wrote the row


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What a rule may look at: the masked positions of the current block."""

    logp: Float[Tensor, "B W"]  # T = 1 log-prob of the proposed token
    peak: Float[Tensor, "B W"]  # T = 1 log-prob of the most likely token
    noise: Float[Tensor, "B W"]  # U[0, 1), the row's own
    place: Int[Tensor, " W"]  # position in the block


@dataclass(frozen=True, kw_only=True)
class Sampler(ABC):
    """Settings of a decoder; subclasses rank positions.

    steps: denoising steps for the whole completion, shared evenly by the blocks.
    block_length: tokens per block; None is one block.
    temperature: of the proposals; 0 is greedy.
    """

    rule: ClassVar[str]
    blind: ClassVar[bool] = False  # the rule does not look at the model's prediction

    steps: int
    block_length: int | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; use at least 1")
        if self.block_length is not None and self.block_length < 1:
            raise ValueError(
                f"block_length is {self.block_length}; use at least 1, or null for one block"
            )
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(
                f"temperature is {self.temperature}; it must be 0 (greedy) or positive"
            )

    @abstractmethod
    def rank(self, proposal: Proposal) -> Float[Tensor, "B W"]:
        """The higher, the sooner committed."""

    def validate(self, length: int) -> None:
        """Raise if `steps` and `block_length` do not fit a completion of `length` tokens."""
        self._schedule(length)

    def _schedule(self, length: int) -> list[tuple[int, int, int]]:
        """(first position, last position + 1, tokens to commit) of every step."""
        width = self.block_length or length
        if length % width:
            raise ValueError(
                f"block_length {width} does not divide max_completion_length {length}; "
                f"use a divisor of {length}"
            )
        blocks = length // width
        if self.steps % blocks or not blocks <= self.steps <= length:
            raise ValueError(
                f"steps {self.steps} do not fit {blocks} blocks of {width} tokens; use a multiple "
                f"of {blocks} from {blocks} to {length}"
            )
        each, extra = divmod(width, self.steps // blocks)
        commits = [each + (step < extra) for step in range(self.steps // blocks)]
        return [(b * width, (b + 1) * width, n) for b in range(blocks) for n in commits]

    def __call__(
        self,
        denoiser: RolloutDenoiser,
        prompt_ids: Int[Tensor, "B Q"],
        prompt_mask: Bool[Tensor, "B Q"],
        length: int,
        seeds: Sequence[int],
    ) -> Rollout:
        """One completion of `length` tokens per row; `seeds` has one seed per row."""
        schedule = self._schedule(length)
        B, width = len(prompt_ids), self.block_length or length
        # [B, T, 2, W]: token noise and rank noise of every step
        noise = RowRandom(seeds).per_row(len(schedule), 2, width).to(prompt_ids.device)
        canvas = prompt_ids.new_full((B, length), denoiser.mask_id)
        step_map = torch.zeros_like(canvas)
        logp = noise.new_zeros(B, length)
        attention = torch.cat([prompt_mask, torch.ones_like(canvas, dtype=torch.bool)], dim=1)
        with denoiser.evaluating():
            for step, (lo, hi, commit) in enumerate(schedule):
                ids = torch.cat([prompt_ids, canvas], dim=1)
                block = slice(prompt_ids.shape[1] + lo, prompt_ids.shape[1] + hi)
                chosen, token, token_logp = self._step(
                    denoiser, ids, attention, block, commit, noise[:, step]
                )
                canvas[:, lo:hi] = torch.where(chosen, token, canvas[:, lo:hi])
                logp[:, lo:hi] = torch.where(chosen, token_logp, logp[:, lo:hi])
                step_map[:, lo:hi] = step_map[:, lo:hi].masked_fill(chosen, step)
        nfe = torch.full((B,), len(schedule), device=prompt_ids.device)
        return Rollout(completion_ids=canvas, step_map=step_map, logp=logp, nfe=nfe)

    def _step(
        self,
        denoiser: RolloutDenoiser,
        ids: Int[Tensor, "B S"],
        attention: Bool[Tensor, "B S"],
        block: slice,
        commit: int,
        noise: Float[Tensor, "B 2 W"],
    ) -> tuple[Bool[Tensor, "B W"], Int[Tensor, "B W"], Float[Tensor, "B W"]]:
        """Positions to commit now, and the proposed tokens with their rollout log-probs."""
        masked = asked = ids[:, block] == denoiser.mask_id
        blank = noise.new_zeros(masked.shape)
        place = torch.arange(masked.shape[1], device=ids.device)
        view = Proposal(logp=blank, peak=blank, noise=noise[:, 1], place=place)
        if self.blind:  # ask for the chosen positions only
            asked = _first(self.rank(view), masked, commit)
        row, column = asked.nonzero(as_tuple=True)
        index = row * ids.shape[1] + block.start + column
        draw = _Draw(self.temperature, noise[row, 0, column])
        token, rollout_logp, logp, peak = (
            x_K.new_zeros(masked.shape).index_put((row, column), x_K)
            for x_K in denoiser(ids, attention, index, draw)
        )
        if not self.blind:
            view = replace(view, logp=logp, peak=peak)
        return _first(self.rank(view), masked, commit), token, rollout_logp


def _first(
    rank: Float[Tensor, "B W"], allowed: Bool[Tensor, "B W"], count: int
) -> Bool[Tensor, "B W"]:
    """The `count` allowed positions of highest rank; ties go to the left."""
    order = rank.masked_fill(~allowed, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    return torch.zeros_like(allowed).scatter(1, order[:, :count], True) & allowed


class _Draw:
    """Reduce logits to a token, its rollout log-prob, its log-prob at T = 1, and the peak's."""

    def __init__(self, temperature: float, uniform: Float[Tensor, " K"]) -> None:
        self.temperature = temperature
        self.uniform = uniform.clamp(max=1 - 2**-40)

    def __call__(self, logits: Tensor, entries: Tensor, row: Tensor) -> tuple[Tensor, ...]:
        logp_CV = logits.log_softmax(-1)
        peak = logp_CV.amax(-1)[row]
        if self.temperature == 0:
            token = logp_CV.argmax(-1)[row]
            return token, torch.zeros_like(peak), logp_CV[row, token], peak
        rollout_CV = logp_CV
        if self.temperature != 1:
            rollout_CV = (logits / self.temperature).log_softmax(-1)
        token = self._invert(rollout_CV, entries, row)
        return token, rollout_CV[row, token], logp_CV[row, token], peak

    def _invert(self, logp_CV: Tensor, entries: Tensor, row: Tensor) -> Tensor:
        """The token whose slice of the cumulative distribution holds the entry's uniform number."""
        cumulative_CV = logp_CV.to(torch.float64, copy=True).exp_().cumsum_(-1)
        tokens: list[Tensor] = []
        for at in range(0, len(row), len(logp_CV)):  # several entries may share a row
            here = cumulative_CV[row[at : at + len(logp_CV)]]
            goal = self.uniform[entries[at : at + len(logp_CV)], None] * here[:, -1:]
            tokens.append(torch.searchsorted(here, goal, right=True)[:, 0])
        return torch.cat(tokens) if tokens else row
