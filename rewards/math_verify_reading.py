r"""math-verify as one reader among ours, and as published. Only for a worker process.

The gold must be wrapped in $...$: bare LaTeX is read as the first plain number in it, and `3` would
be right for `3-\sqrt{5}`. The gold comes first: `verify` is not symmetric. Its own time limits are
off: they are signals, and the process is killed anyway. Never turn a parsed answer into a string.
"""

import re
from typing import Any

from math_verify import (  # pyright: ignore[reportMissingTypeStubs]
    LatexExtractionConfig,
    parse,
    verify,  # pyright: ignore[reportUnknownVariableType]
)

# what it reads and `latex_expression` does not; any other command is a slip
KNOWN = re.compile(
    r"\\(?:gcd|lcm|max|min)\s*(?:\(|\\?\{)|\\operatorname\s*\{\s*(?:gcd|lcm)\s*\}|\\bmod(?![A-Za-z])"
)
UNEVALUATED = re.compile(r"\\(?:int|iint|oint|sum|prod|lim|det|frac\s*\{\s*d\s*\})(?![A-Za-z])")
WORD = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{3,}|\\text|\\begin")
NESTED_POWER = re.compile(r"\^[^=,<>]*\^[^=,<>]*\^|!\s*\)*\s*[!^]|\d{40}")
NAME = re.compile(r"\\[A-Za-z]+|[A-Za-z]")


def equal_by_math_verify(gold: str, answer: str) -> bool:
    """True if math-verify reads all of both texts and finds them equal.

    Refused before it is asked: words, what may be too large to compute, an integral or sum that
    restates the question; and letters that differ, which it reads without their case.
    """
    texts = gold, answer
    refused = any(p.search(t) for p in (UNEVALUATED, WORD, NESTED_POWER) for t in texts)
    if refused or not any(map(KNOWN.search, texts)):
        return False
    letters = [{n for n in NAME.findall(text) if len(n) == 1} for text in texts]
    if letters[0] != letters[1]:
        return False
    # LaTeX only: its second reading takes the first number of a text that it cannot read
    golds, answers = map(_read, texts)
    return bool(golds and answers and verify(golds, answers, timeout_seconds=None))


def _read(latex: str) -> list[Any]:
    only = [LatexExtractionConfig()]
    return parse(f"${latex}$", only, "no_fallback", parsing_timeout=None)  # pyright: ignore


def as_published(gold: str, completion: str) -> bool:
    """`verify(parse($gold$), parse(completion))`, with every default but the two signals."""
    golds: list[Any] = parse(f"${gold}$", parsing_timeout=None)  # pyright: ignore
    answers: list[Any] = parse(completion, parsing_timeout=None)  # pyright: ignore
    return bool(verify(golds, answers, timeout_seconds=None))


_read(r"\gcd(4, 6) + \frac{1}{2}")  # the first reading takes a second: not within a call's limit
