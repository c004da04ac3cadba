"""From a recipe's `model:` section to a denoiser: model, tokenizer and token ids that agree.

Cheap checks come first: tokens and LoRA names are settled before a weight is read.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import transformers
from peft import PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled

from . import MODELS
from .attention import AttentionMasks
from .block_layout import BlockLayout
from .checkpoint import HUB_FIELDS, identity, native_config, read_checkpoint, read_fields
from .fresh import new_fields, new_model
from .lora import adapter_base, check_targets, is_adapter, load_adapter
from .source import DTYPES, ModelSource, family
from .spec import FAMILY_FIELD, ModelSpec
from .token_ids import resolve_token_ids
from .weights import load_weights, save_native

__all__ = ["LoadedModel", "family_of", "load", "save_native"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """stop_ids[0] is eos. forbidden_ids: a sampler must give them probability 0.

    block_size: None where every token sees every token.
    """

    model: PreTrainedModel | PeftModel
    tokenizer: PreTrainedTokenizerBase
    spec: ModelSpec
    mask_id: int
    pad_id: int
    stop_ids: tuple[int, ...]
    forbidden_ids: tuple[int, ...]
    attn_implementation: str = "sdpa"
    block_size: int | None = None

    @property
    def layout(self) -> BlockLayout | None:
        """How the text falls into blocks; None where every token sees every token."""
        if self.block_size is None:
            return None
        return BlockLayout(
            size=self.block_size,
            origin=self.spec.block_origin,
            context=self.spec.block_context,
            shift=self.spec.shift,
            seed_first=self.spec.seed_first,
        )

    @property
    def vocab_size(self) -> int:
        """Embedding rows, which may be more than the tokenizer has tokens."""
        return self.model.config.vocab_size

    @property
    def max_length(self) -> int:
        """Prompt and completion together."""
        return self.model.config.max_position_embeddings


def family_of(path: str) -> str:
    """The only family that can read this checkpoint, or the one that this adapter is for."""
    base, revision = adapter_base(path) if is_adapter(path) else (path, None)
    fields = read_fields(base, revision)
    names = [name for name, spec in MODELS.items() if spec.reads(fields)]
    if len(names) != 1:
        raise ValueError(
            f"{path}: config.json has {identity(fields)}, which "
            f"{'several families read' if names else 'no family reads'}; name one of "
            f"{', '.join(names or MODELS)} with --family"
        )
    return names[0]


def load(source: ModelSource, *, training: bool, seed: int = 0) -> LoadedModel:
    """`seed` is that of random weights. `source.lora` is checked here and added by `apply_lora`."""
    source.validate(training=training)
    spec = family(source.name, MODELS)
    path, revision, adapter = source.path, source.revision, source.adapter
    if path is not None and is_adapter(path):
        adapter = path
        path, base_revision = adapter_base(adapter)
        revision = revision or base_revision
    checkpoint = None
    if path is None:
        tokenizer = spec.tiny_tokenizer()
        fields = new_fields(spec, tokenizer, source.config or {})
        config = native_config(spec, fields, where="model.config")
        hub_fields = fields if spec.hub_type else None
    else:
        checkpoint = read_checkpoint(spec, path, revision)
        fields, config, hub_fields = checkpoint.fields, checkpoint.config, checkpoint.hub_fields
        tokenizer = _tokenizer(spec, path, revision)
    block_size = _block_size(spec, source, fields)
    AttentionMasks(spec.causal, source.attn_implementation, block_size)
    ids = resolve_token_ids(spec, tokenizer, fields, config.vocab_size)
    if source.lora_spec is not None:
        check_targets(spec, config, source.lora_spec)
    dtype, attention = DTYPES[source.dtype], {"attn_implementation": source.attn_implementation}
    if checkpoint is None:
        model = new_model(spec, config, seed=seed, dtype=dtype, **attention)
    else:
        in_4bit = source.load_in_4bit
        model = load_weights(spec, checkpoint, dtype=dtype, in_4bit=in_4bit, **attention)
    recorded = {
        spec.config_mask_field: ids.mask_id,
        FAMILY_FIELD: spec.name,
        HUB_FIELDS: hub_fields,
        "block_size": block_size,
    }
    for name, value in recorded.items():  # saved with the weights, checked when they are read again
        if value is not None:
            setattr(model.config, name, value)
    if adapter is not None:
        zero3 = is_deepspeed_zero3_enabled()
        model = load_adapter(model, adapter, training=training, zero3=zero3)
    if not training:
        model.requires_grad_(False)
    model.train(training)
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        spec=spec,
        **asdict(ids),
        attn_implementation=source.attn_implementation,
        block_size=block_size,
    )


def _block_size(spec: ModelSpec, source: ModelSource, fields: Mapping[str, Any]) -> int | None:
    """The recipe's, else config.json's, else the published one."""
    if spec.block_size is None:
        if source.block_size is not None:
            raise ValueError(
                f"model.block_size is {source.block_size}, but every token of {spec.name} sees "
                "every other; leave it out."
            )
        return None
    if source.block_size is not None:
        return source.block_size
    for name in ("block_size", spec.config_block_field):  # ours, in a model that we saved; theirs
        if fields.get(name) is not None:
            return int(fields[name])
    logger.info(
        "config.json of %s has no block size; taking the published %d. If the checkpoint was "
        "trained with another one, set model.block_size.",
        spec.name,
        spec.block_size,
    )
    return spec.block_size


def _tokenizer(spec: ModelSpec, path: str, revision: str | None) -> PreTrainedTokenizerBase:
    try:
        tokenizer = getattr(transformers, spec.tokenizer).from_pretrained(
            path, revision=revision, trust_remote_code=False
        )
    except (OSError, ValueError) as error:  # not there, or not readable
        raise ValueError(
            f"{path}: no tokenizer can be read there; its files (tokenizer.json, "
            "tokenizer_config.json) belong beside config.json."
        ) from error
    tokenizer.padding_side = "left"
    if isinstance(tokenizer.chat_template, str):
        settings = "".join(
            f"{{%- set {name} = {str(value).lower()} -%}}"
            for name, value in spec.chat_settings.items()
        )
        tokenizer.chat_template = settings + tokenizer.chat_template.removeprefix(settings)
    return tokenizer
