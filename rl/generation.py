"""From prompts to token ids and from canvases back to text: shared by training and evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

Prompt = str | list[dict[str, str]]


def is_conversational(prompt: Prompt) -> bool:
    return isinstance(prompt, list)


@dataclass(frozen=True, kw_only=True)
class PromptBatch:
    ids: Int[Tensor, "B Q"]  # left-padded
    mask: Bool[Tensor, "B Q"]


def tokenize_prompts(tokenizer: Any, prompts: Sequence[Prompt], pad_id: int) -> PromptBatch:
    """Plain text is encoded without special tokens; messages go through the chat template."""
    return left_pad([prompt_ids(tokenizer, prompt) for prompt in prompts], pad_id)


def prompt_ids(tokenizer: Any, prompt: Prompt) -> list[int]:
    if is_conversational(prompt):
        encoded = tokenizer.apply_chat_template(
            prompt, add_generation_prompt=True, tokenize=True, return_dict=True
        )
        return list(encoded["input_ids"])
    return list(tokenizer(prompt, add_special_tokens=False)["input_ids"])


def left_pad(rows: Sequence[Sequence[int]], pad_id: int) -> PromptBatch:
    width = max(len(row) for row in rows)
    padded = [[pad_id] * (width - len(row)) + list(row) for row in rows]
    length = torch.tensor([len(row) for row in rows])
    mask = torch.arange(width)[None] >= width - length[:, None]
    return PromptBatch(ids=torch.tensor(padded, dtype=torch.long), mask=mask)


def up_to_stop(completion_ids: Int[Tensor, "B L"], stop_ids: Sequence[int]) -> Bool[Tensor, "B L"]:
    """True up to and including the first end token of each row; everywhere if there is none."""
    stops = torch.tensor(list(stop_ids), device=completion_ids.device)
    is_stop = torch.isin(completion_ids, stops)
    return (is_stop.cumsum(-1) - is_stop.long()) == 0


def decode(
    tokenizer: Any, completion_ids: Int[Tensor, "B L"], completion_mask: Bool[Tensor, "B L"]
) -> list[str]:
    """The text before the first end token."""
    rows = [ids[mask].tolist() for ids, mask in zip(completion_ids, completion_mask, strict=True)]
    return tokenizer.batch_decode(rows, skip_special_tokens=True)


def as_completion(text: str, prompt: Prompt) -> str | list[dict[str, str]]:
    """The form in which TRL's reward protocol passes a completion."""
    return [{"role": "assistant", "content": text}] if is_conversational(prompt) else text
