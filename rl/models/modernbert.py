"""ModernBERT as a chat model: bidirectional by class, no shift, local attention in most layers.

Warner et al., arXiv:2412.13663, trained further by dLLM, arXiv:2602.22661.
"""

from typing import Any

from transformers import ModernBertConfig

from .spec import ModelSpec
from .tokenizers_tiny import modernbert_tokenizer


def config_from(fields: dict[str, Any]) -> ModernBertConfig:
    names = ("pad_token_id", "eos_token_id", "bos_token_id", "cls_token_id", "sep_token_id")
    own: dict[str, Any] = dict.fromkeys(names)  # the class's are those of its own vocabulary
    return ModernBertConfig(**(own | fields))


MODERNBERT = ModelSpec(
    name="modernbert", checkpoints="dllm-hub/ModernBERT-base-chat-v0.1, -large-chat-v0.1",
    native="ModernBertForMaskedLM", causal=False,
    config_from=config_from, head=lambda model, hidden: model.decoder(model.head(hidden)),
    mask_token=("[MASK]",), mask_id=50284, vocab_size=50368, stop_tokens=("[/Answer]", "[SEP]"),
    tiny_tokenizer=modernbert_tokenizer,
    lora_targets={"paper": ("Wqkv", "Wi"), "full": ("Wqkv", "Wi", "Wo")},  # paper: as on LLaDA
    tiny_config={"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                 "intermediate_size": 96, "max_position_embeddings": 1024,
                 "global_attn_every_n_layers": 2, "local_attention": 8},
)  # fmt: skip
