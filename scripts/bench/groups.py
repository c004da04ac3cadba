"""What a group of completions is worth, and what it costs in all: writing, scoring, learning.

A group of G completions of one prompt gives one gradient, by the rollout scheme's own advantages
and the estimator's own terms:

    g = 1/G  sum_i sum_l A_il  d/d theta (term l of the estimate of log p(o_i))

    relvar     (E |g|^2 - |E g|^2) / |E g|^2, of one group
    cost       forward passes of a group: to write it, and 3 for each input scored with its backward
               pass. Equal inputs of a group are run once.
    cos @ C    cosine / sqrt(1 + relvar cost / C): what C forward passes can reach

Groups are written by the real samplers and schemes on the tiny network; the true gradient is known
(`measure.py`). A tree whose last part is the last step averages the reward of a canvas over many
last steps at no cost but their grading.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from estimators import Estimator, Sequences
from rl.advantages import GroupAdvantage
from rl.rollout_schemes import Share, Tree
from rl.samplers import Rollout, Sampler

from .direction import direction
from .problem import Problem, solve
from .tables import BatchRandom
from .tiny import PROMPT, L, TinyDenoiser, V

BACKWARD = 3  # a forward pass with its backward pass, in forward passes
ADVANTAGE = GroupAdvantage(baseline="leave_one_out", scale="none")


@dataclass(frozen=True, kw_only=True)
class GroupRow:
    """One estimator with one sampler and one way of branching; numbers are per group."""

    estimator: str
    sampler: str
    rollout: str
    completions: int
    cosine: float
    cosine_error: float
    relvar: float
    rollout_forwards: float
    scored_forwards: float

    @property
    def cost(self) -> float:
        return self.rollout_forwards + BACKWARD * self.scored_forwards

    def reachable(self, budget: float) -> float:
        """Cosine of what so many forward passes, all told, buy."""
        return self.cosine / math.sqrt(1 + self.relvar * self.cost / budget)


def bench_groups(
    estimators: Mapping[str, Estimator],
    samplers: Mapping[str, Sampler],
    trees: Mapping[str, Tree],
    denoiser: TinyDenoiser,
    reward: Float[Tensor, " X"],
    *,
    groups: int = 3000,
    rounds: int = 10,
    seed: int = 0,
) -> list[GroupRow]:
    """Every estimator with every sampler and tree; `groups` groups in all, in equal rounds."""
    rows: list[GroupRow] = []
    for sampler_name, sampler in samplers.items():
        problem = solve(sampler_name, sampler, denoiser, reward)
        for tree_name, tree in trees.items():
            batches = [
                _write(tree, sampler, denoiser, reward, groups // rounds, seed * rounds + r)
                for r in range(rounds)
            ]
            for name, estimator in estimators.items():
                rows.append(
                    GroupRow(
                        estimator=name,
                        sampler=sampler_name,
                        rollout=tree_name,
                        completions=math.prod(tree.branching),
                        rollout_forwards=sum(b.forwards for b in batches) / rounds,
                        **_gradients(estimator, problem, denoiser, batches),
                    )
                )
    return rows


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """Groups, completion by completion. forwards: to write one group."""

    sequences: Sequences
    advantages: Float[Tensor, "B L"]
    group: Tensor
    forwards: float


def _prompts(group: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Prompts whose padding carries the number of the group (`tables.py`)."""
    ids = torch.tensor([(0, *PROMPT)]).repeat(len(group), 1)
    ids[:, 0] = torch.tensor(group)
    return ids, torch.tensor([False] + [True] * len(PROMPT)).expand(len(group), -1)


def _write(
    tree: Tree,
    sampler: Sampler,
    denoiser: TinyDenoiser,
    reward: Float[Tensor, " X"],
    groups: int,
    seed: int,
) -> _Batch:
    size = math.prod(tree.branching)
    rows = [{"group": i // size} for i in range(groups * size)]
    denoiser.forget()

    def write(rows: Sequence[dict[str, Any]], seeds: Sequence[int], **how: Any) -> Rollout:
        ids, mask = _prompts([row["group"] for row in rows])
        return sampler(denoiser, ids, mask, L, seeds, **how)

    share = Share(
        rows=rows,
        keys=[(seed, i // size, 0, i % size) for i in range(len(rows))],
        num_generations=size,
        rank=0,
        processes=1,
        device=torch.device("cpu"),
        sampler=sampler,
        write=cast(Any, write),
        gather=lambda x: x,
        advantage=ADVANTAGE,
    )
    rollout = tree.grow(share)
    group = torch.arange(len(rows)) // size
    forwards = float(denoiser.forwards(torch.arange(groups)).sum()) / groups
    number = (rollout.completion_ids * V ** torch.arange(L - 1, -1, -1)).sum(-1)
    ids, mask = _prompts(group.tolist())
    sequences = Sequences(
        prompt_ids=ids,
        prompt_mask=mask,
        completion_ids=rollout.completion_ids,
        completion_mask=torch.ones_like(rollout.completion_ids, dtype=torch.bool),
        step_map=rollout.step_map,
        order_map=rollout.order_map,
        block_map=rollout.block_map,
        rollout_logp=rollout.logp,
        entropy=rollout.entropy,
    )
    advantages = tree.credit(reward[number], tree.level(rollout, share), share)
    return _Batch(sequences=sequences, advantages=advantages, group=group, forwards=forwards)


def _gradients(
    estimator: Estimator, problem: Problem, denoiser: TinyDenoiser, batches: Sequence[_Batch]
) -> dict[str, float]:
    means: list[Tensor] = []
    square = scored = 0.0
    for number, batch in enumerate(batches):
        groups = int(batch.group[-1]) + 1
        size = len(batch.group) // groups
        denoiser.forget()
        seqs = batch.sequences
        plan = estimator.plan(seqs, BatchRandom(len(batch.group), number))
        estimate = estimator(denoiser, seqs, plan, problem.decoder.decoding)
        value_B = (estimate.token_logp * estimate.token_weight * batch.advantages).sum(-1)
        if estimate.choice_logp is not None:  # a step has the advantage of its tokens
            assert estimate.view is not None
            step_BM = torch.zeros_like(estimate.choice_logp)
            step_BM = step_BM.scatter_reduce(
                1, estimate.view, batch.advantages.to(step_BM), "mean", include_self=False
            )
            value_B = value_B + (estimate.choice_logp * step_BM).sum(-1)
        (value_B.sum() / size).backward()
        each = denoiser.gradients(groups)
        means.append(each.total(denoiser.jacobian, torch.ones(groups).double()) / groups)
        norms = torch.linalg.vector_norm(each.each(denoiser.jacobian32), dim=-1).double()
        square += float(norms.square().mean()) / len(batches)
        scored += float(denoiser.forwards(torch.arange(groups)).sum()) / groups / len(batches)
    found = direction(torch.stack(means), problem.gradient)
    return {
        "cosine": found.cosine,
        "cosine_error": found.error,
        "relvar": square / found.square - 1,
        "scored_forwards": scored,
    }
