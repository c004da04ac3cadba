"""LLaDA-MoE-7B-A1B (Base, Instruct): Qwen3's mixture of experts, full attention.

Zhu et al., arXiv:2509.24389. A softmax over 64 experts, of which 8 run, not normalised again. The
experts are 3-D parameters, so adapters go on the attention.
"""

from typing import Any

from transformers import Qwen3MoeConfig

from .native_fields import native_fields
from .spec import ModelSpec
from .tokenizers_tiny import ling_tokenizer


def config_from(hub: dict[str, Any]) -> Qwen3MoeConfig:
    sparse = hub.get("moe_layer_freq") or [1] * hub["num_hidden_layers"]
    fields = native_fields(Qwen3MoeConfig, hub, "num_experts", "num_experts_per_tok") | {
        "intermediate_size": hub.get("dense_intermediate_size") or hub["expert_intermediate_size"],
        "moe_intermediate_size": hub["expert_intermediate_size"],
        "mlp_only_layers": [layer for layer, is_sparse in enumerate(sparse) if not is_sparse],
        "norm_topk_prob": bool(hub.get("norm_topk_prob")),
        "head_dim": hub["hidden_size"] // hub["num_attention_heads"],
        "output_router_logits": False,
    }
    return Qwen3MoeConfig(**fields)


LLADA_MOE = ModelSpec(
    name="llada_moe", checkpoints="inclusionAI/LLaDA-MoE-7B-A1B-Base, -Instruct",
    native="Qwen3MoeForCausalLM", causal=True, hub_type="llada", hub_class="LLaDAMoEModelLM",
    config_from=config_from, head=lambda model, hidden: model.lm_head(hidden),
    requires={"qk_layernorm": True, "attention_bias": False, "clip_qkv": None,
              "moe_router_enable_expert_bias": False, "moe_router_score_function": "softmax",
              "routed_scaling_factor": 1, "partial_rotary_factor": 1},
    mask_token=("<|mask|>",), mask_id=156895, vocab_size=157184,
    stop_tokens=("<|endoftext|>", "<|role_end|>"), tokenizer="PreTrainedTokenizerFast",
    tiny_tokenizer=ling_tokenizer,
    lora_targets={"paper": ("q_proj", "k_proj", "v_proj", "o_proj"),
                  "full": ("q_proj", "k_proj", "v_proj", "o_proj")},
    tiny_config={"architectures": ["LLaDAMoEModelLM"], "vocab_size": 128, "hidden_size": 64,
                 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
                 "num_experts": 4, "num_experts_per_tok": 2, "expert_intermediate_size": 32,
                 "dense_intermediate_size": 96, "moe_layer_freq": [1, 1], "norm_topk_prob": None,
                 "qk_layernorm": True, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
                 "rope_theta": 5e4, "tie_word_embeddings": False},
)  # fmt: skip
