"""One rollout: completions and their advantages, then masks, old and reference log-probs.

rollout    scheme(window)                     completions by the sampler, rewards, advantages
plan       estimator.plan(sequences)          where the masks go, once per pass
old, ref   estimator(model, sequences, plan)  without gradients, same plan
reweigh    objective.reweigh(advantages)      where the objective weighs by old and reference
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from estimators import Estimate, Estimator, MaskPlan, RowRandom, Sequences, stable_seed
from rl.advantages import GroupAdvantage
from rl.diagnostics import entropies
from rl.experience import Experience
from rl.gathered import over_ranks
from rl.grading import GRADING, Grading
from rl.grpo_config import DiffusionGRPOConfig
from rl.metrics import Metrics
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel
from rl.objectives import Objective
from rl.reference import Reference
from rl.rollout_schemes import Rollouts, RolloutScheme, Window
from rl.rollouts import write
from rl.samplers import Rollout, Sampler
from rl.scoring import Scorer

Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Roller:
    """The parts that a rollout is made with.

    denoiser: opens the current policy for writing; every rank enters and leaves together.
    """

    args: DiffusionGRPOConfig
    loaded: LoadedModel
    scheme: RolloutScheme
    sampler: Sampler | None
    estimator: Estimator
    objective: Objective
    advantage: GroupAdvantage
    grading: Grading
    scorer: Scorer
    reference: Reference | None
    accelerator: Accelerator
    metrics: Metrics
    denoiser: Callable[[], AbstractContextManager[ModelDenoiser]]

    def __call__(self, rows: Rows, model: nn.Module, state: Any) -> Experience:
        """`state` is the Trainer's."""
        start, graded = time.perf_counter(), self.metrics.total(*GRADING)
        self.scorer.take_forwards()  # of evaluations
        rollouts = self.scheme(self._window(rows, state))
        self.grading.record(rollouts, state.global_step, state.log_history)
        rolled = time.perf_counter()
        graded = self.metrics.total(*GRADING) - graded
        self.metrics.add("forwards/rollout", self.scorer.take_forwards() / len(rows))
        experience = self._scored(rollouts, model)
        self.metrics.add("time/rollout", rolled - start - graded)
        self.metrics.add("time/score", time.perf_counter() - rolled)
        self.metrics.add("forwards/score", self.scorer.take_forwards() / len(rows))
        self.metrics.add_all("rollout/nfe", rollouts.completions.nfe)
        for name, values in rollouts.metrics.items():
            self.metrics.add_all(name, values)
        for name, sums in entropies(experience.sequences).items():
            self.metrics.add_sums(name, sums)
        return experience

    def _window(self, rows: Rows, state: Any) -> Window:
        shape, rank = self.args.shape, self.accelerator.process_index
        numbers = [rank * len(rows) + i for i in range(len(rows))]
        return Window(
            rows=rows,
            keys=[
                (self.args.seed, row["id"], state.global_step, number % shape.num_generations)
                for row, number in zip(rows, numbers, strict=True)
            ],
            num_generations=shape.num_generations,
            length=shape.length,
            rank=rank,
            processes=self.accelerator.num_processes,
            loaded=self.loaded,
            device=self.accelerator.device,
            sampler=self.sampler,
            write=self._write,
            grade=partial(self.grading, trainer_state=state),
            gather=partial(over_ranks, self.accelerator),
            advantage=self.advantage,
        )

    def _write(self, rows: Rows, seeds: Sequence[int], **how: Any) -> Rollout:
        assert self.sampler is not None, "this scheme writes, and the recipe has no sampler"
        with self.denoiser() as denoiser:
            return write(
                denoiser,
                self.sampler,
                self.loaded,
                rows,
                length=self.args.shape.length,
                seeds=seeds,
                device=self.accelerator.device,
                batch_size=self.args.rollout_batch_size,
                **how,
            )

    def _scored(self, rollouts: Rollouts, model: nn.Module) -> Experience:
        sequences = rollouts.completions.sequences
        passes = self.args.plans_per_rollout
        plans = tuple(self._plan(sequences, rollouts.keys, k, passes) for k in range(passes))
        old = self._old(model, sequences, plans)
        ref = self._reference(model, sequences, plans)
        device = self.accelerator.device
        groups = [stable_seed(*key[:3]) for key in rollouts.keys]  # all but the generation
        return Experience(
            sequences=sequences,
            plans=plans,
            old=old,
            ref=ref,
            scored=self.estimator.scored(sequences),
            advantages=self._reweighed(rollouts.advantages.to(device), old, ref),
            groups=torch.tensor(groups, device=device),
        )

    def _plan(
        self, sequences: Sequences, keys: Sequence[tuple[Any, ...]], index: int, passes: int
    ) -> MaskPlan:
        random = RowRandom(
            rows=[stable_seed("plan", index, *key) for key in keys],
            groups=[stable_seed("plan", index, *key[:3]) for key in keys],
            rollouts=[stable_seed("plans", *key) for key in keys],
            places=[key[3] for key in keys],
            size=self.args.shape.num_generations,
            pass_index=index,
            passes=passes,
        )
        return self.estimator.plan(sequences, random)

    def _old(
        self, model: nn.Module, sequences: Sequences, plans: Sequence[MaskPlan]
    ) -> tuple[Estimate, ...]:
        """Not needed where old is new: every update directly follows its rollout."""
        objective = self.objective
        later = objective.uses_old and not self.args.rollout_is_on_policy
        if not (later or objective.reweighs or objective.has_statistic):
            return ()
        return self.scorer.estimate_all(model, sequences, plans)

    def _reference(
        self, model: nn.Module, sequences: Sequences, plans: Sequence[MaskPlan]
    ) -> tuple[Estimate, ...]:
        if self.reference is None:
            return ()
        with self.reference.active(model, self.accelerator) as reference:
            return self.scorer.estimate_all(reference, sequences, plans)

    def _reweighed(
        self, advantages: Tensor, old: Sequence[Estimate], ref: Sequence[Estimate]
    ) -> Tensor:
        """By the first plan's log-probs, of whole groups, so from all ranks."""
        if not self.objective.reweighs:
            return advantages
        gather = partial(over_ranks, self.accelerator)
        reweighed = self.objective.reweigh(
            gather(advantages),
            gather(old[0].sequence_logp),
            gather(ref[0].sequence_logp) if ref else None,
            self.args.shape.num_generations,
        )
        first = self.accelerator.process_index * len(advantages)
        return reweighed[first : first + len(advantages)]
