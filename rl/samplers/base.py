"""Iterative denoising: write a completion by committing tokens over a number of steps.

    canvas = [MASK]^L;  blocks from left to right;  in each step of a block
        propose tokens at its masked positions, commit those that the rule chooses

A rule only chooses positions (see the files beside this one). Every row draws its uniform numbers
from its own generator, keeps its own place in the schedule and leaves the batch when it is done:
it is completed the same at any batch size, padding or rank.

Shapes: B rows, R rows still being written, Q prompt tokens, L completion tokens, W tokens of a
block, T steps, P recorded steps.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from estimators import BlockwiseDenoiser, Decoding, Denoiser, RowRandom, in_context

from .draw import Draw
from .proposal import Proposal
from .rollout import Rollout


@runtime_checkable
class RolloutDenoiser(Denoiser, Protocol):
    """A denoiser that can write as well as score."""

    def evaluating(self) -> AbstractContextManager[None]:
        """No gradients and no dropout while the context lasts."""
        ...

    def equalize(self, count: int, /) -> int:
        """The largest count of all ranks that must call the model equally often; else `count`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Sampler(ABC):
    """Settings of a decoder; subclasses choose positions.

    steps: denoising steps for the whole completion, shared evenly by the blocks.
    block_length: tokens per block; None is one block.
    temperature: of the proposals; 0 is greedy.
    top_k: propose only the k most likely tokens; None: any.
    top_p: of these, only the most likely ones that together reach this mass; None: any.
    """

    rule: ClassVar[str]
    summary: ClassVar[str]  # what a step commits
    paper: ClassVar[str]
    blind: ClassVar[bool] = False  # the rule does not look at the model's prediction

    steps: int
    block_length: int | None = None
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

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
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k is {self.top_k}; use at least 1, or null for all tokens")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(
                f"top_p is {self.top_p}; use a mass above 0 and up to 1, or null for all tokens"
            )

    def decoding(self, length: int) -> Decoding:
        """What the probability of a step depends on."""
        return Decoding(
            rule=self.rule,
            temperature=self.temperature or 1.0,
            top_k=self.top_k,
            top_p=self.top_p,
            one_by_one=self.steps == length,
        )

    @abstractmethod
    def choose(self, proposal: Proposal) -> Int[Tensor, "R L"]:
        """0, 1, ... at the positions to commit, in the order of choice; -1 elsewhere."""

    def validate(self, length: int) -> None:
        """Raise if `steps` and `block_length` do not fit a completion of `length` tokens."""
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

    def for_blocks(self, size: int | None) -> "Sampler":
        """This sampler for a model that writes in blocks of `size` tokens, which it must not cross.

        Blocks of a multiple of `size`, or none, become those of the model; smaller ones stay.
        """
        if size is None:
            return self
        if self.block_length is None or self.block_length % size == 0:
            return replace(self, block_length=size)
        if size % self.block_length:
            raise ValueError(
                f"sampler.block_length is {self.block_length}, but the model writes in blocks of "
                f"{size} tokens; use {size}, a divisor of it, or null for the model's own"
            )
        return self

    def __call__(
        self,
        denoiser: RolloutDenoiser,
        prompt_ids: Int[Tensor, "B Q"],
        prompt_mask: Bool[Tensor, "B Q"],
        length: int,
        seeds: Sequence[int],
        *,
        start: Rollout | None = None,
        stop_after: int | None = None,
        record: Sequence[int] = (),
    ) -> Rollout:
        """One completion of `length` tokens per row; `seeds` has one seed per row.

        start: text to go on from: `Rollout.given(ids)`, or a rollout that was stopped.
        stop_after: return when so many steps are done, counting those of `start`.
        record: steps whose `predictions` of the whole completion are kept.
        """
        blocks = denoiser.block_size if isinstance(denoiser, BlockwiseDenoiser) else None
        fitting = self.for_blocks(blocks)
        if fitting != self:
            return fitting(
                denoiser, prompt_ids, prompt_mask, length, seeds,
                start=start, stop_after=stop_after, record=record,
            )  # fmt: skip
        self.validate(length)
        width = self.block_length or length
        B, device = len(prompt_ids), prompt_ids.device
        shared_B, opens_BL = self._blocks_of(denoiser, prompt_mask, length)
        # a first block that has fewer tokens may take one more block, and its steps
        T = self.steps + (self.steps * width // length if bool(shared_B.any()) else 0)
        random = RowRandom(seeds)
        noise_BT2W = random.per_row(T, 2, width).to(device)  # of tokens, of ranks
        beyond_BPL = random.per_row(len(record), length).to(device)  # of tokens outside the block
        record_P = torch.tensor(list(record), dtype=torch.long, device=device)
        if start is None:
            start = Rollout.given(prompt_ids.new_full((B, length), -1))
        canvas = replace(
            start,
            block_map=(shared_B[:, None] + torch.arange(length, device=device)) // width,
            predictions=prompt_ids.new_full((B, len(record), length), -1),
            prediction_logp=torch.zeros_like(beyond_BPL),
        )
        limit = T if stop_after is None or stop_after >= self.steps else stop_after
        inside = in_context(denoiser, prompt_ids.shape[1])
        with denoiser.evaluating():
            while True:
                rows = (canvas.unwritten.any(-1) & (canvas.steps < limit)).nonzero()[:, 0]
                if not denoiser.equalize(len(rows)):
                    break
                here = canvas.rows(rows)
                noise_R2L = noise_BT2W[rows, here.steps].repeat(1, 1, length // width)
                recorded_RP = here.steps[:, None] == record_P
                here = self._step(
                    inside,
                    prompt_ids[rows],
                    prompt_mask[rows],
                    here,
                    opens_BL[rows],
                    noise_R2L,
                    beyond_BPL[rows],
                    recorded_RP,
                )
                canvas = canvas.put(rows, here)
        missed = canvas.predictions < 0  # the row was done before that step
        return replace(
            canvas,
            predictions=torch.where(missed, canvas.completion_ids[:, None], canvas.predictions),
            prediction_logp=torch.where(missed, canvas.logp[:, None], canvas.prediction_logp),
        )

    def _step(
        self,
        denoiser: Denoiser,
        prompt_ids: Int[Tensor, "R Q"],
        prompt_mask: Bool[Tensor, "R Q"],
        here: Rollout,
        opens: Bool[Tensor, "R L"],
        noise: Float[Tensor, "R 2 L"],
        beyond: Float[Tensor, "R P L"],
        recorded: Bool[Tensor, "R P"],
    ) -> Rollout:
        """One step of each row."""
        proposal = self._blank(here, opens, noise[:, 1])
        asked = self.choose(proposal) >= 0 if self.blind else proposal.eligible
        asked = asked | (here.unwritten & recorded.any(-1, keepdim=True))
        outside = (beyond * recorded[..., None]).sum(1)
        row, place = asked.nonzero(as_tuple=True)
        draw = Draw(
            self.decoding(asked.shape[1]),
            torch.where(proposal.eligible, noise[:, 0], outside)[row, place],
            greedy=self.temperature == 0,
        )
        ids = torch.cat([prompt_ids, here.shown(denoiser.mask_id)], dim=1)
        attention = torch.cat([prompt_mask, torch.ones_like(asked)], dim=1)
        index = row * ids.shape[1] + prompt_ids.shape[1] + place
        token, rollout_logp, logp, peak, entropy = (
            x_K.new_zeros(asked.shape).index_put((row, place), x_K)
            for x_K in denoiser(ids, attention, index, draw)
        )
        order = self.choose(proposal if self.blind else replace(proposal, logp=logp, peak=peak))
        now = order >= 0
        foreseen = torch.where(here.unwritten, token, here.completion_ids)
        foreseen_logp = torch.where(here.unwritten, rollout_logp, here.logp)
        return replace(
            here,
            completion_ids=torch.where(now, token, here.completion_ids),
            step_map=torch.where(now, here.steps[:, None], here.step_map),
            order_map=torch.where(now, order, here.order_map),
            logp=torch.where(now, rollout_logp, here.logp),
            entropy=torch.where(now, entropy, here.entropy),
            nfe=here.nfe + 1,
            predictions=torch.where(recorded[..., None], foreseen[:, None], here.predictions),
            prediction_logp=torch.where(
                recorded[..., None], foreseen_logp[:, None], here.prediction_logp
            ),
        )

    def _blocks_of(
        self, denoiser: RolloutDenoiser, prompt_mask: Bool[Tensor, "B Q"], length: int
    ) -> tuple[Int[Tensor, " B"], Bool[Tensor, "B {length}"]]:
        """(tokens of each prompt that lie in the first block, tokens to be written before the rest
        of their block)."""
        B, device = len(prompt_mask), prompt_mask.device
        none_BL = torch.zeros(B, length, dtype=torch.bool, device=device)
        if not isinstance(denoiser, BlockwiseDenoiser) or denoiser.block_size is None:
            return torch.zeros(B, dtype=torch.long, device=device), none_BL
        width = self.block_length or length
        shared_B, opens_BL = denoiser.blocks(prompt_mask, length)
        if bool(opens_BL.any()) and width > 1 and self.steps * width < 2 * length:
            raise ValueError(
                f"sampler.steps is {self.steps}: {self.steps * width // length} a block, but the "
                "model predicts the first token of a block before the others; use at least "
                f"{2 * length // width} steps"
            )
        return shared_B % width, opens_BL

    def _blank(
        self, here: Rollout, opens: Bool[Tensor, "R L"], noise: Float[Tensor, "R L"]
    ) -> Proposal:
        """What a blind rule may look at."""
        L = here.block_map.shape[1]
        steps_per_block = self.steps * (self.block_length or L) // L
        first_R1 = here.unwritten.int().argmax(-1, keepdim=True)
        in_block = here.block_map == here.block_map.gather(1, first_R1)
        eligible = here.unwritten & in_block
        alone = eligible & opens
        eligible = torch.where(alone.any(-1, keepdim=True), alone, eligible)
        step_in_block = here.step_map.where(in_block & (here.step_map >= 0), here.steps[:, None])
        taken = here.steps - step_in_block.amin(-1)
        blank = torch.zeros_like(noise)
        return Proposal(
            logp=blank,
            peak=blank,
            noise=noise,
            eligible=eligible,
            due=-(-eligible.sum(-1) // (steps_per_block - taken)),
        )
