"""Checkpoint weights into native classes, and back into a folder that reloads.

Every key must be used and every weight filled: transformers alone would fill a gap with random
numbers and go on. No pickle is read.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from safetensors import SafetensorError
from torch import Tensor
from transformers import BitsAndBytesConfig, PreTrainedModel, PreTrainedTokenizerBase

from .checkpoint import Checkpoint, first_line
from .spec import ModelSpec

NAMED = 6  # how many keys an error lists


def load_weights(
    spec: ModelSpec,
    checkpoint: Checkpoint,
    *,
    dtype: torch.dtype,
    in_4bit: bool,
    attn_implementation: str = "sdpa",
) -> PreTrainedModel:
    renames = spec.key_mapping if checkpoint.hub_layout else {}
    extra: dict[str, Any] = {"key_mapping": renames} if renames else {}
    if in_4bit:
        extra["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16,
        )
        extra["device_map"] = {"": int(os.environ.get("LOCAL_RANK", "0"))}
    try:
        model, info = spec.native_class.from_pretrained(
            checkpoint.path,
            revision=checkpoint.revision,
            config=checkpoint.config,
            dtype=dtype,
            attn_implementation=attn_implementation,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # they are reported by name below
            output_loading_info=True,
            **extra,
        )
    except OSError as error:
        raise ValueError(
            f"{checkpoint.path}: no safetensors weights can be read ({first_line(error)}). "
            "Pickled .bin files are not accepted; convert them to safetensors first."
        ) from error
    except SafetensorError as error:
        raise ValueError(
            f"{checkpoint.path}: a safetensors file is damaged ({error}). Download it again, or "
            "save it again; an interrupted copy ends like this."
        ) from error
    _refuse_gaps(spec, checkpoint, model, info)
    _refuse_nan(checkpoint, model)
    # The Trainer's save_pretrained would otherwise write hub names next to a native config.json,
    # which no loader can read back.
    model._weight_conversions = None
    return model


def _refuse_gaps(
    spec: ModelSpec, checkpoint: Checkpoint, model: PreTrainedModel, info: Mapping[str, Any]
) -> None:
    def name(key: str) -> str:
        hub = spec.hub_key(key) if checkpoint.hub_layout else key
        return key if hub == key else f"{key} ({hub} in the checkpoint)"

    unused = [k for k in info["unexpected_keys"] if not any(re.search(i, k) for i in spec.ignored)]
    faults = [
        _listed("missing from the checkpoint", map(name, info["missing_keys"])),
        _listed("in the checkpoint but not in the model", unused),
        _listed(
            "of another shape",
            (
                f"{name(key)}: {tuple(found)} in the checkpoint, {tuple(wanted)} in the model"
                for key, found, wanted in info["mismatched_keys"]
            ),
        ),
    ]
    if any(faults):
        raise ValueError(
            f"{checkpoint.path} does not fit {spec.native} as its config.json describes it.\n"
            + "".join(faults)
            + f"Check that model.name ({spec.name}) is the checkpoint's family, that config.json "
            "belongs to these weights, and that the download is complete."
        )
    embedding, output = model.get_input_embeddings(), model.get_output_embeddings()
    assert output is not None
    if checkpoint.config.tie_word_embeddings and output.weight is not embedding.weight:
        raise ValueError(
            f"{checkpoint.path}: config.json ties the output matrix to the embedding, but the "
            "checkpoint holds two different ones. Set the tying field in config.json to false."
        )


def _refuse_nan(checkpoint: Checkpoint, model: PreTrainedModel) -> None:
    broken = [name for name, weight in model.named_parameters() if not weight.isfinite().all()]
    if broken:
        raise ValueError(
            f"{checkpoint.path} has weights that are NaN or infinite, as a run that diverged "
            f"leaves them; use an earlier checkpoint.\n{_listed('such weights', broken)}".rstrip()
        )


def _listed(what: str, keys: Iterable[str]) -> str:
    names = sorted(keys)
    if not names:
        return ""
    more = f"\n    and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"  {len(names)} {what}:" + "".join(f"\n    {n}" for n in names[:NAMED]) + f"{more}\n"


def save_native(
    model: PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: str | Path,
    *,
    state_dict: dict[str, Tensor] | None = None,
) -> None:
    """Write a folder that `load` reads back to equal logits: native names, or only the adapter.

    state_dict: the gathered weights, where the model holds only a shard of them.
    """
    if isinstance(model, PeftModel):
        model.save_pretrained(str(folder), state_dict=state_dict, save_embedding_layers=False)
    else:
        model.save_pretrained(folder, state_dict=state_dict, save_original_format=False)
    tokenizer.save_pretrained(folder)
