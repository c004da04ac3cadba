"""The bare model, ready to denoise, out of whatever DDP, DeepSpeed or FSDP wrapped it in.

Under ZeRO-3 every rank first gathers all parameters and DeepSpeed's hooks come off, so ranks may
run different numbers of forwards. The hooks go back on at the end.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments

from rl.models.loading import LoadedModel, save_native

logger = logging.getLogger(__name__)


def one_gpu(args: TrainingArguments) -> None:
    """Keep the Trainer from nn.DataParallel: it splits ids, but not the positions asked for."""
    if args.n_gpu > 1:
        logger.warning(
            "%d GPUs are visible and this process uses one; to use all, start with "
            "accelerate launch --num_processes %d",
            args.n_gpu,
            args.n_gpu,
        )
        args._n_gpu = 1


def is_zero3(accelerator: Accelerator) -> bool:
    plugin = accelerator.state.deepspeed_plugin
    return plugin is not None and plugin.zero_stage == 3


def in_step(accelerator: Accelerator, *, gathered: bool = False) -> Callable[[int], int] | None:
    """`ModelDenoiser.equalize` where ranks gather parameters inside a forward; None elsewhere.

    gathered: under ZeRO-3 the parameters are whole for now, and a rank may run ahead of others.
    """
    if (is_zero3(accelerator) and not gathered) or accelerator.is_fsdp2:
        return partial(_most_over_ranks, accelerator)
    return None


def backwards_in_step(accelerator: Accelerator, count: int) -> int:
    """How many backward passes this rank must run, of which `count` are its own.

    DeepSpeed and FSDP exchange gradients in every one of them, and hang if ranks disagree.
    """
    if accelerator.state.deepspeed_plugin is not None or accelerator.is_fsdp2:
        return _most_over_ranks(accelerator, count)
    return count


def _most_over_ranks(accelerator: Accelerator, count: int) -> int:
    counts = torch.tensor([count], device=accelerator.device)
    gathered: Any = accelerator.gather(counts)
    return int(gathered.max())


def over_ranks(accelerator: Accelerator, rows: Tensor) -> Tensor:
    """Values of this rank's rows -> those of all ranks, in order; equally many on each."""
    gathered: Any = accelerator.gather(rows.to(accelerator.device).contiguous())
    return gathered.to(rows.device)


def summed(accelerator: Accelerator, numbers: Tensor) -> Tensor:
    """The sum of these numbers over the ranks, in double precision, on the CPU."""
    total: Any = accelerator.reduce(numbers.double().to(accelerator.device), "sum")
    return total.cpu()


def save_whole(trainer: Trainer, loaded: LoadedModel, folder: str | Path) -> None:
    """Write the trained weights (or adapter) and tokenizer as `model.path` takes them.

    Every rank must call it.
    """
    accelerator: Any = trainer.accelerator
    weights = accelerator.get_state_dict(trainer.model_wrapped)
    if accelerator.is_main_process:
        model = accelerator.unwrap_model(trainer.model_wrapped)
        save_native(model, loaded.tokenizer, folder, state_dict=weights)
    accelerator.wait_for_everyone()


@contextmanager
def generation_mode(
    wrapped: nn.Module, accelerator: Accelerator, gather: bool
) -> Iterator[nn.Module]:
    """Yields the unwrapped module with gradient checkpointing off; parameters whole if `gather`."""
    model: Any = accelerator.unwrap_model(wrapped)
    with no_checkpointing(model):
        if not (gather and is_zero3(accelerator)):
            yield model
            return
        import deepspeed

        with deepspeed.zero.GatheredParameters(list(wrapped.parameters())), _without_hooks(wrapped):
            yield model


@contextmanager
def no_checkpointing(model: nn.Module) -> Iterator[None]:
    """Gradient checkpointing off: without gradients it only costs time."""
    layers: list[Any] = [m for m in model.modules() if getattr(m, "gradient_checkpointing", False)]
    for layer in layers:
        layer.gradient_checkpointing = False
    try:
        yield
    finally:
        for layer in layers:
            layer.gradient_checkpointing = True


@contextmanager
def _without_hooks(engine: Any) -> Iterator[None]:
    offload = getattr(engine.optimizer, "parameter_offload", engine.optimizer)
    for parameter in offload.module.parameters():
        parameter.ds_active_sub_modules.clear()
    for hook in offload.forward_hooks + offload.backward_hooks:
        hook.remove()
    offload.forward_hooks, offload.backward_hooks = [], []
    try:
        yield
    finally:
        coordinator = getattr(offload, "param_coordinator", None)
        if coordinator is not None and not coordinator.is_invalid_trace():
            coordinator._invalidate_trace()
        offload._register_deepspeed_module(offload.module)
