"""Arguments and model of a training run, supervised or not."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
import transformers
from transformers.integrations.integration_utils import get_reporting_integration_callbacks

from rl.models.loading import LoadedModel, load
from rl.models.lora import apply_lora
from rl.models.source import ModelSource


def training_arguments(
    config: type, settings: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Any:
    """`config(**settings)` on this machine; ValueError for what it does not accept."""
    settle_backend()
    quiet_transformers()
    gpu = torch.cuda.is_available()
    here = {
        "use_cpu": not gpu,
        "dataloader_pin_memory": gpu,
        "report_to": "none",
        "disable_tqdm": False,  # it would follow the log level that was just lowered
    }
    try:
        args = config(**{**here, **defaults, **settings})
        get_reporting_integration_callbacks(args.report_to)  # raises for a name it does not know
        return args
    except (TypeError, ValueError) as error:
        raise ValueError(f"trainer: {error}") from error


def settle_backend() -> None:
    """Without a GPU, keep DeepSpeed from compiling a collective that training does not use."""
    if os.environ.get("ACCELERATE_USE_DEEPSPEED") != "true" or torch.cuda.is_available():
        return
    import deepspeed

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # pyright: ignore


def quiet_transformers() -> None:
    """No bars for loading a file, no notes on token ids: what a user should know, we say."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def load_trainable(source: ModelSource, args: Any) -> LoadedModel:
    """The model to train, with a new adapter if the recipe asks for one."""
    plugin = args.deepspeed_plugin
    zero3 = plugin is not None and plugin.zero_stage == 3
    if plugin is not None and zero3:
        _check_can_save(plugin.deepspeed_config)
    loaded = load(source, training=True, seed=args.seed)
    if source.lora_spec is not None:
        adapted = apply_lora(
            loaded.model,  # pyright: ignore[reportArgumentType] - `validate` refused adapters
            loaded.spec,
            source.lora_spec,
            zero3=zero3,
            seed=args.seed,
        )
        loaded = replace(loaded, model=adapted)
    if args.gradient_checkpointing and is_adapted(loaded):
        loaded.model.enable_input_require_grads()
        args.gradient_checkpointing_kwargs = {"use_reentrant": False}
        args.activation_checkpointing_kwargs = args.gradient_checkpointing_kwargs
    return loaded


def _check_can_save(deepspeed_config: Mapping[str, Any]) -> None:
    """Raise now for what would otherwise lose the trained model at the end of the run."""
    if not deepspeed_config["zero_optimization"].get("stage3_gather_16bit_weights_on_model_save"):
        raise ValueError(
            "this ZeRO-3 configuration could not save the trained model: set "
            "zero3_save_16bit_model: true in the accelerate configuration (or "
            "stage3_gather_16bit_weights_on_model_save: true in DeepSpeed's own), as in "
            "recipes/accelerate/zero3.yaml"
        )


def is_adapted(loaded: LoadedModel) -> bool:
    """Whether only an adapter trains; the base weights are then the reference policy."""
    return hasattr(loaded.model, "disable_adapter")
