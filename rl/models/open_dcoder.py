"""Open-dCoder-0.5B: Qwen2.5-Coder with a mask token added, full attention, shifted by one.

Open-dLLM, github.com/pengzhangzhi/Open-dLLM. The checkpoint is in Qwen2's own layout.
"""

from typing import Any

from transformers import Qwen2Config

from .native_fields import native_fields
from .spec import ModelSpec
from .tokenizers_tiny import open_dcoder_tokenizer


def config_from(fields: dict[str, Any]) -> Qwen2Config:
    return Qwen2Config(**native_fields(Qwen2Config, fields, "intermediate_size"))


OPEN_DCODER = ModelSpec(
    name="open_dcoder", checkpoints="fredzzp/open-dcoder-0.5B",
    native="Qwen2ForCausalLM", causal=True, shift=1,
    config_from=config_from, head=lambda model, hidden: model.lm_head(hidden),
    requires={"use_sliding_window": False},
    mask_token=("[MASK]",), stop_tokens=("<|endoftext|>", "<|im_end|>"),
    tokenizer="Qwen2Tokenizer", tiny_tokenizer=open_dcoder_tokenizer,
    lora_targets={
        "paper": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        "full": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")},
    tiny_config={"vocab_size": 128, "hidden_size": 64, "intermediate_size": 96,
                 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                 "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
                 "tie_word_embeddings": True},
)  # fmt: skip
