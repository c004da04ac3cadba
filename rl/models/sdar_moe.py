"""SDAR-30B-A3B: the mixture of experts of the SDAR family, Qwen3Moe's weights.

Cheng et al., arXiv:2510.06303. Blocks as in sdar.py; adapters go on the attention.
"""

from typing import Any

from transformers import Qwen3MoeConfig

from .native_fields import native_fields
from .spec import ModelSpec
from .tokenizers_tiny import sdar_tokenizer

EXPERTS = ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob")


def config_from(hub: dict[str, Any]) -> Qwen3MoeConfig:
    fields = native_fields(Qwen3MoeConfig, hub, "intermediate_size", "head_dim", *EXPERTS)
    return Qwen3MoeConfig(**fields | {"output_router_logits": False, "head_dim": hub["head_dim"]})


SDAR_MOE = ModelSpec(
    name="sdar_moe", checkpoints="JetLM/SDAR-30B-A3B-Chat",
    native="Qwen3MoeForCausalLM", causal=True, block_size=4,
    hub_type="sdar_moe", hub_class="SDARMoeForCausalLM",
    config_from=config_from, head=lambda model, hidden: model.lm_head(hidden),
    requires={"use_sliding_window": False},
    mask_token=("<|MASK|>",), mask_id=151669, vocab_size=151936,
    stop_tokens=("<|endoftext|>", "<|im_end|>"), tokenizer="Qwen2Tokenizer",
    tiny_tokenizer=sdar_tokenizer,
    lora_targets={"paper": ("q_proj", "k_proj", "v_proj", "o_proj"),
                  "full": ("q_proj", "k_proj", "v_proj", "o_proj")},
    tiny_config={"architectures": ["SDARMoeForCausalLM"], "vocab_size": 128, "hidden_size": 64,
                 "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                 "num_key_value_heads": 2, "head_dim": 16, "num_experts": 4, "block_size": 4,
                 "num_experts_per_tok": 2, "moe_intermediate_size": 32, "norm_topk_prob": True,
                 "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
                 "tie_word_embeddings": False, "use_sliding_window": False},
)  # fmt: skip
