"""SDAR, TraDo and DiRL: Qwen3's weights, block diffusion.

Cheng et al., arXiv:2510.06303; TraceRL, arXiv:2509.06949. Blocks tile the text from its first
token, the prompt included. Released sizes are 4 to 64 and the weights do not tell them apart.
"""

from typing import Any

from transformers import Qwen3Config

from .native_fields import native_fields
from .spec import ModelSpec
from .tokenizers_tiny import sdar_tokenizer


def config_from(hub: dict[str, Any]) -> Qwen3Config:
    return Qwen3Config(**native_fields(Qwen3Config, hub, "intermediate_size", "head_dim"))


SDAR = ModelSpec(
    name="sdar",
    checkpoints="JetLM/SDAR-1.7B, -4B, -8B-Chat; Gen-Verse/TraDo-4B, -8B; OpenMOSS DiRL-8B",
    native="Qwen3ForCausalLM", causal=True, block_size=4,
    hub_type="sdar", hub_class="SDARForCausalLM",
    config_from=config_from, head=lambda model, hidden: model.lm_head(hidden),
    requires={"use_sliding_window": False},
    mask_token=("<|MASK|>",), mask_id=151669, vocab_size=151936,
    stop_tokens=("<|endoftext|>", "<|im_end|>"), tokenizer="Qwen2Tokenizer",
    tiny_tokenizer=sdar_tokenizer,
    lora_targets={
        "paper": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        "full": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")},
    tiny_config={"architectures": ["SDARForCausalLM"], "vocab_size": 128, "hidden_size": 64,
                 "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                 "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 4096,
                 "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": False,
                 "use_sliding_window": False, "block_size": 4},
)  # fmt: skip
