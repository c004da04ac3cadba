"""Weights back into a family's own layout: names and config.json as other engines read them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import save_torch_state_dict
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.core_model_loading import revert_weight_conversion

from .spec import ModelSpec


def hub_state(spec: ModelSpec, model: PreTrainedModel) -> dict[str, Tensor]:
    """The weights under the checkpoint's names, experts apart; tied ones once."""
    tied = set(model.all_tied_weights_keys) if model.config.tie_word_embeddings else set[str]()
    native = {name: w for name, w in model.state_dict().items() if name not in tied}
    apart = revert_weight_conversion(model, native)  # transformers' own, for the native config
    return {spec.hub_key(name): _alone(weight) for name, weight in apart.items()}


def _alone(weight: Tensor) -> Tensor:
    """Not a part of a larger tensor, which a file would store whole."""
    part = weight.untyped_storage().nbytes() > weight.nbytes
    return weight.clone(memory_format=torch.contiguous_format) if part else weight.contiguous()


def save_hub(
    spec: ModelSpec,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    fields: Mapping[str, Any],
    folder: str | Path,
) -> None:
    """Write a folder that `load` and the family's other engines read. fields: its config.json."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_torch_state_dict(hub_state(spec, model), folder)
    dtype = str(model.dtype).removeprefix("torch.")
    config = dict(fields) | {"torch_dtype": dtype}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    tokenizer.save_pretrained(folder)
