"""Whether two expressions, with their units, are the same number or function. Worker process only.

A decimal stands for a number that it cannot write out if it has six decimals and all are right.
"""

import re
from fractions import Fraction

from rewards.answer_forms import Quantity
from rewards.expression_value import Uncomputable, number, same_value
from rewards.latex_expression import Node, UnknownCommand, Unreadable, parse, symbols
from rewards.math_text import is_finite_decimal, spelling
from rewards.math_verify_reading import equal_by_math_verify

LONG_DECIMAL = re.compile(r"\d*\.\d{6,}")
BARE_DECIMAL = re.compile(r"\s*-?\s*\d*\.(\d{6,})\s*")


def same_quantity(gold: Quantity, answer: Quantity) -> bool:
    """The same number; 35% may stand for 35 and for 0.35."""
    if same_number(gold.number, answer.number):
        return True
    percent = [form.unit == (("%", 1),) for form in (gold, answer)]
    if percent[0] == percent[1]:
        return False
    numbers = [
        f"({form.number})/100" if is_percent else form.number
        for form, is_percent in zip((gold, answer), percent, strict=True)
    ]
    return same_number(*numbers)


def same_number(gold: str, answer: str) -> bool:
    """The same value, by our own reading; math-verify's where there is none."""
    if spelling(gold).lstrip("+") == spelling(answer).lstrip("+"):
        return True
    try:
        trees = parse(gold), parse(answer)
    except UnknownCommand:
        return equal_by_math_verify(gold, answer)
    except Unreadable:
        return False
    try:
        return same_value(*trees) or _rounded(gold, answer, trees)
    except Uncomputable:
        return False


def _rounded(gold: str, answer: str, trees: tuple[Node, Node]) -> bool:
    """A decimal for a number that it cannot write out, right in all of its six or more digits."""
    if all(map(_is_written_out, trees)):
        return False
    decimal = BARE_DECIMAL.fullmatch(answer) or BARE_DECIMAL.fullmatch(gold)
    if decimal is not None:
        step = Fraction(1, 10 ** len(decimal[1]))
        apart: Node = ("abs", ("add", trees[0], ("neg", trees[1])))
        bound: Node = ("num", max(step, Fraction(1, 10**13)))
        return same_value(*trees, 1e-6) and _at_most(apart, bound)
    long = [bool(LONG_DECIMAL.search(text)) for text in (gold, answer)]
    return long[0] != long[1] and same_value(*trees, 1e-6)


def _is_written_out(tree: Node) -> bool:
    """True for a number that a finite decimal gives exactly."""
    value = None if symbols(tree) else number(tree)
    return isinstance(value, Fraction) and is_finite_decimal(value)


def _at_most(a: Node, b: Node) -> bool:
    """a <= b, of two numbers."""
    difference: Node = ("add", b, ("neg", a))
    return not symbols(difference) and same_value(("abs", difference), difference)
