"""BERT as a denoiser: bidirectional by class, no shift; the smallest model that trains on a CPU.

Devlin et al., arXiv:1810.04805. Positions are absolute, so left padding must not count.
"""

from typing import Any

from transformers import BertConfig

from .spec import ModelSpec
from .tokenizers_tiny import char_tokenizer


def config_from(fields: dict[str, Any]) -> BertConfig:
    without: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertConfig(**(without | fields))


BERT = ModelSpec(
    name="bert",
    checkpoints="BERT (`google-bert/bert-base-uncased`), or new",
    native="BertForMaskedLM",
    causal=False,
    config_from=config_from,
    head=lambda model, hidden: model.cls(hidden),  # transform, norm and decoder
    ignored=(r"^bert\.pooler\.", r"^cls\.seq_relationship\."),
    mask_token=("<mask>", "[MASK]"),
    stop_tokens=("<eos>", "[SEP]"),
    lora_targets={
        "paper": ("query", "key", "value", "intermediate.dense"),  # the counterpart of LLaDA's
        "full": ("query", "key", "value", "intermediate.dense", "output.dense"),
    },
    tiny_config={
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "max_position_embeddings": 256,
    },
    tiny_tokenizer=char_tokenizer,
)
