"""Fast-dLLM v2: Qwen2.5's weights, block diffusion, predictions shifted by one.

Wu et al., arXiv:2509.26328. Blocks of 32 tokens tile the text from its first token, the prompt
included. The first token of a block is the model's next token after the finished text; the others
are predicted by the state before them, inside the block.
"""

from .dream import config_from
from .spec import ModelSpec
from .tokenizers_tiny import fast_dllm_tokenizer

SEVEN = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

FAST_DLLM_V2 = ModelSpec(
    name="fast_dllm_v2", checkpoints="Efficient-Large-Model/Fast_dLLM_v2_1.5B, _7B",
    native="Qwen2ForCausalLM", causal=True, shift=1, block_size=32, seed_first=True,
    config_block_field="bd_size",
    hub_type="Fast_dLLM_Qwen", hub_class="Fast_dLLM_QwenForCausalLM",
    config_from=config_from, head=lambda model, hidden: model.lm_head(hidden),
    requires={"use_sliding_window": False},
    mask_token=("|<MASK>|",), mask_id=151665,
    stop_tokens=("<|im_end|>", "<|endoftext|>"), tokenizer="Qwen2Tokenizer",
    tiny_tokenizer=fast_dllm_tokenizer,
    lora_targets={"paper": SEVEN, "full": SEVEN},
    tiny_config={"architectures": ["Fast_dLLM_QwenForCausalLM"], "vocab_size": 128,
                 "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
                 "num_attention_heads": 4, "num_key_value_heads": 2, "bd_size": 4,
                 "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
                 "tie_word_embeddings": False, "use_sliding_window": False,
                 "sliding_window": None},
)  # fmt: skip
