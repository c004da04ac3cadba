"""One micro-batch of an optimizer step: current log-probs, objective, gradient.

update     estimator(model, sequences, plan) -> objective -> backward
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from estimators import Estimate, Estimator, Scores
from rl.backward import Backward, check_mode, choose_mode
from rl.diagnostics import agreement, ratios
from rl.experience import Experience, MicroBatch
from rl.gathered import summed
from rl.grpo_config import DiffusionGRPOConfig
from rl.metrics import Metrics, Sums, quotient
from rl.objectives import Objective, Totals
from rl.scoring import Scorer

Pass = tuple[Experience, int]  # a micro-batch, and which pass over its rollout this is


@dataclass(frozen=True, kw_only=True)
class Updater:
    """views: of a completion; ranks must agree on the backward mode, so it is not a plan's."""

    args: DiffusionGRPOConfig
    estimator: Estimator
    objective: Objective
    scorer: Scorer
    accelerator: Accelerator
    metrics: Metrics
    views: int

    def __post_init__(self) -> None:
        check_mode(
            self.args.backward,
            linear=self._linear(self.args.rollout_is_on_policy),
            dropout=not self.args.disable_dropout,
        )

    def totals(self, step: Sequence[Pass], model: nn.Module, *, on_policy: bool) -> Totals:
        """Of an optimizer step, over its micro-batches and all ranks."""
        mine = [
            sum(float(experience.scored.sum()) for experience, _ in step),
            float(sum(len(experience) for experience, _ in step)),
            self._statistic(step, model, on_policy=on_policy),
        ]
        tokens, sequences, statistic = summed(
            self.accelerator, torch.tensor(mine, dtype=torch.float64)
        ).tolist()
        return Totals(
            tokens=tokens,
            sequences=int(sequences),
            length=self.args.shape.length,
            statistic=statistic if self.objective.has_statistic else None,
        )

    def loss(self, model: nn.Module, batch: MicroBatch) -> Tensor:
        """Its value is the true loss; its backward pass completes the gradient (`backward.py`)."""
        experience, counts = batch.experience, True
        if self._skips:
            experience = experience.contributing(whole_groups=self.objective.whole_groups)
            counts = bool(experience.advantages.any())  # else a row stands in for none
        k = batch.iteration % self.args.plans_per_rollout
        plan, stored = experience.plans[k], experience.old[k] if experience.old else None

        def evaluate(scores: Scores, unknown: bool) -> tuple[Tensor, dict[str, Sums]]:
            new = self.scorer.combine(experience.sequences, plan, scores)
            alike = unknown and batch.on_policy  # stand-ins for scores not yet known
            old = new.detach() if alike or stored is None else stored
            out = self.objective(
                new,
                old,
                experience.ref[k] if experience.ref else None,
                experience.advantages,
                experience.scored,
                batch.totals,
                experience.groups,
            )
            found = {name: quotient(*pair) for name, pair in out.metrics.items()}
            if batch.on_policy or stored is not None:
                found |= ratios(new, old, plan, experience.scored)
            if batch.on_policy:
                found |= agreement(new, experience.sequences, experience.scored)
            # DDP and DeepSpeed average over ranks
            return out.loss * self.accelerator.num_processes * counts, found

        mode = choose_mode(
            self.args.backward,
            views=self.views,
            linear=self._linear(batch.on_policy),
            dropout=not self.args.disable_dropout,
        )
        backward = Backward(scorer=self.scorer, accelerator=self.accelerator)
        self.scorer.take_forwards()  # of `totals`
        loss, found = backward(mode, model, experience.sequences, plan, evaluate)
        per_view = {"joint": 3, "linear": 3, "replay": 2}[mode]  # replay counts each view twice
        rows = len(batch.experience)
        self.metrics.add("forwards/update", per_view * self.scorer.take_forwards() / rows)
        for name, sums in found.items():
            self.metrics.add_sums(name, Sums(sums.values * counts, sums.formula))
        return loss

    def _linear(self, on_policy: bool) -> bool:
        return self.estimator.linear and self.objective.linear(on_policy)

    @property
    def _skips(self) -> bool:
        """Whether completions without an advantage may be left out."""
        inert = self.objective.zero_is_silent and not self.objective.distill
        return self.args.skip_zero_advantage and inert

    def _statistic(self, step: Sequence[Pass], model: nn.Module, *, on_policy: bool) -> float:
        """Of all rows: those without an advantage count in a normaliser."""
        if not self.objective.has_statistic:
            return 0.0
        total = 0.0
        for experience, iteration in step:
            k = iteration % self.args.plans_per_rollout
            new = old = experience.old[k]
            if not on_policy:
                (new,) = self.scorer.estimate_all(
                    model, experience.sequences, [experience.plans[k]]
                )
            ref: Estimate | None = experience.ref[k] if experience.ref else None
            total += self.objective.step_statistic(
                new, old, ref, experience.advantages, experience.scored
            )
        return total


def check_finite(what: str, value: float, step: int) -> None:
    """Raise where a run has diverged: every later number would be NaN."""
    if not math.isfinite(value):
        raise FloatingPointError(
            f"the {what} of optimizer step {step + 1} is {value}: the run has diverged. Go on from "
            "an earlier checkpoint with a lower trainer.learning_rate or trainer.max_grad_norm, or "
            "a lower objective.epsilon; fewer passes (trainer.num_iterations) also help"
        )
