"""Supervised training of a denoiser on transformers.Trainer; the loss is in `rl.sft_loss`.

The loss is divided by the completion tokens of the whole optimizer step, over all ranks and
micro-batches, and a row's masks are drawn from (seed, step, row): how a step is split into
micro-batches and ranks changes nothing but rounding.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments

from estimators import RowRandom, Sequences, stable_seed
from rl.gathered import generation_mode, in_step, one_gpu
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel
from rl.sft_data import SftRows
from rl.sft_loss import sft_loss, sft_plan


class SftTrainer(Trainer):
    """Trains `loaded.model` on `rows`; `t_min` is the smallest masking ratio."""

    loss_is_scaled_for_ga = True  # losses are divided by the total of the whole optimizer step

    def __init__(
        self,
        *,
        loaded: LoadedModel,
        args: TrainingArguments,
        rows: SftRows,
        t_min: float,
        callbacks: list[Any] | None = None,
    ) -> None:
        self.loaded, self.t_min = loaded, t_min
        args.remove_unused_columns = False
        one_gpu(args)
        if args.ddp_broadcast_buffers is None:
            args.ddp_broadcast_buffers = False  # BERT's position ids would differ between forwards
        super().__init__(
            model=loaded.model,
            args=args,
            data_collator=rows.collate,  # pyright: ignore[reportArgumentType]
            train_dataset=rows,  # pyright: ignore[reportArgumentType]
            processing_class=loaded.tokenizer,
            callbacks=callbacks,
        )

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device
    ) -> tuple[list[Any], Tensor | None]:
        """The micro-batches of an optimizer step and its completion tokens over all ranks."""
        batches, _ = super().get_batch_samples(epoch_iterator, num_batches, device)
        if not batches:
            return batches, None
        own = torch.stack([batch["supervised"].sum() for batch in batches]).sum().to(device)
        return batches, self.accelerator.reduce(own, "sum")  # pyright: ignore[reportReturnType]

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        assert num_items_in_batch is not None
        sequences = Sequences(
            prompt_ids=inputs["prompt_ids"],
            prompt_mask=inputs["prompt_mask"],
            completion_ids=inputs["completion_ids"],
            completion_mask=inputs["completion_mask"],
        )
        seed, step = self.args.seed, self.state.global_step
        random = RowRandom([stable_seed("sft", seed, step, key) for key in inputs["key"].tolist()])
        plan = sft_plan(sequences, inputs["supervised"], random, self.t_min)
        denoiser = self._denoiser(model, gathered=False)
        loss = sft_loss(denoiser, sequences, plan, num_items_in_batch)
        return loss * self.accelerator.num_processes  # DDP and DeepSpeed average over ranks

    @contextmanager
    def denoiser(self) -> Iterator[ModelDenoiser]:
        """The current model, ready to write; every rank must enter and leave together."""
        wrapped: Any = self.model_wrapped
        with (
            generation_mode(wrapped, self.accelerator, gather=True) as model,
            self.accelerator.autocast(),
        ):
            yield self._denoiser(model, gathered=True)

    def _denoiser(self, model: nn.Module, *, gathered: bool) -> ModelDenoiser:
        equalize = in_step(self.accelerator, gathered=gathered)
        return ModelDenoiser.of(self.loaded, model, equalize=equalize)
