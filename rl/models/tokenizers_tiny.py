"""Character-level tokenizers for models made from scratch: one id per printable ASCII character.

Special tokens come first, so their ids do not depend on the alphabet. No download. Those of Qwen's
class leave other characters out, the rest have an unknown token for them.
"""

from functools import partial

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Tokenizer

ALPHABET = "\n" + "".join(chr(code) for code in range(32, 127))

PLAIN_TEMPLATE = "{% for message in messages %}{{ message['content'] + '\\n' }}{% endfor %}"
LLADA_TEMPLATE = (
    "{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'"
    " + message['content'] | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"
)
CHATML_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% if enable_thinking is defined and not enable_thinking %}"
    "{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}"
)
LING_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<role>' + ('HUMAN' if message['role'] == 'user' else message['role'] | upper) + '</role>'"
    " + message['content'] + '<|role_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<role>ASSISTANT</role>' }}{% endif %}"
)
QUESTION_TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}"
    "{{ '[Answer]\\n' + message['content'] + '\\n[/Answer]\\n\\n' }}{% else %}"
    "{{ '[Question]\\n' + message['content'] + '\\n[/Question]\\n\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '[Answer]\\n' }}{% endif %}"
)


def char_tokenizer() -> PreTrainedTokenizerFast:
    """Specials 0 to 4, then the alphabet; the chat template puts each message on its own line."""
    roles = {
        "pad_token": "<pad>",
        "eos_token": "<eos>",
        "mask_token": "<mask>",
        "bos_token": "<bos>",
        "unk_token": "<unk>",
    }
    return _over_characters(tuple(roles.values()), roles, PLAIN_TEMPLATE)


def llada_tokenizer() -> PreTrainedTokenizerFast:
    """LLaDA's special tokens and template. Like LLaDA's own, it declares no `mask_token`."""
    roles = {
        "bos_token": "<|startoftext|>",
        "eos_token": "<|endoftext|>",
        "pad_token": "<|endoftext|>",
        "unk_token": "<unk>",
    }
    specials = (
        "<|startoftext|>",
        "<|endoftext|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
        "<|mdm_mask|>",
        "<unk>",
    )
    return _over_characters(specials, roles, LLADA_TEMPLATE)


def ling_tokenizer() -> PreTrainedTokenizerFast:
    """The special tokens and the template of LLaDA-MoE and LLaDA2."""
    roles = {"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>", "unk_token": "<unk>"}
    specials = ("<|startoftext|>", "<|endoftext|>", "<|role_end|>", "<|mask|>", "<unk>")
    return _over_characters(specials, roles, LING_TEMPLATE)


def modernbert_tokenizer() -> PreTrainedTokenizerFast:
    """No eos token: an answer ends with [/Answer]."""
    roles = {
        "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]",
        "mask_token": "[MASK]",
    }  # fmt: skip
    specials = (*roles.values(), "[Question]", "[/Question]", "[Answer]", "[/Answer]")
    return _over_characters(specials, roles, QUESTION_TEMPLATE)


def _chatml_tokenizer(mask_token: str, bos_token: str | None = None) -> PreTrainedTokenizerFast:
    """Qwen2's class, bytes as its byte-level alphabet writes them, and no merges."""
    turns = ("<|im_start|>", "<|im_end|>")
    own = (mask_token,) if bos_token is None else (mask_token, bos_token)
    characters = ALPHABET.replace("\n", "\u010a").replace(" ", "\u0120")
    tokens = ("<|endoftext|>", *turns, *own, *characters)
    return Qwen2Tokenizer(
        vocab={token: i for i, token in enumerate(tokens)},
        merges=[],
        bos_token=bos_token,
        mask_token=mask_token,
        additional_special_tokens=list(turns),
        chat_template=CHATML_TEMPLATE,
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )


dream_tokenizer = partial(_chatml_tokenizer, "<|mask|>", "<|beginoftext|>")
open_dcoder_tokenizer = partial(_chatml_tokenizer, "[MASK]")
a2d_tokenizer = partial(_chatml_tokenizer, "<|mask|>")
sdar_tokenizer = partial(_chatml_tokenizer, "<|MASK|>")
fast_dllm_tokenizer = partial(_chatml_tokenizer, "|<MASK>|")


def _over_characters(
    specials: tuple[str, ...], roles: dict[str, str], chat_template: str
) -> PreTrainedTokenizerFast:
    vocabulary = {token: i for i, token in enumerate((*specials, *ALPHABET))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=roles["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(list(specials))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        chat_template=chat_template,
        clean_up_tokenization_spaces=False,
        padding_side="left",
        **roles,
    )
