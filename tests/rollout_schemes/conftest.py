"""A tiny model that writes on real canvases, and a window over a few rows for it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from rl.advantages import GroupAdvantage
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel, load
from rl.models.source import ModelSource
from rl.rollout_schemes import Window
from rl.rollouts import write
from rl.samplers import LowConfidence, Rollout, Sampler

LENGTH = 12
PLAIN = GroupAdvantage(baseline="mean", scale="none")
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}


@pytest.fixture(scope="session")
def loaded() -> LoadedModel:
    return load(ModelSource(name="bert", config=SIZES), training=False)


def rows_of(*prompts: str, group: int, **columns: Any) -> list[dict[str, Any]]:
    return [{"id": prompt, "prompt": prompt, **columns} for prompt in prompts for _ in range(group)]


NewWindow = Callable[..., Window]


@pytest.fixture
def window(loaded: LoadedModel) -> NewWindow:
    """`reward(row, text)` grades; the sampler is low_confidence in 4 steps."""

    def new(
        rows: Sequence[dict[str, Any]],
        *,
        group: int,
        reward: Callable[[dict[str, Any], str], float] = lambda row, text: 0.0,
        advantage: GroupAdvantage = PLAIN,
        sampler: Sampler | None = None,
        batch_size: int | None = None,
    ) -> Window:
        sampler = sampler or LowConfidence(steps=4)

        def grade(graded: Sequence[dict[str, Any]], completions: Any) -> Tensor:
            pairs = zip(graded, completions.texts, strict=True)
            return torch.tensor([reward(row, text) for row, text in pairs])

        def write_here(some: Sequence[dict[str, Any]], seeds: Sequence[int], **how: Any) -> Rollout:
            return write(
                ModelDenoiser.of(loaded),
                sampler,
                loaded,
                some,
                length=LENGTH,
                seeds=seeds,
                device=torch.device("cpu"),
                batch_size=batch_size,
                **how,
            )

        return Window(
            rows=rows,
            keys=[(0, row["id"], 7, i % group) for i, row in enumerate(rows)],
            num_generations=group,
            length=LENGTH,
            rank=0,
            processes=1,
            loaded=loaded,
            device=torch.device("cpu"),
            sampler=sampler,
            write=write_here,
            grade=grade,
            gather=lambda values: values,
            advantage=advantage,
        )

    return new


def on_rank(window: Window, rank: int, everyone: Tensor) -> Window:
    """The window of one of two ranks, to which `gather` shows `everyone`."""
    return replace(window, rank=rank, processes=2, gather=lambda values: everyone)
