"""Dream-7B, Dream-Coder, DiffuCoder: Qwen2's weights, full attention, predictions shifted by one.

Ye et al., arXiv:2508.15487; Gong et al., arXiv:2506.20639. Adapted from Qwen2.5, which predicts the
next token; the training kept that, so the hidden state at p - 1 predicts token p.
"""

from typing import Any

from transformers import Qwen2Config

from .native_fields import native_fields
from .spec import ModelSpec
from .tokenizers_tiny import dream_tokenizer


def config_from(hub: dict[str, Any]) -> Qwen2Config:
    return Qwen2Config(**native_fields(Qwen2Config, hub, "intermediate_size"))


DREAM = ModelSpec(
    name="dream",
    checkpoints="Dream-org/Dream-v0-Base-7B, -Instruct-7B, Dream-Coder; apple/DiffuCoder-7B",
    native="Qwen2ForCausalLM", causal=True, shift=1, hub_type="Dream", hub_class="DreamModel",
    config_from=config_from, head=lambda model, hidden: model.lm_head(hidden),
    requires={"use_sliding_window": False, "use_mrope": False},
    mask_token=("<|mask|>",), mask_id=151666, vocab_size=152064,
    stop_tokens=("<|endoftext|>", "<|im_end|>"), tokenizer="Qwen2Tokenizer",
    tiny_tokenizer=dream_tokenizer,
    lora_targets={  # the published list of Llama names hits all seven here
        "paper": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        "full": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")},
    tiny_config={"architectures": ["DreamModel"], "vocab_size": 128, "hidden_size": 64,
                 "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                 "num_key_value_heads": 2, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
                 "rope_theta": 1e6, "tie_word_embeddings": False, "use_sliding_window": False,
                 "sliding_window": None},
)  # fmt: skip
