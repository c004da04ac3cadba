r"""Whether two mathematical answers are the same. Only for a worker process (`WorkerPool`).

The answer is taken apart by its form (`answer_forms`): lists, points, intervals, equations, units;
the expressions in it are compared by value (`expression_value`). What that cannot read goes to
math-verify (`math_verify_equal`): it may run for ever and eat any amount of memory.

Policy. The form is the gold's: as many parts, and of the same kind. Their value counts, not how far
it is simplified; an integral, a sum or a limit restates the question and is no answer.
A decimal stands for a number that it cannot write out if it has six decimals and all are right.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from rewards.answer_forms import (
    Based,
    Choice,
    Clock,
    Form,
    Group,
    Listing,
    Matrix,
    Quantity,
    Relation,
    Union,
    Words,
    is_wordy,
    read,
    words_of,
)
from rewards.answer_units import fits, split_unit
from rewards.expression_value import Uncomputable, same_ratio, same_value
from rewards.latex_expression import Node, UnknownCommand, Unreadable, parse, symbols
from rewards.math_text import LONGEST, is_deep, is_finite_decimal, plain, rational, spelling
from rewards.math_verify_reading import equal_by_math_verify
from rewards.real_sets import TURNED, real_set, same_set

LONG_DECIMAL = re.compile(r"\d*\.\d{6,}")
BARE_DECIMAL = re.compile(r"\s*-?\s*\d*\.(\d{6,})\s*")
LABEL = re.compile(  # x, a_1, f(2), f^{-1}(x), \angle ABC, \text{proj}_{\mathbf{b}} \mathbf{a}
    r"(?:\\text\{[^{}]*+\}|\\(?!(?:frac|sqrt|cdot|times|pm|pi|infty)(?![A-Za-z]))[A-Za-z]++"
    r"|[A-Za-z]'*+|\||_(?:\w|\{(?:[^{}]|\{[^{}]*+\})*+\})|\{\s*+\\?[A-Za-z]++\s*+\}"
    r"|\^\{-1\}(?=\s*\()|\([A-Za-z0-9,\s]++\)|\s)++"
)
INEQUALITIES = frozenset(TURNED) - {"="}


def equal(gold: str, answer: str) -> bool:
    """True if the answer says what the gold says."""
    gold, answer = plain(gold), plain(answer)
    if spelling(gold) == spelling(answer):
        return True
    if any(len(text) > LONGEST or is_deep(text) for text in (gold, answer)):
        return False
    return same(read(gold), read(answer)) or (is_wordy(gold) and words_of(gold) == words_of(answer))


def same(gold: Form, answer: Form) -> bool:
    """True if two forms mean the same; `gold` says which form is wanted."""
    for rule in (_alone, _choice, _equation, _set, _many):
        verdict = rule(gold, answer)
        if verdict is not None:
            return verdict
    return False


def _alone(gold: Form, answer: Form) -> bool | None:
    """Two of one kind that have no parts."""
    match gold, answer:
        case Words(), Words():
            return gold.words == answer.words
        case Quantity(), Quantity():
            return fits(gold.unit, answer.unit) and _same_quantity(gold, answer)
        case Based(), Based():
            return gold == answer
        case Clock(), Clock():
            return _same_clock(gold, answer)
        case Quantity(), Clock():
            return answer.minute == 0 and _same_number(gold.number, str(answer.hour))
        case Clock(), Quantity():
            return gold.minute == 0 and _same_number(str(gold.hour), answer.number)
        case Matrix(), Matrix():
            return len(gold.rows) == len(answer.rows) and all(
                _in_order(a, b) for a, b in zip(gold.rows, answer.rows, strict=True)
            )
        case _:
            return None


def _choice(gold: Form, answer: Form) -> bool | None:
    if isinstance(gold, Choice):
        if isinstance(answer, Choice):
            both = gold.content and answer.content
            return gold.letter == answer.letter and (
                not both or same(read(gold.content), read(answer.content))
            )
        if gold.sure and isinstance(answer, Quantity):
            letter = answer.number.strip("(). ")
            return letter == gold.letter.lower() or (
                bool(gold.content) and same(read(gold.content), answer)
            )
        if not isinstance(answer, Relation):
            return bool(gold.content) and same(read(gold.content), answer)
    elif isinstance(answer, Choice):
        return bool(answer.content) and same(gold, read(answer.content))
    return None


def _equation(gold: Form, answer: Form) -> bool | None:
    """Equations with each other; and "x = 5" with 5."""
    golds, answers = _equated(gold), _equated(answer)
    if golds and answers:
        a, b = _assigned(golds), _assigned(answers)
        if a and b and (a[0] == b[0] or is_wordy(a[0]) or is_wordy(b[0])):
            return same(read(a[1]), read(b[1]))
        return len(golds) == len(answers) == 2 and _same_line(golds, answers)
    if golds:
        assigned = _assigned(golds)
        return assigned is not None and same(read(assigned[1]), answer)
    if answers:
        assigned = _assigned(answers)
        if assigned is not None:
            return same(gold, read(assigned[1]))
        numbers = [split_unit(side)[0] for side in answers]
        chain = all(_same_number(a, b) for a, b in pairwise(numbers))
        return chain and same(gold, read(answers[-1]))
    return None


def _set(gold: Form, answer: Form) -> bool | None:
    r"""Sets of real numbers, and inequalities; x \in \{1, 2\} is a list."""
    kinds = [isinstance(form, Union | Group) or _is_inequality(form) for form in (gold, answer)]
    if not any(kinds):
        return None
    if (inside := (_member(gold), _member(answer))) != (gold, answer):
        return same(*inside)
    sets = real_set(gold), real_set(answer)
    if sets[0] is not None and sets[1] is not None:
        return same_set(sets[0], sets[1])
    if (
        isinstance(gold, Relation)
        and isinstance(answer, Relation)
        and _same_inequality(gold, answer)
    ):
        return True
    if isinstance(gold, Union) and isinstance(answer, Union):
        return _any_order(gold.parts, answer.parts) and _any_order(gold.without, answer.without)
    return None


def _many(gold: Form, answer: Form) -> bool | None:
    """Lists, points and vectors."""
    match gold, answer:
        case Group(), Group():
            return _same_brackets(gold, answer) and _in_order(gold.parts, answer.parts)
        case Listing(), Listing():
            return _same_list(gold, answer)
        case (Group(), Listing()) | (Listing(), Group()):
            square = any(form.opening == "[" for form in (gold, answer) if isinstance(form, Group))
            return not square and _in_order(_unlabelled(gold.parts), _unlabelled(answer.parts))
        case Matrix(rows), Group(_, parts) if len(rows) == 1 or all(len(r) == 1 for r in rows):
            return _in_order([cell for row in rows for cell in row], parts)
        case Group(_, parts), Matrix(rows) if len(rows) == 1 or all(len(r) == 1 for r in rows):
            return _in_order(parts, [cell for row in rows for cell in row])
        case Listing((one,)), _:
            return same(one, answer)
        case _, Listing((one,)):
            return same(gold, one)
        case _:
            return None


def _in_order(golds: Sequence[Form], answers: Sequence[Form]) -> bool:
    return len(golds) == len(answers) and all(map(same, golds, answers))


def _any_order(golds: Sequence[Form], answers: Sequence[Form]) -> bool:
    """One to one: a part that is said twice counts twice."""
    rest = list(answers)
    for gold in golds:
        found = next((i for i, answer in enumerate(rest) if same(gold, answer)), None)
        if found is None:
            return False
        del rest[found]
    return not rest


def _same_list(gold: Listing, answer: Listing) -> bool:
    if len(gold.parts) != len(answer.parts):
        return False
    names = [_labels(form.parts) for form in (gold, answer)]
    if any(len(set(labels)) > 1 for labels in names):  # x = 1, y = 2
        if all(all(labels) for labels in names):
            return _any_order(gold.parts, answer.parts)
        if any(any(labels) and not all(labels) for labels in names):
            return False
        return _in_order(_unlabelled(gold.parts), _unlabelled(answer.parts))
    if names[0][0] and names[1][0] and names[0][0] != names[1][0]:
        return False
    return _any_order(_unlabelled(gold.parts), _unlabelled(answer.parts))


def _labels(parts: Sequence[Form]) -> list[str]:
    """Whose value each part is; n = 5, 6, 7 is about n alone."""
    labels = [found[0] if (found := _assigned(_equated(part))) else "" for part in parts]
    return labels[:1] * len(labels) if labels[0] and not any(labels[1:]) else labels


def _unlabelled(parts: Sequence[Form]) -> list[Form]:
    return [read(found[1]) if (found := _assigned(_equated(part))) else part for part in parts]


def _equated(form: Form) -> tuple[str, ...]:
    equation = isinstance(form, Relation) and set(form.operators) <= {"=", r"\approx"}
    return form.sides if equation and isinstance(form, Relation) else ()


def _assigned(sides: Sequence[str]) -> tuple[str, str] | None:
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


def _member(form: Form) -> Form:
    r"""x \in \{1, 2\} without "x \in"."""
    if isinstance(form, Relation) and form.operators == (r"\in",):
        inside = read(form.sides[1])
        return inside if isinstance(inside, Listing) else form
    return form


def _is_inequality(form: Form) -> bool:
    if isinstance(form, Listing):
        return any(map(_is_inequality, form.parts))
    return isinstance(form, Relation) and bool(
        INEQUALITIES & {*form.operators} or r"\in" in form.operators
    )


def _same_brackets(gold: Group, answer: Group) -> bool:
    """(1,2] is not [1,2]; of three and more parts, a vector may be written in any brackets."""
    pairs = (gold.opening, gold.closing), (answer.opening, answer.closing)
    vectors = {("(", ")"), (r"\langle", r"\rangle")} | (
        {("[", "]")} if len(gold.parts) > 2 else set()
    )
    return pairs[0] == pairs[1] or set(pairs) <= vectors


def _same_clock(gold: Clock, answer: Clock) -> bool:
    if gold.minute != answer.minute:
        return False
    if gold.half and answer.half:
        return gold.hour % 12 == answer.hour % 12 and gold.half == answer.half
    for one, other in ((gold, answer), (answer, gold)):
        if one.half and other.hour == one.hour % 12 + 12 * (one.half == "p"):
            return True
    return gold.hour == answer.hour


def _same_quantity(gold: Quantity, answer: Quantity) -> bool:
    """The same number; 35% may stand for 35 and for 0.35."""
    if _same_number(gold.number, answer.number):
        return True
    percent = [form.unit == (("%", 1),) for form in (gold, answer)]
    if percent[0] == percent[1]:
        return False
    numbers = [
        f"({form.number})/100" if is_percent else form.number
        for form, is_percent in zip((gold, answer), percent, strict=True)
    ]
    return _same_number(*numbers)


def _same_number(gold: str, answer: str) -> bool:
    """The same value, by our own reading; math-verify's where there is none."""
    if spelling(gold) == spelling(answer):
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
    if all(x is not None and is_finite_decimal(x) for x in map(rational, (gold, answer))):
        return False
    decimal = BARE_DECIMAL.fullmatch(answer) or BARE_DECIMAL.fullmatch(gold)
    if decimal is not None:
        step = Fraction(1, 10 ** len(decimal[1]))
        apart: Node = ("abs", ("add", trees[0], ("neg", trees[1])))
        bound: Node = ("num", max(step, Fraction(1, 10**13)))
        return same_value(*trees, 1e-6) and _at_most(apart, bound)
    long = [bool(LONG_DECIMAL.search(text)) for text in (gold, answer)]
    return long[0] != long[1] and same_value(*trees, 1e-6)


def _at_most(a: Node, b: Node) -> bool:
    """a <= b, of two numbers."""
    difference: Node = ("add", b, ("neg", a))
    return not symbols(difference) and same_value(("abs", difference), difference)


def _same_line(golds: Sequence[str], answers: Sequence[str]) -> bool:
    """Two equations, one a multiple of the other."""
    return _ratio(golds, answers, positive=False)


def _same_inequality(gold: Relation, answer: Relation) -> bool:
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
