"""Completions of a prompt branch from each other, which credits every part of the writing apart.

    The T steps are cut into D equal parts. All b^D completions start from one empty canvas; after
    each part but the last, every canvas is continued in b ways.

    V(node) = mean reward of the completions below it
    A_l     = advantage of V(node) among its b siblings,   node: what wrote token l

Siblings differ in one part only, so what they gain over each other is that part's doing. With
`advantage: {baseline: leave_one_out, scale: none}`, A is the value less the mean of the siblings'.
`trajectory` with segments D scores each part from the canvas that it was written on.

Paper     d-TreeRPO, arXiv:2512.09675 (D = 2, b = 4)
Note      A token near the root is in many completions, and learned from in each. All parts then
          weigh the same, which is the policy gradient (`weight: path`). The released code takes
          every node once, so that parts near the leaves weigh more (`weight: node`).

Shapes: B completions of whole groups, L completion tokens.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from estimators import stable_seed
from rl.rollouts import completed
from rl.samplers import Rollout, Sampler

from .base import Rollouts, RolloutScheme, Window


@dataclass(frozen=True, kw_only=True)
class Tree(RolloutScheme):
    """
    depth: D. branching: b; trainer.num_generations is b to the power of D.
    weight: learn from a part in every completion that has it, or as much from each node.
    """

    paper = "d-TreeRPO, arXiv:2512.09675"
    changes = "completions branch while they are written; tokens are credited by branch"
    whole_groups = True

    depth: int = 2
    branching: int = 4
    weight: Literal["path", "node"] = "path"

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ValueError(f"depth is {self.depth}; use at least 1, which branches at the start")
        if self.branching < 2:
            raise ValueError(f"branching is {self.branching}; use at least 2, to have siblings")

    def __call__(self, window: Window) -> Rollouts:
        rollout = self._grow(window)
        written = completed(window.loaded, window.rows, rollout)
        rewards = window.grade(window.rows, written)
        return Rollouts(
            rows=window.rows,
            keys=window.keys,
            completions=written,
            advantages=self.credit(rewards, self._level(rollout, window), window),
            rewards=rewards,
        )

    def validate(self, *, num_generations: int, length: int, sampler: Sampler | None) -> None:
        leaves = self.branching**self.depth
        if num_generations != leaves:
            raise ValueError(
                f"depth {self.depth} and branching {self.branching} give {leaves} completions per "
                f"prompt, but trainer.num_generations is {num_generations}; make them equal"
            )
        if sampler is not None and sampler.rule == "threshold":
            raise ValueError(
                "a tree branches at fixed steps, and threshold decoding has none; use another "
                "sampler"
            )
        if sampler is not None and sampler.steps < self.depth:
            raise ValueError(
                f"sampler.steps is {sampler.steps}, fewer than depth {self.depth}; every part "
                "needs at least one step"
            )

    def credit(
        self, rewards: Float[Tensor, " B"], level: Int[Tensor, "B L"], window: Window
    ) -> Float[Tensor, "B L"]:
        """level: the part, from 0, in which each token was written."""
        levels: list[Tensor] = []
        for part in range(self.depth):
            below = self._leaves(part)
            advantages = window.compare(rewards.view(-1, below).nanmean(1), self.branching)
            if self.weight == "node":
                advantages = advantages / below
            levels.append(advantages.repeat_interleave(below))
        return torch.stack(levels, dim=1).gather(1, level.to(rewards.device))

    def _grow(self, window: Window) -> Rollout:
        """Part by part, one row per node; a node's name is that of the first leaf below it."""
        assert window.sampler is not None
        rollout: Rollout | None = None
        for part in range(self.depth):
            below = self._leaves(part)
            nodes = torch.arange(0, len(window.rows), below).tolist()
            if rollout is not None:
                parents = torch.arange(len(nodes), device=window.device) // self.branching
                rollout = rollout.rows(parents)
            rollout = window.write(
                [window.rows[i] for i in nodes],
                [stable_seed("tree", part, *window.keys[i]) for i in nodes],
                start=rollout,
                stop_after=-(-window.sampler.steps * (part + 1) // self.depth),
            )
        assert rollout is not None
        return rollout

    def _leaves(self, part: int) -> int:
        """Completions below a node that wrote this part."""
        return self.branching ** (self.depth - 1 - part)

    def _level(self, rollout: Rollout, window: Window) -> Int[Tensor, "B L"]:
        assert window.sampler is not None
        return rollout.step_map * self.depth // window.sampler.steps
