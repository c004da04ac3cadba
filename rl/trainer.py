"""GRPO for masked diffusion models, on transformers.Trainer.

One optimizer step:

    rollout    scheme(prompts) -> completions, their step map, rewards, advantages    rolling.py
    plan       estimator.plan(sequences)       where the masks go, once per pass      rolling.py
    old, ref   estimator(model, sequences, plan)   without gradients, same plan       rolling.py
    update     estimator(model, sequences, plan) -> objective -> backward             updating.py

There is no formula in this file: likelihoods are in `estimators`, losses in `rl.objectives`.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import Trainer

from estimators import PLAIN, Estimator
from rl.advantages import GroupAdvantage
from rl.checkpoints import checkpoint_folder, last_whole_checkpoint
from rl.experience import Experience, MicroBatch
from rl.gathered import generation_mode, one_gpu, summed
from rl.grading import GRADING, Grading
from rl.group_sampler import GroupSampler
from rl.grpo_config import DiffusionGRPOConfig
from rl.metrics import Metrics
from rl.models.denoiser import ModelDenoiser, switch_off_dropout
from rl.models.loading import LoadedModel
from rl.objectives import Objective, Totals
from rl.reference import Reference
from rl.reward_calls import RewardCalls
from rl.rolling import Roller
from rl.rollout_schemes import Independent, RolloutScheme
from rl.samplers import Sampler
from rl.scoring import Scorer
from rl.updating import Updater, check_finite
from rl.window_file import load_window, save_window, window_path

Rows = Sequence[dict[str, Any]]


class DiffusionGRPOTrainer(Trainer):
    """Trains `loaded.model` on `rows` (dicts with `id`, `prompt` and the columns of the rewards).

    scheme: where completions come from; `sampler` is None if it does not write any.
    frozen_reference: the reference policy when the objective uses one and the model has no
        adapter; by default a copy of the model.
    """

    args: DiffusionGRPOConfig
    model_wrapped: Any
    loss_is_scaled_for_ga = True  # losses are divided by the totals of the whole optimizer step
    _totals: Totals  # of the optimizer step

    def __init__(
        self,
        *,
        loaded: LoadedModel,
        args: DiffusionGRPOConfig,
        rows: Rows,
        sampler: Sampler | None,
        estimator: Estimator,
        objective: Objective,
        advantage: GroupAdvantage,
        rewards: RewardCalls,
        scheme: RolloutScheme | None = None,
        frozen_reference: nn.Module | None = None,
        callbacks: list[Any] | None = None,
    ) -> None:
        self.loaded, self.rows, self.shape = loaded, rows, args.shape
        self.sampler, self.estimator, self.objective = sampler, estimator, objective
        uses = objective.uses_reference
        self.reference = Reference(loaded.model, frozen_reference) if uses else None
        self.collected = Metrics()
        self._micro_step, self._window = 0, list[Experience]()
        self._losses: list[Tensor] = []  # of the optimizer step, on this rank
        self._checkpoint: str | None = None  # to go on from, until the first batch
        if args.disable_dropout:
            switch_off_dropout(loaded.model)
        args.remove_unused_columns = False
        one_gpu(args)
        super().__init__(
            model=loaded.model,
            args=args,
            data_collator=list,  # pyright: ignore[reportArgumentType]
            train_dataset=rows,  # pyright: ignore[reportArgumentType]
            processing_class=loaded.tokenizer,
            callbacks=callbacks,
        )
        if self.reference is not None:
            self.reference.prepare(self.accelerator)
        self.scorer = Scorer(
            loaded,
            estimator,
            self.accelerator,
            decoding=PLAIN if sampler is None else sampler.decoding(self.shape.length),
            batch_size=args.scoring_batch_size or args.per_device_train_batch_size,
        )
        self.grading = Grading(rewards, self.accelerator, self.collected)
        if args.log_completions:
            self.grading.log_to(Path(str(args.output_dir)) / "completions")
        self.roller = self._new_roller(scheme or Independent(), advantage)
        self.updater = self._new_updater()

    def _new_roller(self, scheme: RolloutScheme, advantage: GroupAdvantage) -> Roller:
        return Roller(
            args=self.args,
            loaded=self.loaded,
            scheme=scheme,
            sampler=self.sampler,
            estimator=self.estimator,
            objective=self.objective,
            advantage=advantage,
            grading=self.grading,
            scorer=self.scorer,
            reference=self.reference,
            accelerator=self.accelerator,
            metrics=self.collected,
            denoiser=self.denoiser,
        )

    def _new_updater(self) -> Updater:
        steps = self.shape.length if self.sampler is None else self.sampler.steps
        return Updater(
            args=self.args,
            estimator=self.estimator,
            objective=self.objective,
            scorer=self.scorer,
            accelerator=self.accelerator,
            metrics=self.collected,
            views=self.estimator.views(length=self.shape.length, steps=steps),
        )

    # --- data: windows of prompts, each repeated for the updates that reuse its rollouts

    def get_train_dataloader(self) -> DataLoader[Any]:
        order = GroupSampler(
            size=len(self.rows),
            num_generations=self.shape.num_generations,
            window=self.shape.prompts,
            repeats=self.shape.uses,
            shuffle=bool(self.args.shuffle_dataset),
            seed=self.args.seed,
        )
        loader = DataLoader(
            self.rows,  # pyright: ignore[reportArgumentType]
            batch_size=self._train_batch_size * self.shape.micro_batches,
            sampler=order,
            collate_fn=self.data_collator,
            drop_last=True,
        )
        return self.accelerator.prepare(loader)

    def _prepare_inputs(self, inputs: Rows) -> MicroBatch:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Roll out at the start of a window; else take the next micro-batch of the buffer."""
        if self._checkpoint is not None:
            self._go_on_from(Path(self._checkpoint))
        place, together = self._micro_step % self.shape.uses, self.args.gradient_accumulation_steps
        if place == 0:
            experience = self.roller(inputs, self.model_wrapped, self.state)
            self._window = experience.split(self.shape.micro_batches)
        on_policy = place < together  # still in the first optimizer step
        if place % together == 0:
            step = [self._pass(i) for i in range(place, place + together)]
            self._totals = self.updater.totals(step, self.model_wrapped, on_policy=on_policy)
        experience, iteration = self._pass(place)
        return MicroBatch(
            experience=experience, iteration=iteration, on_policy=on_policy, totals=self._totals
        )

    def _pass(self, place: int) -> tuple[Experience, int]:
        """A micro-batch of the window, and which pass over it this is."""
        iteration, part = divmod(place, self.shape.micro_batches)
        return self._window[part], iteration

    @contextmanager
    def denoiser(self) -> Iterator[ModelDenoiser]:
        """The current policy, ready to write; every rank must enter and leave together."""
        whole = self.args.ds3_gather_for_generation
        with (
            generation_mode(self.model_wrapped, self.accelerator, whole) as model,
            self.accelerator.autocast(),
        ):
            yield self.scorer.denoiser(model, batch_size=None, gathered=whole)

    def training_step(
        self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None
    ) -> Tensor:
        phases = ("time/rollout", *GRADING, "time/score")
        start, before = time.perf_counter(), self.collected.total(*phases)
        loss = super().training_step(model, inputs, num_items_in_batch)
        other = self.collected.total(*phases) - before
        self.collected.add("time/backward", time.perf_counter() - start - other)
        self._losses.append(loss)
        self._micro_step += 1
        return loss

    # --- resuming

    def train(self, resume_from_checkpoint: str | bool | None = None, **kwargs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """As in Trainer; a run resumed from a folder equals one that was never interrupted."""
        if resume_from_checkpoint is True:
            resume_from_checkpoint = last_whole_checkpoint(str(self.args.output_dir)) or True
        self._micro_step, self._checkpoint, self._losses = 0, None, []
        if isinstance(resume_from_checkpoint, str):
            self._checkpoint = resume_from_checkpoint
        return super().train(resume_from_checkpoint=resume_from_checkpoint, **kwargs)

    def _go_on_from(self, checkpoint: Path) -> None:
        self._checkpoint = None
        self._micro_step = self.state.global_step * self.args.gradient_accumulation_steps
        if self._micro_step % self.shape.uses:  # it was saved between two uses of a rollout
            rollouts = window_path(checkpoint, self.accelerator.process_index)
            self._window = load_window(rollouts, self.accelerator.device)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        if self._micro_step % self.shape.uses:
            folder = checkpoint_folder(self._get_output_dir(trial=trial), self.state.global_step)
            folder.mkdir(parents=True, exist_ok=True)
            save_window(self._window, window_path(folder, self.accelerator.process_index))
        super()._save_checkpoint(model, trial)

    # --- loss

    def compute_loss(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        model: nn.Module,
        inputs: MicroBatch,
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Tensor:
        return self.updater.loss(model, inputs)

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        """Called before the optimizer's step: a run that has diverged ends here, on all ranks."""
        loss = summed(self.accelerator, torch.stack(self._losses).sum())
        self._losses.clear()
        check_finite("loss", loss.item(), self.state.global_step)
        norm: Any = super()._get_grad_norm(model, grad_norm=grad_norm)
        if not self.args.fp16:  # there, a step that overflows is passed over
            check_finite("gradient norm", float(norm), self.state.global_step)
        return norm

    # --- logging

    def log_now(self, logs: dict[str, float]) -> None:
        """These numbers alone, without the means collected since the last log."""
        super().log(logs)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        logs.update(self.collected.take(partial(summed, self.accelerator)))
        super().log(logs, start_time)
        self.grading.write_log(self.state.global_step)
