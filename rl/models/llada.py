"""LLaDA-8B (Base, Instruct) and LLaDA-1.5: Llama's weights under their own names, full attention.

Nie et al., arXiv:2502.09992. The native class gives the logits of the hub's code.
"""

from typing import Any

from transformers import LlamaConfig

from .spec import ModelSpec
from .tokenizers_tiny import llada_tokenizer

BLOCK = "model.transformer.blocks.{i}."
LAYER_NAMES = {
    "self_attn.q_proj": "q_proj", "self_attn.k_proj": "k_proj", "self_attn.v_proj": "v_proj",
    "self_attn.o_proj": "attn_out", "mlp.gate_proj": "ff_proj", "mlp.up_proj": "up_proj",
    "mlp.down_proj": "ff_out", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ff_norm",
}  # fmt: skip


def config_from(hub: dict[str, Any]) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=hub.get("embedding_size") or hub["vocab_size"],
        hidden_size=hub["d_model"],
        intermediate_size=hub["mlp_hidden_size"],
        num_hidden_layers=hub["n_layers"],
        num_attention_heads=hub["n_heads"],
        num_key_value_heads=hub.get("n_kv_heads") or hub["n_heads"],
        max_position_embeddings=hub["max_sequence_length"],
        rms_norm_eps=hub["rms_norm_eps"],
        rope_parameters={"rope_type": "default", "rope_theta": hub["rope_theta"]},
        tie_word_embeddings=hub["weight_tying"],
        initializer_range=hub.get("init_std", 0.02),
        bos_token_id=None,
        eos_token_id=hub.get("eos_token_id"),
    )


LLADA = ModelSpec(
    name="llada", checkpoints="GSAI-ML/LLaDA-8B-Base, -Instruct, LLaDA-1.5",
    native="LlamaForCausalLM", causal=True, hub_type="llada", hub_class="LLaDAModelLM",
    config_from=config_from, head=lambda model, hidden: model.lm_head(hidden),
    renames={"model.embed_tokens.": "model.transformer.wte.",
             "model.norm.": "model.transformer.ln_f.", "lm_head.": "model.transformer.ff_out.",
             **{f"model.layers.{{i}}.{a}.": f"{BLOCK}{b}." for a, b in LAYER_NAMES.items()}},
    requires={"block_type": "llama", "activation_type": "silu", "layer_norm_type": "rms",
              "rope": True, "alibi": False, "include_bias": False, "include_qkv_bias": False,
              "attention_layer_norm": False, "input_emb_norm": False, "scale_logits": False},
    mask_token=("<|mdm_mask|>",), mask_id=126336, vocab_size=126464,
    stop_tokens=("<|endoftext|>", "<|eot_id|>"), tokenizer="PreTrainedTokenizerFast",
    tiny_tokenizer=llada_tokenizer,
    lora_targets={  # "paper": what d1's list of Llama names hits among the hub's own
        "paper": ("q_proj", "k_proj", "v_proj", "up_proj"),
        "full": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")},
    tiny_config={"architectures": ["LLaDAModelLM"], "d_model": 64, "n_layers": 2, "n_heads": 4,
                 "n_kv_heads": 4, "mlp_hidden_size": 96, "max_sequence_length": 4096,
                 "rope_theta": 5e5, "rms_norm_eps": 1e-5, "init_std": 0.02, "weight_tying": False,
                 "embedding_size": 128, "block_type": "llama"},
)  # fmt: skip
