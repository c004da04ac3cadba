"""The order in which prompts are visited, as a pure function of (seed, epoch).

Each prompt appears `num_generations` times in a row, and each window of prompts is repeated for
the passes that reuse its rollouts. A resumed run sees the same order as an uninterrupted one.
"""

from collections.abc import Iterator

import torch
from torch.utils.data import Sampler


class GroupSampler(Sampler[int]):
    """
    size: number of prompts.
    window: distinct prompts per rollout, over all ranks.
    repeats: how often a window is yielded (steps per generation x iterations).
    """

    def __init__(
        self,
        *,
        size: int,
        num_generations: int,
        window: int,
        repeats: int,
        shuffle: bool,
        seed: int,
    ) -> None:
        if size < window:
            raise ValueError(
                f"the task has {size} training prompts, but one rollout takes {window}; "
                "use more prompts or a smaller generation batch"
            )
        self.size, self.window, self.repeats = size, window, repeats
        self.num_generations, self.shuffle, self.seed = num_generations, shuffle, seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.size // self.window * self.window * self.num_generations * self.repeats

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        order = (
            torch.randperm(self.size, generator=generator)
            if self.shuffle
            else torch.arange(self.size)
        )
        for start in range(0, self.size - self.window + 1, self.window):
            window = (
                order[start : start + self.window].repeat_interleave(self.num_generations).tolist()
            )
            for _ in range(self.repeats):
                yield from window
