"""The `model:` section of a recipe: which model to start from, and how to hold it."""

import difflib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers.utils.import_utils import is_flash_attn_2_available

from .attention import IMPLEMENTATIONS
from .lora import LoraSpec, is_adapter
from .spec import ModelSpec

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Where the weights come from.

    name: the family; a name in `rl.models.MODELS` or a `ModelSpec`.
    path: folder or hub id of a checkpoint, or a folder with a LoRA adapter (its base is found
        through adapter_config.json).
    config: instead of path, config fields of a new model with random weights.
    adapter: folder of a LoRA adapter to put on top of path or config.
    dtype: of the weights. AdamW on bfloat16 weights loses updates below 1/256 of a weight, so
        choose it for LoRA, where the adapter stays in float32.
    attn_implementation: "sdpa", "eager" or "flash_attention_2", which needs its package, a GPU and
        weights of 16 bits, and cannot do blocks.
    block_size: of a family that sees the text in blocks, where config.json does not have it.
    """

    name: str | ModelSpec
    path: str | None = None
    revision: str | None = None
    config: Mapping[str, Any] | None = None
    adapter: str | None = None
    dtype: str = "float32"
    load_in_4bit: bool = False
    attn_implementation: str = "sdpa"
    block_size: int | None = None
    lora: LoraSpec | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.lora, Mapping):
            object.__setattr__(self, "lora", LoraSpec(**self.lora))

    @property
    def lora_spec(self) -> LoraSpec | None:
        assert not isinstance(self.lora, Mapping)
        return self.lora

    @property
    def _adapted(self) -> bool:
        return self.adapter is not None or (self.path is not None and is_adapter(self.path))

    def validate(self, *, training: bool) -> None:
        """Raise for everything that can be known before a file is opened."""
        if (self.path is None) == (self.config is None):
            raise ValueError(
                f"model: path is {self.path!r} and config is {self.config!r}; give exactly one: "
                "`path` for a checkpoint (folder or hub id), `config` for a new random model."
            )
        if self.dtype not in DTYPES:
            raise ValueError(f"model.dtype is {self.dtype!r}; allowed: {', '.join(DTYPES)}.")
        if self.adapter is not None and not is_adapter(self.adapter):
            raise ValueError(
                f"model.adapter is {self.adapter!r}, which holds no adapter_config.json; "
                "name the folder that a LoRA run saved."
            )
        if training and self.lora is not None and self._adapted:
            raise ValueError(
                "model: an adapter to continue from and `lora` for a new one are both given; "
                "drop `lora` to continue training the adapter."
            )
        if self.attn_implementation not in IMPLEMENTATIONS:
            raise ValueError(
                f"model.attn_implementation is {self.attn_implementation!r}; allowed: "
                f"{', '.join(IMPLEMENTATIONS)}."
            )
        if self.attn_implementation == "flash_attention_2":
            self._validate_flash()
        if self.block_size is not None and self.block_size < 1:
            raise ValueError(f"model.block_size is {self.block_size}; use at least 1.")
        if self.load_in_4bit:
            self._validate_4bit(training)

    def _validate_flash(self) -> None:
        lacking: list[str] = []
        if not is_flash_attn_2_available():
            lacking.append("the package flash-attn and a GPU that it knows")
        if DTYPES[self.dtype] == torch.float32:
            lacking.append("dtype: bfloat16 or float16")
        if lacking:
            raise ValueError(
                f"model.attn_implementation: flash_attention_2 needs {'; and '.join(lacking)}. "
                "Otherwise use sdpa."
            )

    def _validate_4bit(self, training: bool) -> None:
        lacking: list[str] = []
        if self.path is None:
            lacking.append("a checkpoint (`model.path`), since random weights are not quantized")
        if importlib.util.find_spec("bitsandbytes") is None:
            lacking.append('the package bitsandbytes (pip install "unmask-rl[4bit]")')
        if not torch.cuda.is_available():
            lacking.append("a CUDA device (none is visible)")
        if training and not (self.lora or self._adapted):
            lacking.append("`model.lora` to train, since 4-bit weights cannot be updated")
        if lacking:
            raise ValueError(
                f"model.load_in_4bit needs {'; and '.join(lacking)}. "
                "Otherwise set load_in_4bit: false and dtype: bfloat16."
            )


def family(name: str | ModelSpec, known: Mapping[str, ModelSpec]) -> ModelSpec:
    if isinstance(name, ModelSpec):
        return name
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise ValueError(f"unknown model family {name!r}{hint} Known: {', '.join(sorted(known))}.")
    return known[name]
