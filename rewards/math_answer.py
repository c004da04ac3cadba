"""Equality of mathematical answers: the same text, the same number, or the same by math-verify.

The first two are decided here, exactly; only what is left goes to the worker processes. Two numbers
are equal as fractions, so 0.30 is 3/10 and 100 is not 101. A number that is no finite decimal can
only be *written* rounded (0.3333333333), so that comparison is left to math-verify as well.
An answer that takes longer than the limit is wrong; the pool counts how often that happens.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

from rewards.base import with_batch
from rewards.extraction import final_answer, last_boxed
from rewards.quantities import LONGEST, as_number
from rewards.worker_pool import WorkerPool

POOL = WorkerPool("rewards.equivalence:equal", workers=2, limit=5.0)

DELIMITERS = re.compile(r"^(?:\$+|\\\(|\\\[)\s*|\s*(?:\$+|\\\)|\\\])$")
NO_MEANING = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[!,;:]|\\ |~")
TEXT = re.compile(r"\\(?:text|textbf|mathrm|mbox)\s*\{([^{}]*)\}")
SPACE_BESIDE_SYMBOL = re.compile(r"(?<![A-Za-z0-9])\s+|\s+(?![A-Za-z0-9])")


def grade_math(
    completions: Sequence[str], answer: Sequence[str], *, pool: WorkerPool = POOL
) -> list[float | None]:
    """1.0 or 0.0 for each completion; equal pairs are compared once."""
    pairs = [
        (bare(gold), bare(final_answer(text) or ""))
        for text, gold in zip(completions, answer, strict=True)
    ]
    known = {pair: decide(*pair) for pair in pairs}
    open_pairs = [pair for pair, verdict in known.items() if verdict is None]
    outcomes = pool.run(open_pairs) if open_pairs else []
    for pair, outcome in zip(open_pairs, outcomes, strict=True):
        known[pair] = outcome.status == "ok" and bool(outcome.value)
    return [float(bool(known[pair])) for pair in pairs]


@with_batch(grade_math)
def math_correct(completion: str, answer: str) -> float | None:
    """1.0 if the completion's final answer equals the gold `answer`, else 0.0."""
    return grade_math([completion], [answer])[0]


def decide(gold: str, answer: str) -> bool | None:
    """What text and exact numbers settle; None if they do not."""
    if not answer or len(answer) > LONGEST:
        return False
    if normalised(gold) == normalised(answer):
        return True
    numbers = as_number(gold), as_number(answer)
    if numbers[0] is None or numbers[1] is None:
        return None
    if numbers[0] == numbers[1]:
        return True
    return False if _is_finite_decimal(numbers[0]) else None


def bare(text: str) -> str:
    r"""An answer without its wrapping: a box, $...$, \(...\), the dot that ends a sentence."""
    text = text.strip()
    if re.match(r"\\(?:boxed|fbox)\s*\{", text):
        text = last_boxed(text) or text
    text = text.removesuffix(".").strip()
    return DELIMITERS.sub("", text).removesuffix(".").strip()


def normalised(answer: str) -> str:
    r"""One spelling for what LaTeX writes in several: \dfrac12 and \frac{1}{2}, \text{B} and B."""
    answer = NO_MEANING.sub("", answer)
    answer = re.sub(r"\\[dt]frac", r"\\frac", answer)
    answer = re.sub(r"\\frac\s*(\d)\s*(\d)(?!\d)", r"\\frac{\1}{\2}", answer)
    answer = TEXT.sub(r"\1", answer)
    return SPACE_BESIDE_SYMBOL.sub("", answer.strip())


def _is_finite_decimal(number: Fraction) -> bool:
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1
