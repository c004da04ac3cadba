"""New models with random weights, for tests and for recipes that start from nothing."""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

import torch
import transformers
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from .checkpoint import native_config
from .private_rng import private_rng
from .spec import ModelSpec
from .token_ids import resolve_token_ids


def new_fields(
    spec: ModelSpec, tokenizer: PreTrainedTokenizerFast, given: Mapping[str, Any]
) -> dict[str, Any]:
    """config.json of a new model: `given`, else the tiny one's, and `tokenizer`'s ids."""
    allowed = {"vocab_size", *spec.tiny_config, *spec.requires}
    if spec.hub_type is None:
        allowed |= {f.name for f in dataclasses.fields(_config_class(spec))}
    for name in given:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ValueError(
                f"model.config has an unknown field {name!r}{hint} "
                f"The {spec.name} family has: {', '.join(sorted(allowed))}."
            )
    fields = {"vocab_size": len(tokenizer)} | dict(spec.tiny_config) | dict(given)
    config = native_config(spec, fields, where="model.config")
    ids = resolve_token_ids(spec, tokenizer, {}, config.vocab_size)
    return fields | {
        "model_type": spec.hub_type or spec.native_type,
        spec.config_mask_field: ids.mask_id,
        "eos_token_id": ids.stop_ids[0],
        "pad_token_id": ids.pad_id,
    }


def _config_class(spec: ModelSpec) -> Any:
    return getattr(transformers, spec.native).config_class


def new_model(
    spec: ModelSpec, config: PretrainedConfig, *, seed: int, dtype: torch.dtype = torch.float32
) -> PreTrainedModel:
    """Equal seeds give equal weights, on every rank and whatever ran before."""
    config._attn_implementation = "sdpa"
    try:
        with private_rng(seed):
            return spec.native_class(config).to(dtype)
    except ValueError as error:
        raise ValueError(f"model.config does not make a {spec.native}: {error}") from error
