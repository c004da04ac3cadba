"""What one model family is: the only thing that a family file states.

A masked diffusion LM is, weight for weight, a stock transformers class under another attention
mask. A `ModelSpec` names that class and translates the checkpoint's own words (config fields,
weight names, special tokens) into it. No code from a checkpoint is ever run.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import transformers
from transformers import PretrainedConfig, PreTrainedTokenizerFast

from .head import Head, denoising_class

LAYER = "{i}"  # stands for a layer's number in `ModelSpec.renames`


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """One family.

    native: class name in transformers.
    causal: the native class is causal unless it is given a 4-D mask.
    config_from: the checkpoint's config.json -> native config; a KeyError names a missing field.
    head: (model, hidden) -> logits; the *whole* output head, not only its last matrix.
    hub_type: `model_type` in config.json where the checkpoint does not use the native layout.
    renames: native weight prefix -> the checkpoint's, with {i} for the layer number.
    requires: fields of a hub config that must have this value, if present: the native class
        cannot do anything else.
    ignored: regexes of checkpoint keys that the family does not use.
    mask_token, stop_tokens: strings looked up in the tokenizer, in this order.
    mask_id, vocab_size: the published values; checked when the vocabulary has this size.
    lora_targets: "paper" is what published runs adapt, "full" is every linear layer of a block.
    tiny_config: config.json of a model small enough for a test, in the checkpoint's own fields.
    """

    name: str
    native: str
    causal: bool
    positions: Literal["rotary", "absolute"]
    config_from: Callable[[dict[str, Any]], PretrainedConfig]
    head: Head
    mask_token: tuple[str, ...]
    stop_tokens: tuple[str, ...]
    lora_targets: Mapping[str, tuple[str, ...]]
    tiny_config: Mapping[str, Any]
    tiny_tokenizer: Callable[[], PreTrainedTokenizerFast]
    hub_type: str | None = None
    renames: Mapping[str, str] = field(default_factory=dict)
    requires: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    mask_id: int | None = None
    vocab_size: int | None = None
    config_mask_field: str = "mask_token_id"
    tokenizer: str = "AutoTokenizer"

    @property
    def native_class(self) -> Any:
        """The transformers class, with a head that is computed only where it is asked for."""
        return denoising_class(getattr(transformers, self.native), self.head)

    @property
    def native_type(self) -> str:
        return getattr(transformers, self.native).config_class.model_type

    @property
    def key_mapping(self) -> dict[str, str]:
        """`renames` as `from_pretrained` wants them; it allows one capture group a pattern."""
        return {
            "^" + re.escape(hub).replace(re.escape(LAYER), r"(\d+)"): native.replace(LAYER, r"\1")
            for native, hub in self.renames.items()
        }

    def hub_key(self, key: str) -> str:
        """The checkpoint's name of the native weight `key`."""
        for native, hub in self.renames.items():
            pattern = re.escape(native).replace(re.escape(LAYER), r"(\d+)")
            if found := re.match(pattern, key):
                layer = found[1] if found.groups() else ""
                return hub.replace(LAYER, layer) + key[found.end() :]
        return key
