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
FAMILY_FIELD = "denoiser_family"  # in a native config.json: several families share a native class


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """One family.

    checkpoints: published ones, as the README names them.
    native: class name in transformers.
    causal: the native class is causal unless it is given a 4-D mask.
    shift: 0: the hidden state of position p predicts token p; 1: that of p - 1 does.
    block_size: None: every token sees every token. A number: blocks of this published size; a token
        sees its block and earlier ones. A config's own comes first.
    config_block_field: what the checkpoint's config calls it.
    block_origin, block_context, seed_first: see block_layout.py.
    config_from: the checkpoint's config.json -> native config; a KeyError names a missing field.
    head: (model, hidden) -> logits; the *whole* output head, not only its last matrix.
    hub_type, hub_class: `model_type` and `architectures` in config.json where the checkpoint does
        not use the native layout.
    config_class: of transformers, where the native class is built from another one than its own.
    renames: native weight prefix -> the checkpoint's, with {i} for the layer number; what
        transformers itself converts for the native config is not repeated here.
    requires: fields of a hub config that must have this value, if present: the native class
        cannot do anything else.
    ignored: regexes of checkpoint keys that the family does not use.
    mask_token, stop_tokens: strings looked up in the tokenizer, in this order.
    mask_id, vocab_size: the published values; checked when the vocabulary has this size.
    tokenizer: class in transformers; AutoTokenizer refuses folders that bring their own code.
    chat_settings: variables of the chat template that the checkpoint was trained with.
    lora_targets: "paper" is what published runs adapt, "full" is every linear layer of a block.
    tiny_config: config.json of a model small enough for a test, in the checkpoint's own fields.
    """

    name: str
    checkpoints: str
    native: str
    causal: bool
    config_from: Callable[[dict[str, Any]], PretrainedConfig]
    head: Head
    mask_token: tuple[str, ...]
    stop_tokens: tuple[str, ...]
    lora_targets: Mapping[str, tuple[str, ...]]
    tiny_config: Mapping[str, Any]
    tiny_tokenizer: Callable[[], PreTrainedTokenizerFast]
    shift: Literal[0, 1] = 0
    block_size: int | None = None
    config_block_field: str = "block_size"
    block_origin: Literal["absolute", "response"] = "absolute"
    block_context: Literal["block", "causal"] = "block"
    seed_first: bool = False
    hub_type: str | None = None
    hub_class: str | None = None
    config_class: str | None = None
    renames: Mapping[str, str] = field(default_factory=dict)
    requires: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    mask_id: int | None = None
    vocab_size: int | None = None
    config_mask_field: str = "mask_token_id"
    tokenizer: str = "AutoTokenizer"
    chat_settings: Mapping[str, bool] = field(default_factory=dict)

    @property
    def native_class(self) -> Any:
        """The transformers class, with a head that is computed only where it is asked for."""
        return denoising_class(getattr(transformers, self.native), self.head)

    @property
    def native_config(self) -> type[PretrainedConfig]:
        if self.config_class is not None:
            return getattr(transformers, self.config_class)
        return getattr(transformers, self.native).config_class

    @property
    def native_type(self) -> str:
        return self.native_config.model_type

    def is_hub_layout(self, fields: Mapping[str, Any]) -> bool:
        """Whether this config.json is in the family's own words."""
        if self.hub_type is None or fields.get("model_type") != self.hub_type:
            return False
        return self.hub_class in (None, *(fields.get("architectures") or [self.hub_class]))

    def reads(self, fields: Mapping[str, Any]) -> bool:
        """Whether a checkpoint with this config.json can be of this family."""
        recorded = fields.get(FAMILY_FIELD)
        if recorded is not None:
            return recorded == self.name
        return self.is_hub_layout(fields) or fields.get("model_type") == self.native_type

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
