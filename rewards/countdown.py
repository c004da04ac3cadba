r"""Does an expression reach the target with each given number used exactly once?

The grammar is that of `rewards.arithmetic`: + - * / and brackets in plain, Unicode or LaTeX
spelling, over exact fractions. The answer may be written as an equation, by one rule: every side
has the target as its value, and the first side with an operator (if none has one, the first side)
uses the given numbers, each once. So "3+4=7", "7=3+4" and "(1+2)*4 = 3*4 = 12" are right, and
"3+4=8" is wrong whatever stands before it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, cast

from rewards.arithmetic import NotAnExpression, evaluate, tokenise
from rewards.declared import declared_or_whole
from rewards.extraction import Mode, reads_answer

LONGEST = 300  # characters, and PER_NUMBER more for each given number
PER_NUMBER = 30
SIDES = 8  # of an equation


@reads_answer
def countdown_reached(
    completion: str,
    numbers: Sequence[int] | str,
    target: int | str,
    *,
    style: str = "auto",
    mode: Mode = "strict",
) -> float:
    """1.0 or 0.0. `numbers`: any count of whole numbers, 0 or more. The answer is what the
    completion declares; if it declares nothing, its whole text."""
    given, goal = numbers_of(numbers), _whole("target", target)
    text = declared_or_whole(completion, style, mode)
    try:
        return float(reaches(text, given, goal))
    except NotAnExpression:
        return 0.0


def reaches(text: str, numbers: Sequence[int], target: int) -> bool:
    """Whether an expression or equation is right; NotAnExpression where it is neither."""
    tokens = tokenise(text, LONGEST + PER_NUMBER * len(numbers))
    sides = [list(side) for equals, side in groupby(tokens, "=".__eq__) if not equals]
    if tokens.count("=") != len(sides) - 1 or len(sides) > SIDES:
        raise NotAnExpression("an equation has an expression on each side of each =")
    answer = next((side for side in sides if not _is_bare(side)), sides[0])
    values = [evaluate(list(side))[0] for side in sides]
    return all(value == target for value in values) and Counter(evaluate(answer)[1]) == Counter(
        numbers
    )


def _is_bare(side: list[str]) -> bool:
    """A number, with or without a sign and brackets."""
    return len([token for token in side if token.isdigit()]) <= 1 and not {"*", "/", "F"} & {*side}


def numbers_of(value: Any) -> list[int]:
    """The column `numbers`: a list, or text such as "30,100,93" or "[30, 100, 93]"."""
    if isinstance(value, str):
        value = re.findall(r"[^\s,\[\]()]+", value)
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise ValueError(f"column 'numbers' must be a list of whole numbers; got {value!r:.100}")
    numbers = [_whole("numbers", item) for item in cast("Iterable[Any]", value)]
    if not numbers or min(numbers) < 0:
        raise ValueError(
            f"column 'numbers' must hold at least one number, none below 0; got {value!r:.100}"
        )
    return numbers


def _whole(column: str, value: Any) -> int:
    try:
        number = int(value)
        if number == (value if not isinstance(value, str) else number):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"column {column!r} must be made of whole numbers; got {value!r:.100}")
