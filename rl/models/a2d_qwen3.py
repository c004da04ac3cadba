"""Tiny-A2D from Qwen3: a causal model turned into a masked one, full attention, no shift.

Zhou et al., dLLM, arXiv:2602.22661. The mask token was added, so its id is the tokenizer's to say.
The checkpoints of the bd3lm kind see the text in blocks and are another family.
"""

from typing import Any

from transformers import Qwen3Config

from .native_fields import native_fields
from .spec import ModelSpec
from .tokenizers_tiny import a2d_tokenizer


def config_from(hub: dict[str, Any]) -> Qwen3Config:
    return Qwen3Config(**native_fields(Qwen3Config, hub, "intermediate_size"))


A2D_QWEN3 = ModelSpec(
    name="a2d_qwen3", checkpoints="dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1",
    native="Qwen3ForCausalLM", causal=True, hub_type="a2d-qwen3",
    config_from=config_from, head=lambda model, hidden: model.lm_head(hidden),
    requires={"use_sliding_window": False},
    mask_token=("<|mask|>",), stop_tokens=("<|endoftext|>", "<|im_end|>"),
    tokenizer="Qwen2Tokenizer", tiny_tokenizer=a2d_tokenizer,
    chat_settings={"enable_thinking": False},
    lora_targets={
        "paper": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        "full": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")},
    tiny_config={"architectures": ["A2DQwen3LMHeadModel"], "vocab_size": 128, "hidden_size": 64,
                 "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                 "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 4096,
                 "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": True},
)  # fmt: skip
