r"""TRL's rewards as published (trl.rewards, 1.16), for reproducing numbers only.

Written anew from what they do (the tests compare them with TRL's own); each says what is wrong with
it. accuracy and cosine ask math-verify as TRL does, but in worker processes. Ours without the
faults: math, tag_format, overlong, cosine, repetition.
"""

import math
from collections.abc import Sequence
from typing import Any

from rewards.base import text_of
from rewards.parity_pool import verdicts

Values = list[float | None]
Ids = Sequence[Sequence[int]]


def trl_accuracy(
    prompts: Sequence[Any], completions: Sequence[Any], solution: Sequence[str], **columns: Any
) -> Values:
    """1.0 or 0.0 by math-verify; None where the gold cannot be parsed.

    Faults: the gold is parsed as it is, and undelimited LaTeX is read as its first plain number, so
    that 3 is right for 3-\\sqrt5 (22 % of MATH-500's golds are misread or skipped); "units"
    normalisation refuses \\frac43 though it is the gold. TRL's own hangs on towers of powers; here
    that costs the pool's time limit and is wrong.
    """
    found = verdicts("trl", solution, [text_of(text) for text in completions])
    return [None if each.right is None else each.paid(float(each.right)) for each in found]


def trl_think_format(completion: str) -> float:
    """1.0 if the text begins with <think>, has no second one, and has </think> after it.

    Faults: a template that prefills <think> makes it 0 for ever; a blank block, and nothing after
    it, is fine.
    """
    opened = completion.startswith("<think>") and completion.count("<think>") == 1
    return float(opened and "</think>" in completion)


def trl_cosine(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    solution: Sequence[str],
    completion_ids: Ids,
    *,
    max_len: int = 1000,
    min_value_wrong: float = -1.0,
    max_value_wrong: float = -0.5,
    min_value_correct: float = 0.5,
    max_value_correct: float = 1.0,
    **columns: Any,
) -> Values:
    """From max to min along half a cosine over `max_len` tokens; for a wrong answer the reverse.

    Faults: those of trl_accuracy; the canvas of a diffusion model is `max_len` long whatever it
    says, unless the ids end at the end-of-text token.
    """
    found = verdicts("trl", solution, [text_of(text) for text in completions])
    values: Values = []
    for each, ids in zip(found, completion_ids, strict=True):
        low, high = min_value_correct, max_value_correct
        if each.right is False:
            low, high = max_value_wrong, min_value_wrong
        share = (1.0 + math.cos(math.pi * min(len(ids) / max_len, 1.0))) / 2
        values.append(None if each.right is None else each.paid(low + (high - low) * share))
    return values


def trl_repetition(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    completion_ids: Ids,
    *,
    ngram_size: int = 3,
    max_penalty: float = -1.0,
    **columns: Any,
) -> Values:
    """max_penalty (1 - distinct / all) over n-grams of token ids.

    Faults: padding and a run of end-of-text tokens count as repetition.
    """
    if max_penalty > 0:
        raise ValueError(f"max_penalty is {max_penalty}; use 0 or less")
    values: Values = []
    for ids in completion_ids:
        grams = list(zip(*(ids[i:] for i in range(ngram_size)), strict=False))
        values.append(max_penalty * (1 - len(set(grams)) / len(grams)) if grams else 0.0)
    return values


def trl_soft_overlong(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    completion_ids: Ids,
    *,
    max_completion_len: int = 256,
    soft_punish_cache: int = 64,
    **columns: Any,
) -> Values:
    """0 up to max_completion_len - soft_punish_cache tokens, falling to -1 at max_completion_len.

    Faults: the bounds are not checked; a full canvas always gets -1, unless the ids end at the
    end-of-text token.
    """
    values: Values = []
    for ids in completion_ids:
        over = len(ids) - (max_completion_len - soft_punish_cache)
        if over <= 0:
            values.append(0.0)
        else:
            values.append(-over / soft_punish_cache if over <= soft_punish_cache else -1.0)
    return values
