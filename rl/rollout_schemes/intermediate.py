"""What the policy foresees while it writes is graded too, and learned from step by step.

    x_t  completion foreseen in step t: what is visible, and a proposal for every masked position
    r_t  its reward;  r_0 = 0 before the first of the graded steps t = 1 .. k

    G_t  = r_t - r_(t-1) + mean of r_(t+1) .. r_k          (r_k for the last)
    A_t  = advantage of G_t among the same step of the prompt's completions

Each x_t becomes a text of its own, in which what was visible is fixed and the proposals are
scored, all at once: by `predicted_x0`, which weighs them as published, or by `mean_field`. A
prompt's completions are learned from in the same `kept` steps, those with the largest sum of |A_t|.

Paper     MDPO, arXiv:2508.13148 (every step graded, 8 to 16 kept, advantage as group mean and std)
Note      The released code takes the sum of |A_t| over a rank's batch instead of a prompt's
          completions.

Shapes: B completions, P graded steps, K kept ones, L completion tokens; R = B * K texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from estimators import stable_seed
from rl.rollouts import Completions, completions
from rl.samplers import Rollout, Sampler

from .base import Rollouts, RolloutScheme, Window


@dataclass(frozen=True, kw_only=True)
class Intermediate(RolloutScheme):
    """
    graded: steps whose completions are graded, spread evenly up to the last; None is every step.
    kept: of these, steps that a completion is learned from.
    """

    paper = "MDPO, arXiv:2508.13148"
    changes = "foreseen completions are graded; each is a text to learn from, by what it gained"

    graded: int | None = None
    kept: int = 8

    def __post_init__(self) -> None:
        if self.kept < 1:
            raise ValueError(f"kept is {self.kept}; use at least 1 step")
        if self.graded is not None and self.graded < self.kept:
            raise ValueError(
                f"graded is {self.graded} and kept is {self.kept}; only graded steps can be kept"
            )

    @property
    def rows_per_completion(self) -> int:
        return self.kept

    def __call__(self, window: Window) -> Rollouts:
        assert window.sampler is not None
        steps = self.steps(window.sampler.steps)
        seeds = [stable_seed("rollout", *key) for key in window.keys]
        rollout = window.write(window.rows, seeds, record=steps)
        rows = [row for row in window.rows for _ in steps]
        foreseen = _foreseen(rollout, steps, window)
        rewards_BP = window.grade(rows, foreseen).view(len(window.rows), -1)
        advantages_BP = self.credit(rewards_BP, window)
        kept_BK = self.select(advantages_BP, window)
        texts = (torch.arange(len(kept_BK))[:, None] * len(steps) + kept_BK).flatten()
        sequences = foreseen.sequences.rows(texts.to(window.device))
        return Rollouts(
            rows=[rows[i] for i in texts],
            keys=[
                (*key, steps[i])
                for key, kept in zip(window.keys, kept_BK.tolist(), strict=True)
                for i in kept
            ],
            completions=Completions(
                sequences=sequences,
                texts=[foreseen.texts[i] for i in texts],
                nfe=rollout.nfe.repeat_interleave(self.kept),
            ),
            advantages=advantages_BP.flatten()[texts],
            rewards=rewards_BP.flatten()[texts],
            metrics={"reward/finished": rewards_BP[:, -1]},
        )

    def steps(self, total: int) -> list[int]:
        """The graded steps, from 0, of so many; the last one's completion is the finished one."""
        count = self.graded or total
        return [total * (i + 1) // count - 1 for i in range(count)]

    def credit(self, rewards: Float[Tensor, "B P"], window: Window) -> Float[Tensor, "B P"]:
        gain = rewards.diff(dim=1, prepend=torch.zeros_like(rewards[:, :1]))
        P = rewards.shape[1]
        later = [rewards[:, t + 1 :].nanmean(1) for t in range(P - 1)] + [rewards[:, -1]]
        returns = gain + torch.stack(later, dim=1)
        return torch.stack(
            [window.compare(returns[:, t], window.num_generations) for t in range(P)], dim=1
        )

    def select(self, advantages: Float[Tensor, "B P"], window: Window) -> Int[Tensor, "B K"]:
        """Numbers of the kept steps, rising; the same for all completions of a prompt."""
        everyone = window.gather(advantages)
        groups = everyone.abs().view(-1, window.num_generations, everyone.shape[1]).sum(1)
        kept = groups.argsort(dim=-1, descending=True, stable=True)[:, : self.kept].sort(-1).values
        return window.mine(kept.repeat_interleave(window.num_generations, dim=0))

    def validate(self, *, num_generations: int, length: int, sampler: Sampler | None) -> None:
        steps = 0 if sampler is None else sampler.steps
        if max(self.kept, self.graded or 0) > steps:
            name = "kept" if self.kept > steps else "graded"
            raise ValueError(
                f"{name} is {getattr(self, name)}, but sampler.steps is {steps}; use at most "
                f"{steps}"
            )


def _foreseen(rollout: Rollout, steps: Sequence[int], window: Window) -> Completions:
    """All graded completions, those of a rollout next to each other."""
    steps_P1 = torch.tensor(steps, device=rollout.step_map.device)[:, None]
    visible_BPL = rollout.step_map[:, None] < steps_P1
    return completions(
        window.loaded,
        [row for row in window.rows for _ in steps],
        rollout.predictions.flatten(0, 1),
        step_map=torch.where(visible_BPL, -1, 0).flatten(0, 1),
        rollout_logp=rollout.prediction_logp.flatten(0, 1),
    )
