r"""Equations and inequalities: what is equated, what is named, which say the same.

    x = 5 names 5; so do f(2) = 5 and \angle ABC = 5, but not x + y = 5
    3x - 4y + 5 = 0 is -3x + 4y = 5: a constant times the other, whichever side is which

Worker process only.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

from rewards.answer_forms import Form, Listing, Relation
from rewards.answer_reading import read
from rewards.answer_units import split_unit
from rewards.expression_value import Uncomputable, difference, number, same_ratio
from rewards.latex_expression import Node, Unreadable, parse
from rewards.real_sets import TURNED

LABEL = re.compile(
    # x, a_1, f(2), f^{-1}(x), P(X > 2), \angle ABC, \text{proj}_{\mathbf{b}} \mathbf{a}
    r"(?:(?:P|\\Pr|E|\\mathbb\{[PE]\})\s*+[\[(][^()\[\]]{1,60}[\])]"
    r"|\\text\{[^{}]*+\}|\\(?!(?:frac|sqrt|cdot|times|pm|pi|infty)(?![A-Za-z]))[A-Za-z]++"
    r"|[A-Za-z]'*+|\||_(?:\w|\{(?:[^{}]|\{[^{}]*+\})*+\})|\{\s*+\\?[A-Za-z]++\s*+\}"
    r"|\^\{-1\}(?=\s*\()|\((?:\\[A-Za-z]++|[A-Za-z0-9,\s])++\)|\s)++"
)
DECIMAL = re.compile(r"-?\s?\d+(?:\.(\d*))?")
INEQUALITIES = frozenset(TURNED) - {"="}


def labels_of(parts: Sequence[Form]) -> list[str]:
    """Whose value each part is; n = 5, 6, 7 is about n alone."""
    labels = [found[0] if (found := assigned(equated(part))) else "" for part in parts]
    return labels[:1] * len(labels) if labels[0] and not any(labels[1:]) else labels


def unlabelled(parts: Sequence[Form]) -> list[Form]:
    return [read(found[1]) if (found := assigned(equated(part))) else part for part in parts]


def equated(form: Form) -> tuple[str, ...]:
    equation = isinstance(form, Relation) and set(form.operators) <= {"=", r"\approx"}
    return form.sides if equation and isinstance(form, Relation) else ()


def assigned(sides: Sequence[str]) -> tuple[str, str] | None:
    """(name, value) of x = 5, of f(x) = 2x, and of 5 = x."""
    if not sides:
        return None
    first, last = sides[0].strip(), sides[-1].strip()
    if LABEL.fullmatch(first) and not _mentions(last, first):
        return first, last
    if len(sides) == 2 and LABEL.fullmatch(last) and not _mentions(first, last):
        return last, first
    return None


def _mentions(expression: str, name: str) -> bool:
    return bool(re.search(rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z_])", expression))


def before_rounding(form: Form) -> str | None:
    r"""\sqrt{117} of d = \sqrt{117} \approx 10.82, if the decimal is that number rounded."""
    if not isinstance(form, Relation) or form.operators[-1] != r"\approx":
        return None
    exact, rounded = (split_unit(side)[0] for side in form.sides[-2:])
    decimal = DECIMAL.fullmatch(rounded)
    if decimal is None or len(exact) == 1:
        return None
    try:
        apart = difference(number(parse(exact)), Fraction(rounded.replace(" ", "")))
    except (Unreadable, Uncomputable):
        return None
    return form.sides[-2] if abs(apart) * 10 ** len(decimal[1] or "") < 1 else None


def is_inequality(form: Form) -> bool:
    if isinstance(form, Listing):
        return any(map(is_inequality, form.parts))
    return isinstance(form, Relation) and bool(
        INEQUALITIES & {*form.operators} or r"\in" in form.operators
    )


def same_line(golds: Sequence[str], answers: Sequence[str]) -> bool:
    """Two equations, one a multiple of the other."""
    return _ratio(golds, answers, positive=False)


def same_inequality(gold: Relation, answer: Relation) -> bool:
    """The same after a positive factor: 2x > y is y < 2x is 4x > 2y."""
    if len(gold.operators) != 1 or len(answer.operators) != 1:
        return False
    if gold.operators == answer.operators and _ratio(gold.sides, answer.sides, positive=True):
        return True
    turned = TURNED.get(answer.operators[0])
    return gold.operators[0] == turned and _ratio(gold.sides, answer.sides[::-1], positive=True)


def _ratio(golds: Sequence[str], answers: Sequence[str], *, positive: bool) -> bool:
    def difference(sides: Sequence[str]) -> Node:
        return ("add", parse(sides[0]), ("neg", parse(sides[1])))

    try:
        return same_ratio(difference(golds), difference(answers), positive=positive)
    except (Unreadable, Uncomputable):
        return False
