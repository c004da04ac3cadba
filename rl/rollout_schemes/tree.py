"""Completions of a prompt branch from each other, which credits every part of the writing apart.

    The T steps are cut into D parts. All completions start from one empty canvas; at the start of
    part d, every canvas is continued in b_d ways.

    V(node) = mean reward of the completions below it
    A_l     = advantage of V(node) among its b_d siblings,   node: what wrote token l

A standard deviation that advantages are divided by is that of all completions of the prompt, for
every part: parts that decide little are not blown up.

Siblings differ in one part only, so what they gain over each other is that part's doing. With
`advantage: {baseline: leave_one_out, scale: none}`, A is the value less the mean of the siblings'.
`trajectory` with segments D scores each part from the canvas that it was written on; with segments
null, every step.

A late part is cheap: siblings share the canvases before it, and equal inputs are run once, when
writing and when scoring. If the last part is the last step alone, its siblings cost nothing but
their grading: the reward of one canvas is averaged over many last steps. That is the best gradient
for its cost that we know (estimators/README.md).

Paper     d-TreeRPO, arXiv:2512.09675 (branching 4, 4; equal parts)
Note      A token near the root is in many completions, and learned from in each. All parts then
          weigh the same, which is the policy gradient (`weight: path`). The released code takes
          every node once, so that parts near the leaves weigh more (`weight: node`).

Shapes: B completions of whole groups, L completion tokens.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from estimators import stable_seed
from rl.rollouts import completed
from rl.samplers import Rollout, Sampler

from .base import Rollouts, RolloutScheme, Share, Window


@dataclass(frozen=True, kw_only=True)
class Tree(RolloutScheme):
    """
    branching: b_1 .. b_D; their product is trainer.num_generations.
    parts: relative lengths of the D parts, in steps; null: equal ones; last_step: the last part is
        the last step, the others are equal.
    weight: learn from a part in every completion that has it, or as much from each node.
    """

    paper = "d-TreeRPO, arXiv:2512.09675"
    changes = "completions branch while they are written; tokens are credited by branch"
    whole_groups = True
    per_token = True

    branching: tuple[int, ...] = (4, 4)
    parts: tuple[int, ...] | Literal["last_step"] | None = None
    weight: Literal["path", "node"] = "path"

    def __post_init__(self) -> None:
        if not self.branching or min(self.branching) < 2:
            raise ValueError(
                f"branching is {list(self.branching)}; use one number for each part, each at least "
                "2, to have siblings"
            )
        parts = self.parts
        if isinstance(parts, tuple) and (len(parts) != len(self.branching) or min(parts) < 1):
            raise ValueError(
                f"parts are {list(parts)}; use one length, at least 1, for each of the "
                f"{len(self.branching)} numbers of branching, or null for equal parts"
            )

    def __call__(self, window: Window) -> Rollouts:
        rollout = self.grow(window)
        written = completed(window.loaded, window.rows, rollout)
        rewards = window.grade(window.rows, written)
        return Rollouts(
            rows=window.rows,
            keys=window.keys,
            completions=written,
            advantages=self.credit(rewards, self.level(rollout, window), window),
            rewards=rewards,
        )

    def validate(self, *, num_generations: int, length: int, sampler: Sampler | None) -> None:
        leaves = math.prod(self.branching)
        if num_generations != leaves:
            raise ValueError(
                f"branching {list(self.branching)} gives {leaves} completions per prompt, but "
                f"trainer.num_generations is {num_generations}; make them equal, for example by "
                f"trainer.num_generations={leaves}"
            )
        if sampler is not None and sampler.rule == "threshold":
            raise ValueError(
                "a tree branches at fixed steps, and threshold decoding has none; use another "
                "sampler"
            )
        if sampler is not None:
            ends = [0, *self.ends(sampler.steps)]
            if any(a >= b for a, b in itertools.pairwise(ends)):
                raise ValueError(
                    f"sampler.steps is {sampler.steps}, and the parts would end after steps "
                    f"{ends[1:]}; every part needs at least one step"
                )

    def credit(
        self, rewards: Float[Tensor, " B"], level: Int[Tensor, "B L"], share: Share
    ) -> Float[Tensor, "B L"]:
        """level: the part, from 0, in which each token was written."""
        spread = share.spread(rewards, math.prod(self.branching))
        levels: list[Tensor] = []
        for part, branches in enumerate(self.branching):
            below = self._leaves(part)
            values = rewards.view(-1, below).nanmean(1)
            advantages = share.compare(values, branches, spread.view(-1, below)[:, 0])
            if self.weight == "node":
                advantages = advantages / below
            levels.append(advantages.repeat_interleave(below))
        return torch.stack(levels, dim=1).gather(1, level.to(rewards.device))

    def grow(self, share: Share) -> Rollout:
        """Part by part, one row per node; a node's name is that of the first leaf below it."""
        assert share.sampler is not None
        rollout: Rollout | None = None
        ends = self.ends(share.sampler.steps)
        for part, branches in enumerate(self.branching):
            below = self._leaves(part)
            nodes = torch.arange(0, len(share.rows), below).tolist()
            if rollout is not None:
                parents = torch.arange(len(nodes), device=share.device) // branches
                rollout = rollout.rows(parents)
            rollout = share.write(
                [share.rows[i] for i in nodes],
                [stable_seed("tree", part, *share.keys[i]) for i in nodes],
                start=rollout,
                stop_after=ends[part],
            )
        assert rollout is not None
        return rollout

    def _leaves(self, part: int) -> int:
        """Completions below a node that wrote this part."""
        return math.prod(self.branching[part + 1 :])

    def ends(self, steps: int) -> list[int]:
        """Steps that are done at the end of each part."""
        if self.parts == "last_step":
            D = len(self.branching) - 1
            return [-(-(steps - 1) * d // D) for d in range(1, D + 1)] + [steps]
        parts = self.parts or (1,) * len(self.branching)
        return [-(-steps * done // sum(parts)) for done in itertools.accumulate(parts)]

    def level(self, rollout: Rollout, share: Share) -> Int[Tensor, "B L"]:
        assert share.sampler is not None
        ends = torch.tensor(self.ends(share.sampler.steps), device=rollout.step_map.device)
        part_BL = torch.searchsorted(ends, rollout.step_map.contiguous(), right=True)
        return part_BL.clamp(max=len(self.branching) - 1)  # some models write a few steps more
