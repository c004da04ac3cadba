"""LoRA adapters (Hu et al., arXiv:2106.09685) on native module names.

W x  ->  W x + (alpha / r) B A x,     A random, B = 0: the adapted model starts as the base
"""

import json
import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftConfig, PeftModel
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from .private_rng import private_rng
from .spec import ModelSpec

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LoraSpec:
    """targets: "paper" or "full" (see `ModelSpec.lora_targets`), or names of linear modules."""

    r: int
    alpha: int | float
    dropout: float = 0.0
    targets: str | Sequence[str] = "paper"

    def __post_init__(self) -> None:
        if self.r < 1 or self.alpha <= 0 or not 0 <= self.dropout < 1:
            raise ValueError(
                f"model.lora has r={self.r}, alpha={self.alpha}, dropout={self.dropout}; "
                "needed: r >= 1, alpha > 0, 0 <= dropout < 1."
            )
        if not self.targets:
            raise ValueError('model.lora.targets is empty; give "paper", "full" or module names.')


def target_names(spec: ModelSpec, lora: LoraSpec) -> tuple[str, ...]:
    if not isinstance(lora.targets, str):
        return tuple(lora.targets)
    if lora.targets not in spec.lora_targets:
        presets = ", ".join(f"{k} ({' '.join(v)})" for k, v in spec.lora_targets.items())
        raise ValueError(
            f"model.lora.targets is {lora.targets!r}; {spec.name} has the presets {presets}. "
            f"For modules of your own choice give a list: [{lora.targets}]."
        )
    return spec.lora_targets[lora.targets]


def check_targets(spec: ModelSpec, config: PretrainedConfig, lora: LoraSpec) -> None:
    """Raise for a target that matches nothing, without loading or allocating a weight."""
    with torch.device("meta"):
        skeleton = spec.native_class(config)
    _check(spec, skeleton, target_names(spec, lora))


def _check(spec: ModelSpec, model: nn.Module, targets: tuple[str, ...]) -> None:
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    for target in targets:
        if not any(f".{name}".endswith(f".{target}") for name in linear):
            leaves = sorted({name.rsplit(".", 1)[-1] for name in linear})
            raise ValueError(
                f"model.lora.targets: {target!r} matches no linear module of "
                f"{spec.native} ({spec.name}). Its linear modules end in: {', '.join(leaves)}."
            )


def apply_lora(
    model: PreTrainedModel, spec: ModelSpec, lora: LoraSpec, *, zero3: bool = False, seed: int = 0
) -> PeftModel:
    """Freeze `model` and add adapters to it, in place.

    zero3: leave the adapters in the model's dtype; PEFT's cast to float32 does not survive
        ZeRO-3's partitioning.
    seed: of the adapters, so that every rank starts from the same ones.
    """
    targets = target_names(spec, lora)
    _check(spec, model, targets)
    if lora.dropout > 0:
        logger.warning(
            "model.lora.dropout is %s: old and new log-probs of the same weights will differ, "
            "so the ratio is not 1 before the first update. Set it to 0 unless you reproduce "
            "a run that had it.",
            lora.dropout,
        )
    config = LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,  # pyright: ignore[reportArgumentType] - used as a factor only
        lora_dropout=lora.dropout,
        target_modules=list(targets),
    )
    # For adapter_config.json, so that the folder alone says what it belongs on.
    config.base_model_name_or_path = model.name_or_path or None
    adapted = _wrap(model, config, zero3=zero3, seed=seed)
    trained, total = adapted.get_nb_trainable_parameters()
    logger.info(
        "LoRA r=%d alpha=%s on %s: %s of %s parameters train (%.2f%%)",
        lora.r, lora.alpha, ", ".join(targets), f"{trained:,}", f"{total:,}", 100 * trained / total,
    )  # fmt: skip
    return adapted


class SavedApart(PeftModel):
    """Saves the adapter alone, also where the Trainer saves.

    PEFT would read the base's config.json with the native class to compare vocabularies. In a
    family's own words that fails, or finds another number and adds the embeddings to the adapter.
    """

    def save_pretrained(
        self, *args: Any, save_embedding_layers: Any = False, **kwargs: Any
    ) -> None:
        super().save_pretrained(*args, **({"save_embedding_layers": False} | kwargs))


def _wrap(model: PreTrainedModel, config: PeftConfig, *, zero3: bool, seed: int) -> PeftModel:
    with private_rng(seed), warnings.catch_warnings():
        # PEFT 0.21 asks transformers 5 by the old name; nothing a user could change.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated")
        return SavedApart(model, config, autocast_adapter_dtype=not zero3)


def is_adapter(path: str) -> bool:
    return (Path(path) / "adapter_config.json").is_file()


def adapter_base(folder: str) -> tuple[str, str | None]:
    """Path and revision of the checkpoint that an adapter was trained on."""
    try:
        stored = json.loads((Path(folder) / "adapter_config.json").read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{folder}: adapter_config.json is not JSON ({error})") from error
    base = stored.get("base_model_name_or_path")
    if not base:
        raise ValueError(
            f"{folder}: adapter_config.json does not say which model the adapter is for. Give the "
            f"model as model.path (or model.config), and this folder as model.adapter."
        )
    if Path(base).is_absolute() and not Path(base).exists():
        raise ValueError(
            f"{folder}: the adapter was trained on {base!r}, which is not there any more. Give the "
            "model as model.path, and this folder as model.adapter."
        )
    return base, stored.get("revision")


def load_adapter(
    model: PreTrainedModel, folder: str, *, training: bool, zero3: bool = False
) -> PeftModel:
    """Put a saved adapter on `model`; every key must be used and every weight filled."""
    if not (Path(folder) / "adapter_model.safetensors").is_file():
        raise ValueError(
            f"{folder}: an adapter_config.json without its weights; adapter_model.safetensors "
            "belongs beside it"
        )
    config = PeftConfig.from_pretrained(folder)
    config.inference_mode = not training
    adapted = _wrap(model, config, zero3=zero3, seed=0)
    result = adapted.load_adapter(folder, "default", is_trainable=training)
    if result.missing_keys or result.unexpected_keys:
        raise ValueError(
            f"{folder}: the adapter does not fit its adapter_config.json on this model; "
            f"missing: {result.missing_keys[:6]}, unused: {result.unexpected_keys[:6]}. Check that "
            "the base model is the one it was trained on."
        )
    return adapted
