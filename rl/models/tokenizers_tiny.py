"""Character-level tokenizers for models made from scratch: one id per printable ASCII character.

Special tokens come first, so their ids do not depend on the alphabet. No download.
"""

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

ALPHABET = "\n" + "".join(chr(code) for code in range(32, 127))

PLAIN_TEMPLATE = "{% for message in messages %}{{ message['content'] + '\\n' }}{% endfor %}"
LLADA_TEMPLATE = (
    "{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'"
    " + message['content'] | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"
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
