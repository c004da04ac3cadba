r"""Whether two mathematical answers are the same. Only for a worker process (`WorkerPool`).

The answer is taken apart by its form (`answer_forms`): lists, points, intervals, equations, units;
the expressions in it are compared by value (`number_equality`), and what that cannot read by
math-verify, which may run for ever and eat any amount of memory.

Policy: what a careful teacher accepts without guessing.

- The form is the gold's: as many parts, of the same kind. A list in any order; a point in its own.
  A set in braces is neither a point nor an interval. n = 4, 6 is not n = 4, m = 6.
- Values count, not how far they are simplified: \sqrt{2^{16}} is 256, 6:4 is 3:2. But an integral,
  a sum or a limit restates the question and is no answer.
- Variables are real, and roots and logarithms of them positive: \sqrt{1/n} is 1/\sqrt{n}, |x| is
  not x. Letters keep their case.
- x = 5 is 5, x < 5 is (-\infty, 5), an equation is any multiple of it; y = 5 is not x = 5.
- A unit may be left out, but not contradict the gold's, powers included. A base must be said.
- 35% is 35, and 0.35. 2:00 pm is 2. (B) is B; (B) 12 is B, and 12 if that is the gold.
- \sqrt{117} \approx 10.82 is \sqrt{117}; \text{five} is 5; \$5 may be said as \$5 per day.
- A decimal stands for a number that it cannot write out if it has six decimals and all are right.
"""

from collections.abc import Sequence
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
)
from rewards.answer_reading import is_wordy, read, words_of
from rewards.answer_units import fits, split_unit
from rewards.equations import (
    assigned,
    before_rounding,
    equated,
    is_inequality,
    labels_of,
    same_inequality,
    same_line,
    unlabelled,
)
from rewards.math_text import LONGEST, is_deep, plain, spelling
from rewards.number_equality import same_number, same_quantity
from rewards.real_sets import real_set, same_set


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
            return fits(gold.unit, answer.unit) and same_quantity(gold, answer)
        case Based(), Based():
            return gold == answer
        case Clock(), Clock():
            return _same_clock(gold, answer)
        case Quantity(), Clock():
            return answer.minute == 0 and same_number(gold.number, str(answer.hour))
        case Clock(), Quantity():
            return gold.minute == 0 and same_number(str(gold.hour), answer.number)
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
    if (exact := before_rounding(answer)) is not None and same(gold, read(exact)):
        return True
    golds, answers = equated(gold), equated(answer)
    if golds and answers:
        a, b = assigned(golds), assigned(answers)
        if a and b and (a[0] == b[0] or is_wordy(a[0]) or is_wordy(b[0])):
            return same(read(a[1]), read(b[1]))
        return len(golds) == len(answers) == 2 and same_line(golds, answers)
    if golds:
        named = assigned(golds)
        return named is not None and same(read(named[1]), answer)
    if answers:
        named = assigned(answers)
        if named is not None:
            return same(gold, read(named[1]))
        numbers = [split_unit(side)[0] for side in answers]
        chain = all(same_number(a, b) for a, b in pairwise(numbers))
        return chain and same(gold, read(answers[-1]))
    return None


def _set(gold: Form, answer: Form) -> bool | None:
    r"""Sets of real numbers, and inequalities; x \in \{1, 2\} is a list."""
    kinds = [isinstance(form, Union | Group) or is_inequality(form) for form in (gold, answer)]
    if not any(kinds) and None in (real_set(gold), real_set(answer)):
        return None
    gold, answer = _united(gold, answer), _united(answer, gold)
    inside = _member(gold), _member(answer)
    if inside != (gold, answer):
        names = {form.sides[0] for form in (gold, answer) if isinstance(form, Relation)}
        return len(names) == 1 and same(*inside)
    sets = real_set(gold), real_set(answer)
    if sets[0] is not None and sets[1] is not None:
        return same_set(sets[0], sets[1])
    if (
        isinstance(gold, Relation)
        and isinstance(answer, Relation)
        and same_inequality(gold, answer)
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
            if any(isinstance(form, Listing) and form.joint == r"\{" for form in (gold, answer)):
                return False
            groups = [form for form in (gold, answer) if isinstance(form, Group)]
            square = any("[" in form.opening or "]" in form.closing for form in groups)
            return not square and _in_order(unlabelled(gold.parts), unlabelled(answer.parts))
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
    names = [labels_of(form.parts) for form in (gold, answer)]
    if any(len(set(labels)) > 1 for labels in names):  # x = 1, y = 2
        if all(all(labels) for labels in names):
            if len({len(set(labels)) for labels in names}) > 1:
                return False
            return _any_order(gold.parts, answer.parts)
        if any(any(labels) and not all(labels) for labels in names):
            return False
        return _in_order(unlabelled(gold.parts), unlabelled(answer.parts))
    if names[0][0] and names[1][0] and names[0][0] != names[1][0]:
        return False
    return _any_order(unlabelled(gold.parts), unlabelled(answer.parts))


def _united(form: Form, other: Form) -> Form:
    r"""(0, 1) or (2, 3), beside a union, as the union."""
    groups = isinstance(form, Listing) and all(isinstance(x, Group | Union) for x in form.parts)
    if groups and isinstance(form, Listing) and form.joint == "or" and isinstance(other, Union):
        return Union(form.parts)
    return form


def _member(form: Form) -> Form:
    r"""x \in \{1, 2\} without "x \in"."""
    if isinstance(form, Relation) and form.operators == (r"\in",):
        inside = read(form.sides[1])
        return inside if isinstance(inside, Listing) else form
    return form


def _same_brackets(gold: Group, answer: Group) -> bool:
    """(1,2] is not [1,2]; of three and more parts, a vector may be written in any brackets."""
    pairs = (gold.opening, gold.closing), (answer.opening, answer.closing)
    vectors = {("(", ")"), (r"\langle", r"\rangle")}
    if len(gold.parts) > 2:
        vectors.add(("[", "]"))
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
