"""Writing completions for task rows with the current policy, and what is known of them.

Shapes: B rows, L completion tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from estimators import Sequences
from rl.generation import decode, tokenize_prompts, up_to_stop
from rl.models.loading import LoadedModel
from rl.samplers import Rollout, RolloutDenoiser, Sampler

Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Completions:
    """Texts after their prompts: what to score, what to grade, and what they cost."""

    sequences: Sequences
    texts: list[str]
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


def write(
    denoiser: RolloutDenoiser,
    sampler: Sampler,
    loaded: LoadedModel,
    rows: Rows,
    *,
    length: int,
    seeds: Sequence[int],
    device: torch.device,
    batch_size: int | None = None,
    start: Rollout | None = None,
    stop_after: int | None = None,
    record: Sequence[int] = (),
) -> Rollout:
    """One rollout per row, at most `batch_size` at a time; the rest is as in `Sampler`."""
    prompts = tokenize_prompts(loaded.tokenizer, [row["prompt"] for row in rows], loaded.pad_id)
    ids, mask = prompts.ids.to(device), prompts.mask.to(device)
    size = batch_size or len(rows)
    parts: list[Rollout] = []
    for at in range(0, len(rows), size):
        here = slice(at, at + size)
        parts.append(
            sampler(
                denoiser,
                ids[here],
                mask[here],
                length,
                seeds[here],
                start=None if start is None else start.rows(here),
                stop_after=stop_after,
                record=record,
            )
        )
    columns = {f.name: [getattr(part, f.name) for part in parts] for f in fields(Rollout)}
    return Rollout(**{name: torch.cat(column) for name, column in columns.items()})


def write_completions(
    denoiser: RolloutDenoiser, sampler: Sampler, loaded: LoadedModel, rows: Rows, **how: Any
) -> Completions:
    """One completion per row, from the prompt alone; `how` is as in `write`."""
    return completed(loaded, rows, write(denoiser, sampler, loaded, rows, **how))


def completed(loaded: LoadedModel, rows: Rows, rollout: Rollout) -> Completions:
    """A finished rollout after its prompts."""
    maps = {
        "step_map": rollout.step_map,
        "order_map": rollout.order_map,
        "block_map": rollout.block_map,
        "rollout_logp": rollout.logp,
        "entropy": rollout.entropy,
    }
    return completions(loaded, rows, rollout.completion_ids, nfe=rollout.nfe, **maps)


def completions(
    loaded: LoadedModel,
    rows: Rows,
    completion_ids: Int[Tensor, "B L"],
    *,
    nfe: Int[Tensor, " B"] | None = None,
    **maps: Tensor | None,
) -> Completions:
    """Canvases after the rows' prompts; `maps` are further fields of `Sequences`."""
    device = completion_ids.device
    prompts = tokenize_prompts(loaded.tokenizer, [row["prompt"] for row in rows], loaded.pad_id)
    mask = up_to_stop(completion_ids, loaded.stop_ids)
    return Completions(
        sequences=Sequences(
            prompt_ids=prompts.ids.to(device),
            prompt_mask=prompts.mask.to(device),
            completion_ids=completion_ids,
            completion_mask=mask,
            **maps,
        ),
        texts=decode(loaded.tokenizer, completion_ids, mask),
        nfe=torch.zeros_like(completion_ids[:, 0]) if nfe is None else nfe,
    )
