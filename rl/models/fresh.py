"""New models with random weights, for tests and for recipes that start from nothing."""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

import torch
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
        allowed |= {f.name for f in dataclasses.fields(spec.native_config)}
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


def new_model(
    spec: ModelSpec,
    config: PretrainedConfig,
    *,
    seed: int,
    dtype: torch.dtype = torch.float32,
    attn_implementation: str = "sdpa",
) -> PreTrainedModel:
    """Equal seeds give equal weights, on every rank and whatever ran before."""
    config._attn_implementation = attn_implementation
    try:
        with private_rng(seed):
            model = spec.native_class(config)
    except ValueError as error:
        raise ValueError(f"model.config does not make a {spec.native}: {error}") from error
    return in_dtype(model, dtype)


def in_dtype(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """As `from_pretrained` does it: what the class keeps in float32 (a router's bias) stays so."""
    kept = tuple(model._keep_in_fp32_modules_strict or ())
    for name, weight in model.state_dict(keep_vars=True).items():
        if weight.is_floating_point() and not name.endswith(kept):
            weight.data = weight.data.to(dtype)
    return model
