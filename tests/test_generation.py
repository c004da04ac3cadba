"""Prompts to ids and back."""

import pytest
import torch

from rl.generation import (
    as_completion,
    decode,
    is_conversational,
    left_pad,
    prompt_ids,
    tokenize_prompts,
    up_to_stop,
)
from rl.models.tokenizers_tiny import char_tokenizer, llada_tokenizer

MESSAGES = [{"role": "user", "content": "7+8?"}]


def test_left_padding() -> None:
    batch = left_pad([[5, 6, 7], [8], []], pad_id=9)
    assert batch.ids.tolist() == [[5, 6, 7], [9, 9, 8], [9, 9, 9]]
    assert batch.mask.tolist() == [[True] * 3, [False, False, True], [False] * 3]
    empty = left_pad([[], []], pad_id=9)
    assert empty.ids.shape == empty.mask.shape == (2, 0)
    assert empty.ids.dtype == torch.long


def test_a_token_equal_to_padding_counts_as_a_token() -> None:
    assert left_pad([[9, 5], [5]], pad_id=9).mask.tolist() == [[True, True], [False, True]]


@pytest.mark.parametrize("make", [char_tokenizer, llada_tokenizer])
def test_plain_text_gets_no_special_tokens_and_comes_back(make) -> None:
    tokenizer = make()
    ids = prompt_ids(tokenizer, "7 + 8 = ?")
    assert len(ids) == 9
    assert tokenizer.decode(ids) == "7 + 8 = ?"


def test_messages_go_through_the_chat_template() -> None:
    tokenizer = llada_tokenizer()
    text = tokenizer.decode(prompt_ids(tokenizer, MESSAGES))
    assert text == (
        "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\n7+8?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )


def test_prompts_of_both_kinds_are_padded_together() -> None:
    tokenizer = char_tokenizer()
    assert tokenizer.pad_token_id is not None
    batch = tokenize_prompts(tokenizer, ["7+8?", MESSAGES, "ab"], tokenizer.pad_token_id)
    assert batch.mask.sum(-1).tolist() == [4, 5, 2]  # the template adds a newline
    for ids, mask, text in zip(batch.ids, batch.mask, ("7+8?", "7+8?\n", "ab"), strict=True):
        assert tokenizer.decode(ids[mask]) == text


@pytest.mark.parametrize(
    ("ids", "mask"),
    [
        ([4, 5, 6], [1, 1, 1]),  # none
        ([4, 1, 6], [1, 1, 0]),
        ([1, 4, 1], [1, 0, 0]),  # the first counts
        ([4, 5, 2], [1, 1, 1]),  # at the end
        ([2, 1, 2], [1, 0, 0]),
    ],
)
def test_completions_reach_up_to_and_including_the_first_stop(ids, mask) -> None:
    found = up_to_stop(torch.tensor([ids, [4, 4, 4]]), (1, 2))
    assert found.int().tolist() == [mask, [1, 1, 1]]


def test_text_ends_before_the_stop_token() -> None:
    tokenizer = char_tokenizer()
    eos = tokenizer.eos_token_id
    ids = torch.tensor([[*prompt_ids(tokenizer, "ab "), eos, *prompt_ids(tokenizer, "c")]] * 2)
    mask = torch.tensor([[True] * 4 + [False], [True] * 5])
    assert decode(tokenizer, ids, mask) == ["ab ", "ab c"]


def test_completions_have_the_form_of_their_prompts() -> None:
    assert is_conversational(MESSAGES)
    assert not is_conversational("7+8?")
    assert as_completion("15", "7+8?") == "15"
    assert as_completion("15", MESSAGES) == [{"role": "assistant", "content": "15"}]
