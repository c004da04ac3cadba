"""Prompts and gold completions as tensors: tokenized once, sliced per batch.

    completion = text tokens, then EOS up to a canvas of `pad_to` tokens

LLaDA pads the responses of a mini-batch with EOS to the longest of them and trains on the padding,
so that a model learns to fill the rest of its canvas. Here the canvas has the same length
everywhere: a row's loss then does not depend on who else is in the batch.

Shapes: N rows of the data set, B rows of a batch, Q prompt tokens, L completion tokens.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from estimators import stable_seed
from rl.canvas import check_possible, on_canvas, text_ids
from rl.generation import left_pad, prompt_ids, up_to_stop
from rl.models.loading import LoadedModel

logger = logging.getLogger(__name__)

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SftConfig:
    """The `sft:` section of a recipe.

    t_min: smallest masking ratio; the loss of a token is weighted by 1 / t_min at most.
    pad_to: length of the completion canvas in tokens; "longest" is the longest completion of the
        data set and one EOS.
    supervise_padding: train on the EOS after the first one too, as LLaDA does. Otherwise they are
        shown as masks and not predicted.
    too_long: a row that does not fit its canvas, or the model: stop, cut the completion off, or
        leave the row out. A completion that fills the canvas has no EOS, cut off or not.
    train_size: rows to train on; None is all that the task has.
    """

    t_min: float = 0.01
    pad_to: int | Literal["longest"] = "longest"
    supervise_padding: bool = True
    too_long: Literal["error", "truncate", "drop"] = "error"
    train_size: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.t_min < 1:
            raise ValueError(f"t_min is {self.t_min}; it must be in [0, 1), 0.01 is a good value")
        if self.pad_to != "longest" and self.pad_to < 1:
            raise ValueError(f"pad_to is {self.pad_to}; use a number of tokens, or longest")
        if self.train_size is not None and self.train_size < 1:
            raise ValueError(f"train_size is {self.train_size}; use at least 1, or null for all")


@dataclass(frozen=True, kw_only=True)
class SftRows:
    """A data set for a DataLoader: items are row numbers, `collate` makes them a batch.

    completion_mask: up to and including the first EOS. supervised: tokens that may be masked and
    predicted. key: a number of each row's own, which its masks are drawn from.
    """

    prompts: list[list[int]]
    pad_id: int
    completion_ids: Int[Tensor, "N L"]
    completion_mask: Bool[Tensor, "N L"]
    supervised: Bool[Tensor, "N L"]
    key: Int[Tensor, " N"]

    @property
    def length(self) -> int:
        """Tokens of the completion canvas."""
        return self.completion_ids.shape[1]

    def __len__(self) -> int:
        return len(self.prompts)

    def __getitem__(self, row: int) -> int:
        return row

    def collate(self, rows: Sequence[int]) -> dict[str, Tensor]:
        index = torch.tensor(rows)
        prompt = left_pad([self.prompts[row] for row in rows], self.pad_id)
        named = {
            name: getattr(self, name)[index]
            for name in ("completion_ids", "completion_mask", "supervised", "key")
        }
        return {"prompt_ids": prompt.ids, "prompt_mask": prompt.mask, **named}


def tokenize_rows(loaded: LoadedModel, rows: Sequence[Row], config: SftConfig) -> SftRows:
    """Task rows as tensors; ValueError, with its id, for a row that cannot be trained on."""
    _check_columns(rows)
    texts = text_ids(loaded, [row["completion"] for row in rows])
    prompts = [prompt_ids(loaded.tokenizer, row["prompt"]) for row in rows]
    longest = max(len(text) for text in texts) + 1
    length = longest if config.pad_to == "longest" else config.pad_to
    kept = _fitting(loaded, rows, prompts, texts, length, config.too_long)
    completion_ids = on_canvas(loaded, [texts[i] for i in kept], length)
    check_possible(loaded, [rows[i]["id"] for i in kept], completion_ids)
    mask = up_to_stop(completion_ids, loaded.stop_ids)
    return SftRows(
        prompts=[prompts[i] for i in kept],
        pad_id=loaded.pad_id,
        completion_ids=completion_ids,
        completion_mask=mask,
        supervised=torch.ones_like(mask) if config.supervise_padding else mask,
        key=torch.tensor([stable_seed(rows[i]["id"]) for i in kept]),
    )


def _check_columns(rows: Sequence[Row]) -> None:
    if not rows:
        raise ValueError("the task has no training rows; check its path, split and sft.train_size")
    for row in rows:
        if not isinstance(row.get("completion"), str):
            raise ValueError(
                f"row {row.get('id')!r} has no gold completion (its columns: "
                f"{', '.join(sorted(row))}); supervised training needs a task whose rows have one"
            )


def _fitting(
    loaded: LoadedModel,
    rows: Sequence[Row],
    prompts: Sequence[Sequence[int]],
    texts: Sequence[Sequence[int]],
    length: int,
    too_long: str,
) -> list[int]:
    """The rows to keep; the caller cuts off what is longer than `length`."""
    room = loaded.max_length - length
    large = {i for i, prompt in enumerate(prompts) if len(prompt) > room}
    long = {i for i, text in enumerate(texts) if len(text) > length}
    if too_long == "drop":
        kept = [i for i in range(len(rows)) if i not in large | long]
        logger.info("%d of %d rows do not fit and are left out", len(rows) - len(kept), len(rows))
        if not kept:
            raise ValueError(
                f"none of the {len(rows)} rows fits a canvas of {length} completion tokens in a "
                f"model of {loaded.max_length} tokens; change sft.pad_to"
            )
        return kept
    if large:
        i = min(large)
        raise ValueError(
            f"row {rows[i]['id']!r}: a prompt of {len(prompts[i])} tokens and a canvas of {length} "
            f"exceed the model's {loaded.max_length} ({len(large)} of {len(rows)} rows do); make "
            "sft.pad_to smaller, or set sft.too_long: drop"
        )
    if long and too_long == "error":
        i = min(long)
        raise ValueError(
            f"row {rows[i]['id']!r}: its completion has {len(texts[i])} tokens, more than "
            f"sft.pad_to = {length} ({len(long)} of {len(rows)} rows do); make sft.pad_to larger, "
            "or set sft.too_long to truncate or drop"
        )
    if long:
        logger.info("%d of %d completions are cut off at %d tokens", len(long), len(rows), length)
    return list(range(len(rows)))
