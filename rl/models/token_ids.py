"""Which ids mask, pad and stop, and which a sampler may never write.

The tokenizer decides, by token string. A checkpoint's config and the published id may only agree:
training with the wrong mask token runs without an error and learns nothing.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from .spec import ModelSpec

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TokenIds:
    """stop_ids: every id that ends an answer, the tokenizer's eos first."""

    mask_id: int
    pad_id: int
    stop_ids: tuple[int, ...]
    forbidden_ids: tuple[int, ...]


def resolve_token_ids(
    spec: ModelSpec,
    tokenizer: PreTrainedTokenizerBase,
    fields: Mapping[str, Any],
    vocab_size: int,
) -> TokenIds:
    """`fields` is the checkpoint's config.json; `vocab_size` its number of embedding rows."""
    vocabulary = tokenizer.get_vocab()
    if max(vocabulary.values()) >= vocab_size:
        raise ValueError(
            f"the tokenizer has ids up to {max(vocabulary.values())}, but the model has "
            f"{vocab_size} embedding rows (0 to {vocab_size - 1}). Use the tokenizer that the "
            "checkpoint was trained with, or make the vocabulary of a new model larger."
        )
    mask_id = _mask_id(spec, vocabulary, fields, vocab_size)
    stop_ids = _stop_ids(spec, tokenizer, vocabulary)
    pad_id = stop_ids[0]
    if tokenizer.pad_token is None:
        logger.info("the tokenizer has no padding token; padding with eos (id %d)", pad_id)
    else:
        pad_id = vocabulary[str(tokenizer.pad_token)]
    roles = (tokenizer.bos_token, tokenizer.cls_token, tokenizer.unk_token)
    never = {mask_id, pad_id, *(vocabulary[str(token)] for token in roles if token is not None)}
    never -= set(stop_ids)
    never |= set(range(vocab_size)) - set(vocabulary.values())
    return TokenIds(
        mask_id=mask_id, pad_id=pad_id, stop_ids=stop_ids, forbidden_ids=tuple(sorted(never))
    )


def _mask_id(
    spec: ModelSpec, vocabulary: Mapping[str, int], fields: Mapping[str, Any], vocab_size: int
) -> int:
    token = next((t for t in spec.mask_token if t in vocabulary), None)
    if token is None:
        raise ValueError(
            f"the tokenizer ({len(vocabulary)} tokens) has no mask token of the {spec.name} "
            f"family: tried {', '.join(spec.mask_token)}. A model without one was not trained to "
            "denoise; use a diffusion checkpoint of this family, or its own tokenizer files."
        )
    in_config = fields.get(spec.config_mask_field)
    in_table = spec.mask_id if vocab_size == spec.vocab_size else None
    if any(other not in (None, vocabulary[token]) for other in (in_config, in_table)):
        raise ValueError(
            f"the mask id of {spec.name} is not certain: the tokenizer says "
            f"{vocabulary[token]} ({token}), {spec.config_mask_field} in config.json says "
            f"{_or_nothing(in_config)}, the published value says {_or_nothing(in_table)}. Correct "
            "the file that is wrong: tokenizer and weights may be from different checkpoints."
        )
    return vocabulary[token]


def _or_nothing(value: int | None) -> str:
    return "nothing" if value is None else str(value)


def _stop_ids(
    spec: ModelSpec, tokenizer: PreTrainedTokenizerBase, vocabulary: Mapping[str, int]
) -> tuple[int, ...]:
    found = [vocabulary[token] for token in spec.stop_tokens if token in vocabulary]
    if tokenizer.eos_token is not None:
        found.insert(0, vocabulary[str(tokenizer.eos_token)])
    if not found:
        raise ValueError(
            f"the tokenizer has no end token: its eos_token is not set and none of "
            f"{', '.join(spec.stop_tokens)} is in its vocabulary. Answers could never end; "
            "set eos_token in tokenizer_config.json."
        )
    return tuple(dict.fromkeys(found))
