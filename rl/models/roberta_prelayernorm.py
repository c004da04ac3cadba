"""RoBERTa with the norm before each block, as LLaDA has it: the model of the CPU quickstart.

Ott et al., fairseq, arXiv:1904.01038. The same size of BERT, with the norm after each block, does
not start to learn on every seed.
"""

from typing import Any

from transformers import RobertaPreLayerNormConfig

from .spec import ModelSpec
from .tokenizers_tiny import char_tokenizer


def config_from(fields: dict[str, Any]) -> RobertaPreLayerNormConfig:
    own: dict[str, Any] = {
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "type_vocab_size": 1,
    }
    return RobertaPreLayerNormConfig(**(own | fields))


ROBERTA_PRELAYERNORM = ModelSpec(
    name="roberta_prelayernorm",
    checkpoints="new, the model of the quickstart",
    native="RobertaPreLayerNormForMaskedLM",
    causal=False,
    config_from=config_from,
    head=lambda model, hidden: model.lm_head(hidden),  # dense, norm and decoder
    ignored=(r"^roberta_prelayernorm\.pooler\.",),
    mask_token=("<mask>",),
    stop_tokens=("<eos>", "</s>"),
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
