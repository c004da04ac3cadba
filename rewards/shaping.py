r"""Rewards that shape length and repetition, beside a reward for being right.

    overlong     0 up to L - B, then down to -1 at L and beyond: (L - B - n) / B
                 DAPO, eq. 13 (arXiv:2503.14476); n length, L max_length, B buffer
    cosine       low + (high - low) (1 + cos(pi min(n / L, 1))) / 2
                 arXiv:2502.03373, C.1: 1 to 0.5 for a right answer, so that short is better, and
                 -1 to -0.5 for a wrong one, so that a longer try costs less
    repetition   p (1 - distinct n-grams / n-grams), at least p = max_penalty
                 arXiv:2502.03373, C.2

These have TRL's signature, since a length in tokens is known for the whole batch only. A masked
diffusion model fills its canvas with end-of-text: the trainer passes `completion_ids` up to the
first end token; where they hold more, name the end tokens in `end_ids`. Without ids use
`unit: characters` (repetition: words); nothing changes its unit silently.
"""

import inspect
import math
from collections.abc import Sequence
from typing import Any, Literal

from rewards.base import per_completion, text_of
from rewards.extraction import first_turn
from rewards.values import Unsettled, total

Values = list[float | None]
Ids = Sequence[Sequence[int]]


def overlong(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    completion_ids: Ids | None = None,
    *,
    max_length: int = 256,
    buffer: int = 64,
    unit: Literal["tokens", "characters"] = "tokens",
    end_ids: Sequence[int] = (),
    **columns: Any,
) -> Values:
    """0 for a completion that ends `buffer` before `max_length` or sooner, falling to -1."""
    if not 0 < buffer <= max_length:
        raise ValueError(
            f"overlong: buffer is {buffer} and max_length {max_length}; 0 < buffer <= max_length"
        )
    lengths = _lengths("overlong", completions, completion_ids, unit, end_ids)
    return [max(-1.0, min(0.0, (max_length - buffer - length) / buffer)) for length in lengths]


def cosine(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    completion_ids: Ids | None = None,
    *,
    reward: str = "math",
    max_length: int = 256,
    right: tuple[float, float] = (1.0, 0.5),
    wrong: tuple[float, float] = (-1.0, -0.5),
    unit: Literal["tokens", "characters"] = "tokens",
    end_ids: Sequence[int] = (),
    **columns: Any,
) -> Values:
    """A value along half a cosine of the length, from one end of `right` or `wrong` to the other.

    right, wrong: the values at length 0 and at `max_length`; longer ones stay at the latter.

    reward: the grader of `rewards.REWARDS` that says what is right (1 or more); what it skips
    (None) is skipped here.
    """
    from rewards import REWARDS  # the registry has this function too

    if max_length < 1:
        raise ValueError(f"cosine: max_length is {max_length}; use 1 or more")
    if reward not in REWARDS or "completions" in inspect.signature(REWARDS[reward]).parameters:
        raise ValueError(f"cosine: reward is {reward!r}; use the name of a grader")
    scores = per_completion(REWARDS[reward])(prompts, completions, **columns)
    lengths = _lengths("cosine", completions, completion_ids, unit, end_ids)
    values: Values = []
    for score, length in zip(scores, lengths, strict=True):
        known = total(score)
        first, last = right if known is not None and known >= 1 else wrong
        share = (1 + math.cos(math.pi * min(length / max_length, 1.0))) / 2
        value = last + (first - last) * share
        if isinstance(score, Unsettled):
            value = Unsettled(value, score.failed)
        values.append(None if known is None else value)
    return values


def repetition(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    completion_ids: Ids | None = None,
    *,
    ngram: int = 3,
    max_penalty: float = -1.0,
    unit: Literal["tokens", "words"] = "tokens",
    end_ids: Sequence[int] = (),
    **columns: Any,
) -> Values:
    """`max_penalty` times the share of the n-grams that were there before."""
    if ngram < 1 or max_penalty > 0:
        raise ValueError(
            f"repetition: ngram is {ngram} and max_penalty {max_penalty}; use ngram >= 1 and "
            f"max_penalty <= 0"
        )
    values: Values = []
    for row in range(len(completions)):
        if unit == "words":
            items: Sequence[Any] = first_turn(text_of(completions[row])).casefold().split()
        else:
            items = _before_end(_ids("repetition", completion_ids, "words")[row], end_ids)
        grams = list(zip(*(items[i:] for i in range(ngram)), strict=False))
        values.append(max_penalty * (1 - len(set(grams)) / len(grams)) if grams else 0.0)
    return values


def _lengths(
    name: str,
    completions: Sequence[Any],
    completion_ids: Ids | None,
    unit: str,
    end_ids: Sequence[int],
) -> list[int]:
    if unit == "characters":
        return [len(first_turn(text_of(completion))) for completion in completions]
    rows = _ids(name, completion_ids, "characters")
    return [len(_before_end(row, end_ids)) for row in rows]


def _ids(name: str, completion_ids: Ids | None, other: str) -> Ids:
    if completion_ids is None:
        raise ValueError(
            f"{name}: there are no completion_ids to count tokens in; set unit: {other}"
        )
    return completion_ids


def _before_end(ids: Sequence[int], end_ids: Sequence[int]) -> Sequence[int]:
    """The tokens before the first end token."""
    ends = set(end_ids)
    return ids[: next((i for i, token in enumerate(ids) if token in ends), len(ids))]
