r"""open-r1's rewards as published (github.com/huggingface/open-r1), for reproducing numbers only.

Written anew from what they do; each says what is wrong with it. accuracy, len and cosine ask
math-verify as open-r1 does, in worker processes, so that what hangs there costs its time limit.
Ours without the faults: math, tag_format, overlong, cosine, repetition.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

from rewards.base import text_of
from rewards.parity_pool import verdicts

MIDDLE = "\n</think>\n<answer>\n"
CLOSING = re.compile(r"\n</answer>$", re.MULTILINE)
STEPS = re.compile(r"Step \d+:|^\d+\.|\n-|\n\*|First,|Second,|Next,|Finally,")

Values = list[float | None]


def open_r1_accuracy(
    prompts: Sequence[Any], completions: Sequence[Any], solution: Sequence[str], **columns: Any
) -> Values:
    """1.0 or 0.0 by math-verify; None where the gold cannot be parsed.

    Faults: the gold is LaTeX only if the data set delimits it ($...$), else it cannot be parsed;
    "units" normalisation refuses \\frac43 and 11\\sqrt2 though they are the gold; a time-out is
    wrong.
    """
    found = verdicts("open_r1", solution, [text_of(text) for text in completions])
    return [None if each.right is None else each.paid(float(each.right)) for each in found]


def open_r1_format(completion: str) -> float:
    """1.0 for <think>, </think>, <answer>, </answer>, each on a line of its own, in this order.

    Faults: more blocks may stand between them and any text after them, since `.` matches anything
    and `$` the end of any line.
    """
    start = "<think>\n"
    middle = completion.find(MIDDLE, len(start)) if completion.startswith(start) else -1
    if middle < 0:
        return 0.0
    return float(CLOSING.search(completion, middle + len(MIDDLE)) is not None)


def open_r1_tag_count(completion: str) -> float:
    """0.25 for each of the four tags that stands once on its line.

    Faults: order and content do not matter, and no text need be there at all.
    """
    tags = ("<think>\n", "\n</think>\n", "\n<answer>\n", "\n</answer>")
    return 0.25 * sum(completion.count(tag) == 1 for tag in tags)


def open_r1_reasoning_steps(completion: str) -> float:
    """A third, at most three, for each "Step 1:", list item, "First,", "Second,", "Next,"...

    Faults: "First,Second,Next," earns all of it; numbered lists count at the start of the text
    only.
    """
    return min(1.0, len(STEPS.findall(completion)) / 3)


def open_r1_len(
    prompts: Sequence[Any], completions: Sequence[Any], solution: Sequence[str], **columns: Any
) -> Values:
    """0.5 - (n - shortest) / (longest - shortest) for a right answer, at most 0 for a wrong one.

    Faults: gold and answer change places in `verify`, which is not symmetric; a gold that cannot be
    parsed makes every answer right; characters, not tokens; shortest and longest are those of the
    whole batch, so that prompts compete with each other.
    """
    texts = [text_of(text) for text in completions]
    lengths = [len(text) for text in texts]
    shortest, longest = min(lengths, default=0), max(lengths, default=0)
    if shortest == longest:
        return [0.0] * len(texts)
    values: Values = []
    for length, found in zip(lengths, verdicts("open_r1_swapped", solution, texts), strict=True):
        value = 0.5 - (length - shortest) / (longest - shortest)
        values.append(found.paid(min(0.0, value) if found.right is False else value))
    return values


def open_r1_cosine(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    solution: Sequence[str],
    *,
    min_value_wrong: float = -1.0,
    max_value_wrong: float = -0.5,
    min_value_correct: float = 0.5,
    max_value_correct: float = 1.0,
    max_len: int = 1000,
    **columns: Any,
) -> Values:
    """From max to min along half a cosine over `max_len` characters; the reverse if wrong.

    Faults: not clamped, so that a text of 2 max_len characters is worth as much as an empty one;
    gold and answer change places in `verify`; a gold that cannot be parsed earns 1.0.
    """
    texts = [text_of(text) for text in completions]
    values: Values = []
    for text, found in zip(texts, verdicts("open_r1_swapped", solution, texts), strict=True):
        low, high = min_value_correct, max_value_correct
        if found.right is False:
            low, high = max_value_wrong, min_value_wrong
        share = (1.0 + math.cos(math.pi * len(text) / max_len)) / 2
        values.append(found.paid(1.0 if found.right is None else low + (high - low) * share))
    return values


def open_r1_repetition(completion: str, *, ngram_size: int = 3, max_penalty: float = -1.0) -> float:
    """max_penalty (1 - distinct / all) over n-grams of words between spaces, in lower case.

    Faults: a language without spaces has one word.
    """
    if max_penalty > 0:
        raise ValueError(f"max_penalty is {max_penalty}; use 0 or less")
    words = completion.lower().split()
    grams = list(zip(*(words[i:] for i in range(ngram_size)), strict=False))
    return max_penalty * (1 - len(set(grams)) / len(grams)) if grams else 0.0
