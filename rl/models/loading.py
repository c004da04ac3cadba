"""From a recipe's `model:` section to a denoiser: model, tokenizer and token ids that agree.

Cheap checks come first: tokens and LoRA names are settled before a weight is read.
"""

from dataclasses import asdict, dataclass

import transformers
from peft import PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled

from . import MODELS
from .checkpoint import native_config, read_checkpoint
from .fresh import new_fields, new_model
from .lora import adapter_base, check_targets, is_adapter, load_adapter
from .source import DTYPES, ModelSource, family
from .spec import ModelSpec
from .token_ids import resolve_token_ids
from .weights import load_weights, save_native

__all__ = ["LoadedModel", "load", "save_native"]


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """stop_ids[0] is eos. forbidden_ids: a sampler must give them probability 0."""

    model: PreTrainedModel | PeftModel
    tokenizer: PreTrainedTokenizerBase
    spec: ModelSpec
    mask_id: int
    pad_id: int
    stop_ids: tuple[int, ...]
    forbidden_ids: tuple[int, ...]

    @property
    def vocab_size(self) -> int:
        """Embedding rows, which may be more than the tokenizer has tokens."""
        return self.model.config.vocab_size

    @property
    def max_length(self) -> int:
        """Prompt and completion together."""
        return self.model.config.max_position_embeddings


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
    else:
        checkpoint = read_checkpoint(spec, path, revision)
        fields, config = checkpoint.fields, checkpoint.config
        tokenizer = _tokenizer(spec, path, revision)
    ids = resolve_token_ids(spec, tokenizer, fields, config.vocab_size)
    if source.lora_spec is not None:
        check_targets(spec, config, source.lora_spec)
    dtype = DTYPES[source.dtype]
    if checkpoint is None:
        model = new_model(spec, config, seed=seed, dtype=dtype)
    else:
        model = load_weights(spec, checkpoint, dtype=dtype, in_4bit=source.load_in_4bit)
    setattr(model.config, spec.config_mask_field, ids.mask_id)  # saved, and checked on reload
    if adapter is not None:
        zero3 = is_deepspeed_zero3_enabled()
        model = load_adapter(model, adapter, training=training, zero3=zero3)
    if not training:
        model.requires_grad_(False)
    model.train(training)
    return LoadedModel(model=model, tokenizer=tokenizer, spec=spec, **asdict(ids))


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
    return tokenizer
