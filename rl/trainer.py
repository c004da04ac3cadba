"""GRPO for masked diffusion models, on transformers.Trainer.

One optimizer step:

    rollout    sampler(denoiser, prompts)                    completions and their step map
    plan       estimator.plan(sequences)                     where the masks go, once per pass
    old, ref   estimator(model, sequences, plan)             without gradients, same plan
    reward     rewards(completions) -> advantages            compared within each group
    update     estimator(model, sequences, plan) -> objective -> backward

There is no formula in this file: likelihoods are in `estimators`, losses in `rl.objectives`.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import Trainer

from estimators import Estimate, Estimator, MaskPlan, RowRandom, Sequences, stable_seed
from rl.advantages import GroupAdvantage
from rl.checkpoints import checkpoint_folder, last_whole_checkpoint
from rl.experience import Experience, MicroBatch
from rl.gathered import generation_mode, one_gpu
from rl.grading import Grading
from rl.group_sampler import GroupSampler
from rl.grpo_config import DiffusionGRPOConfig
from rl.metrics import Metrics
from rl.models.denoiser import ModelDenoiser, switch_off_dropout
from rl.models.loading import LoadedModel
from rl.objectives import Objective, Totals
from rl.reference import Reference
from rl.reward_calls import RewardCalls
from rl.rollouts import Completions, write_completions
from rl.samplers import Sampler
from rl.scoring import Scorer
from rl.window_file import load_window, save_window, window_path

Rows = Sequence[dict[str, Any]]


class DiffusionGRPOTrainer(Trainer):
    """Trains `loaded.model` on `rows` (dicts with `id`, `prompt` and the columns of the rewards).

    frozen_reference: the reference policy when beta > 0 and the model has no adapter; by default
        a copy of the model.
    """

    args: DiffusionGRPOConfig
    model_wrapped: Any
    loss_is_scaled_for_ga = True  # losses are divided by the totals of the whole optimizer step

    def __init__(
        self,
        *,
        loaded: LoadedModel,
        args: DiffusionGRPOConfig,
        rows: Rows,
        sampler: Sampler,
        estimator: Estimator,
        objective: Objective,
        advantage: GroupAdvantage,
        rewards: RewardCalls,
        frozen_reference: nn.Module | None = None,
        callbacks: list[Any] | None = None,
    ) -> None:
        self.loaded, self.rows, self.shape = loaded, rows, args.shape
        self.sampler, self.estimator, self.objective = sampler, estimator, objective
        self.reference = Reference(loaded.model, frozen_reference) if objective.beta else None
        self.passes = args.num_iterations if args.fresh_masks else 1  # plans per rollout
        self.collected = Metrics()
        self._micro_step, self._window = 0, list[Experience]()
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
            temperature=sampler.temperature or 1.0,
            batch_size=args.scoring_batch_size or args.per_device_train_batch_size,
        )
        folder = Path(str(args.output_dir)) / "completions"
        self.grading = Grading(
            rewards,
            advantage,
            self.accelerator,
            self.collected,
            num_generations=self.shape.num_generations,
            completions_folder=folder if args.log_completions else None,
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
        place = self._micro_step % self.shape.uses
        if place == 0:
            self._window = self._roll_out(inputs).split(self.shape.micro_batches)
        iteration, part = divmod(place, self.shape.micro_batches)
        together = self.args.gradient_accumulation_steps  # micro-batches of this optimizer step
        first = place // together * together
        step = [self._window[i % len(self._window)].scored for i in range(first, first + together)]
        tokens, sequences = self._over_ranks(
            torch.tensor([sum(int(x.sum()) for x in step), sum(map(len, step))])
        ).tolist()
        totals = Totals(tokens=tokens, sequences=int(sequences), length=self.shape.length)
        return MicroBatch(experience=self._window[part], iteration=iteration, totals=totals)

    def training_step(
        self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None
    ) -> Tensor:
        phases = ("time/rollout", "time/reward", "time/score")
        start, before = time.perf_counter(), self.collected.total(*phases)
        loss = super().training_step(model, inputs, num_items_in_batch)
        other = self.collected.total(*phases) - before
        self.collected.add("time/backward", time.perf_counter() - start - other)
        self._micro_step += 1
        return loss

    # --- resuming

    def train(self, resume_from_checkpoint: str | bool | None = None, **kwargs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """As in Trainer; a run resumed from a folder equals one that was never interrupted."""
        if resume_from_checkpoint is True:
            resume_from_checkpoint = last_whole_checkpoint(str(self.args.output_dir)) or True
        self._micro_step, self._checkpoint = 0, None
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

    # --- experience

    def _roll_out(self, rows: Rows) -> Experience:
        start = time.perf_counter()
        numbers = [self.accelerator.process_index * len(rows) + i for i in range(len(rows))]
        keys = [
            (self.args.seed, row["id"], self.state.global_step, number % self.shape.num_generations)
            for row, number in zip(rows, numbers, strict=True)
        ]
        written = self._write(rows, [stable_seed("rollout", *key) for key in keys])
        rolled = time.perf_counter()
        advantages = self.grading(rows, written, self.state)
        rewarded = time.perf_counter()
        plans = tuple(self._plan(written.sequences, keys, k) for k in range(self.passes))
        experience = Experience(
            sequences=written.sequences,
            plans=plans,
            old=self._old(written.sequences, plans),
            ref=self._reference(written.sequences, plans),
            scored=self.estimator.scored(written.sequences),
            advantages=advantages,
        )
        self.collected.add("time/rollout", rolled - start)
        self.collected.add("time/reward", rewarded - rolled)
        self.collected.add("time/score", time.perf_counter() - rewarded)
        return experience

    def _write(self, rows: Rows, seeds: Sequence[int]) -> Completions:
        args = self.args
        with self.denoiser() as denoiser:
            written = write_completions(
                denoiser,
                self.sampler,
                self.loaded.tokenizer,
                rows,
                length=self.shape.length,
                seeds=seeds,
                stop_ids=self.loaded.stop_ids,
                pad_id=self.loaded.pad_id,
                device=self.accelerator.device,
                batch_size=args.rollout_batch_size,
            )
        self.collected.add_all("rollout/nfe", written.nfe)
        self.collected.add_all("completions/length", written.lengths)
        return written

    @contextmanager
    def denoiser(self) -> Iterator[ModelDenoiser]:
        """The current policy, ready to write; every rank must enter and leave together."""
        whole = self.args.ds3_gather_for_generation
        with (
            generation_mode(self.model_wrapped, self.accelerator, whole) as model,
            self.accelerator.autocast(),
        ):
            yield self.scorer.denoiser(model, batch_size=None, gathered=whole)

    def _plan(
        self, sequences: Sequences, keys: Sequence[tuple[Any, ...]], iteration: int
    ) -> MaskPlan:
        random = RowRandom(
            rows=[stable_seed("plan", iteration, *key) for key in keys],
            groups=[stable_seed("plan", iteration, *key[:-1]) for key in keys],
        )
        return self.estimator.plan(sequences, random)

    def _old(self, sequences: Sequences, plans: Sequence[MaskPlan]) -> tuple[Estimate, ...]:
        if self.args.rollout_is_on_policy:
            return ()
        return self.scorer.estimate_all(self.model_wrapped, sequences, plans)

    def _reference(self, sequences: Sequences, plans: Sequence[MaskPlan]) -> tuple[Estimate, ...]:
        if self.reference is None:
            return ()
        with self.reference.active(self.model_wrapped, self.accelerator) as model:
            return self.scorer.estimate_all(model, sequences, plans)

    # --- loss

    def compute_loss(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        model: nn.Module,
        inputs: MicroBatch,
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Tensor:
        experience, counts = inputs.experience, True
        if self.args.skip_zero_advantage:
            experience = experience.contributing()
            counts = bool(experience.advantages.any())  # else a row stands in for none
        k = inputs.iteration % self.passes
        new = self.scorer.estimate(model, experience.sequences, experience.plans[k])
        out = self.objective(
            new,
            experience.old[k] if experience.old else new.detach(),
            experience.ref[k] if experience.ref else None,
            experience.advantages,
            experience.scored,
            inputs.totals,
        )
        for name, (total, count) in out.metrics.items():
            self.collected.add_sum(name, total * counts, count * counts)
        # DDP and DeepSpeed average over ranks
        return out.loss * self.accelerator.num_processes * counts

    # --- logging

    def _over_ranks(self, numbers: Tensor) -> Tensor:
        summed: Any = self.accelerator.reduce(numbers.double().to(self.accelerator.device), "sum")
        return summed.cpu()

    def log_now(self, logs: dict[str, float]) -> None:
        """These numbers alone, without the means collected since the last log."""
        super().log(logs)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        logs.update(self.collected.take(self._over_ranks))
        super().log(logs, start_time)
        self.grading.write_log(self.state.global_step)
