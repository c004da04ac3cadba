r"""Whether two mathematical answers are the same: math-verify, with what it lets through put right.

It may run for ever and eat any amount of memory ("9^{9^{9^9}}"): call it in a worker process only
(`rewards.worker_pool`), and never turn a parsed answer into a string. Its own time limits are off:
they are signals, and the process is killed anyway.

The gold must be wrapped in $...$: bare LaTeX is read as the first plain number in it, and `3` would
be right for `3-\sqrt{5}`. The gold comes first: `verify` is not symmetric.
"""

import re
from typing import Any

import sympy  # pyright: ignore[reportMissingTypeStubs]
from math_verify import (  # pyright: ignore[reportMissingTypeStubs]
    parse,
    verify,  # pyright: ignore[reportUnknownVariableType]
)

RELATIVE_TOLERANCE = 1e-6
# what math-verify ignores: the base of a number (52_8), the power of a unit (\text{cm}^2)
IGNORED = (
    re.compile(r"\d_\{?(\d+)\}?"),
    re.compile(r"\\(?:text|mbox|mathrm)\s*\{[^{}]*\}\s*\^\s*\{?(\d+)\}?"),
)


def equal(gold: str, answer: str) -> bool:
    """True if math-verify says so, bases and units do not differ, and numbers are close."""
    for pattern in IGNORED:
        said = set(pattern.findall(gold)), set(pattern.findall(answer))
        if all(said) and said[0] != said[1]:
            return False
    golds: list[Any] = parse(f"${gold}$", parsing_timeout=None)  # pyright: ignore
    answers: list[Any] = parse(f"\\boxed{{{answer}}}", parsing_timeout=None)  # pyright: ignore
    if not golds or not answers or not verify(golds, answers, timeout_seconds=None):  # pyright: ignore
        return False
    # it rounds to 6 decimals: 1/303! would equal 1/305!. It takes 35% for 35, which is left alone.
    return "%" in gold + answer or _close(golds[0], answers[0])


def _close(gold: Any, answer: Any) -> bool:
    """False if both are numbers and far apart."""
    if not all(isinstance(x, sympy.Expr) and not x.free_symbols for x in (gold, answer)):
        return True
    a, b = (x.evalf(30) for x in (gold, answer))
    if not (a.is_number and b.is_number):
        return True
    return bool(abs(a - b) <= RELATIVE_TOLERANCE * max(abs(a), abs(b)))
