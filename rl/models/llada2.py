"""LLaDA2.0 and 2.1 (mini, flash): block diffusion over a mixture of experts.

Bie et al., arXiv:2512.15745. Blocks of 32 tokens tile the text from its first token, the prompt
included. transformers reads these weights through its entry for Sarvam's models, which share the
Ling layout (one fused query_key_value). The router's bias stays in float32.
"""

from typing import Any

from transformers import SarvamMoEConfig

from .native_fields import native_fields
from .spec import ModelSpec
from .tokenizers_tiny import ling_tokenizer

EXPERTS = (
    "num_experts", "num_experts_per_tok", "num_shared_experts", "moe_intermediate_size",
    "intermediate_size", "first_k_dense_replace", "n_group", "topk_group", "routed_scaling_factor",
)  # fmt: skip


def config_from(hub: dict[str, Any]) -> SarvamMoEConfig:
    fields = native_fields(SarvamMoEConfig, hub, *EXPERTS) | {
        "head_dim": hub.get("head_dim") or hub["hidden_size"] // hub["num_attention_heads"],
        "sliding_window": None,  # 4096 in the hub's config, where nothing uses it
        "output_router_logits": False,
    }
    return SarvamMoEConfig(**fields)


LLADA2 = ModelSpec(
    name="llada2", checkpoints="inclusionAI/LLaDA2.0-mini, -flash, LLaDA2.1-mini, -flash",
    native="Glm4MoeForCausalLM", config_class="SarvamMoEConfig", causal=True, block_size=32,
    hub_type="llada2_moe", hub_class="LLaDA2MoeModelLM",
    config_from=config_from, head=lambda model, hidden: model.lm_head(hidden),
    requires={"use_qk_norm": True, "use_sliding_window": False, "use_bias": False,
              "score_function": "sigmoid", "norm_head": False},
    mask_token=("<|mask|>",), mask_id=156895, vocab_size=157184,
    stop_tokens=("<|endoftext|>", "<|role_end|>"), tokenizer="PreTrainedTokenizerFast",
    tiny_tokenizer=ling_tokenizer,
    lora_targets={  # "full" adds the dense layer and the shared expert
        "paper": ("q_proj", "k_proj", "v_proj", "o_proj"),
        "full": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")},
    tiny_config={"architectures": ["LLaDA2MoeModelLM"], "vocab_size": 128, "hidden_size": 64,
                 "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                 "num_key_value_heads": 2, "head_dim": 16, "num_experts": 8, "n_group": 4,
                 "num_experts_per_tok": 2, "num_shared_experts": 1, "topk_group": 2,
                 "moe_intermediate_size": 32, "first_k_dense_replace": 1, "norm_topk_prob": True,
                 "routed_scaling_factor": 2.5, "use_qk_norm": True, "sliding_window": 4096,
                 "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 6e5,
                 "partial_rotary_factor": 0.5, "tie_word_embeddings": False, "block_size": 4},
)  # fmt: skip
