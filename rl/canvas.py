"""A given text as a completion: its tokens, then EOS up to the end of the canvas.

A text that fills the canvas has no EOS.

Shapes: B texts, L completion tokens.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from rl.models.loading import LoadedModel


def text_ids(loaded: LoadedModel, texts: Sequence[str]) -> list[list[int]]:
    return loaded.tokenizer(list(texts), add_special_tokens=False)["input_ids"]  # pyright: ignore


def on_canvas(
    loaded: LoadedModel, texts: Sequence[Sequence[int]], length: int
) -> Int[Tensor, "B {length}"]:
    """What is longer than `length` is cut off; whether it may be is for the caller to say."""
    eos = loaded.stop_ids[0]
    return torch.tensor([[*ids[:length], *[eos] * (length - len(ids))] for ids in texts])


def check_possible(
    loaded: LoadedModel, rows: Sequence[str], completion_ids: Int[Tensor, "B L"]
) -> None:
    """A denoiser gives some ids probability 0; one in a given text makes a loss infinite.

    rows: what each text is called in the error.
    """
    forbidden = torch.isin(completion_ids, torch.tensor(loaded.forbidden_ids, dtype=torch.long))
    if bool(forbidden.any()):
        i, place = forbidden.nonzero()[0].tolist()
        token = loaded.tokenizer.convert_ids_to_tokens(int(completion_ids[i, place]))
        raise ValueError(
            f"row {rows[i]!r}: token {place} of its completion is {token!r}, which a sampler "
            "may never write (mask, padding, unknown, beginning of text); remove it from the text, "
            "or use a tokenizer that knows the characters"
        )
