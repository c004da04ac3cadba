"""Writing completions for a batch of task rows with the current policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from estimators import Sequences
from rl.generation import decode, tokenize_prompts, up_to_stop
from rl.models.denoiser import ModelDenoiser
from rl.samplers import Rollout, Sampler


@dataclass(frozen=True, kw_only=True)
class Completions:
    """A rank's rollouts: what to score, what to grade, and how they were written."""

    sequences: Sequences
    texts: list[str]
    logp: Float[Tensor, "B L"]  # recorded by the sampler
    nfe: Int[Tensor, " B"]

    @property
    def lengths(self) -> Int[Tensor, " B"]:
        """Tokens up to and including the first end token."""
        return self.sequences.completion_mask.sum(-1)

    @property
    def token_ids(self) -> list[list[int]]:
        """Up to and including the first end token."""
        s = self.sequences
        return [
            ids[mask].tolist()
            for ids, mask in zip(s.completion_ids, s.completion_mask, strict=True)
        ]


def write_completions(
    denoiser: ModelDenoiser,
    sampler: Sampler,
    tokenizer: Any,
    rows: Sequence[dict[str, Any]],
    *,
    length: int,
    seeds: Sequence[int],
    stop_ids: Sequence[int],
    pad_id: int,
    device: torch.device,
    batch_size: int | None = None,
) -> Completions:
    """One completion per row; at most `batch_size` rows are denoised at a time."""
    prompts = tokenize_prompts(tokenizer, [row["prompt"] for row in rows], pad_id)
    ids, mask = prompts.ids.to(device), prompts.mask.to(device)
    size = batch_size or len(rows)
    parts: list[Rollout] = []
    for at in range(0, len(rows), size):
        here = slice(at, at + size)
        parts.append(sampler(denoiser, ids[here], mask[here], length, seeds[here]))
    completion_ids = torch.cat([part.completion_ids for part in parts])
    completion_mask = up_to_stop(completion_ids, stop_ids)
    sequences = Sequences(
        prompt_ids=ids,
        prompt_mask=mask,
        completion_ids=completion_ids,
        completion_mask=completion_mask,
        step_map=torch.cat([part.step_map for part in parts]),
    )
    return Completions(
        sequences=sequences,
        texts=decode(tokenizer, completion_ids, completion_mask),
        logp=torch.cat([part.logp for part in parts]),
        nfe=torch.cat([part.nfe for part in parts]),
    )
