r"""Sets of real numbers as pieces of the line: x < 5 is (-\infty, 5), (0,2) \cup (2,4) not (0,4).

A piece is (left, right, whether each end belongs to it); an end is a number or infinite. Pieces are
sorted and joined where they touch, so two sets are equal if their pieces are. Inequalities count if
they are linear in one variable. Anything else is no set here (`None`). Worker process only: the
ends are computed by `rewards.expression_value`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from typing import Any, cast

from rewards.answer_forms import Form, Group, Listing, Quantity, Relation, Union, Words
from rewards.answer_reading import read
from rewards.expression_value import (
    Uncomputable,
    Value,
    close,
    difference,
    is_real,
    is_zero,
    number,
    quotient,
)
from rewards.latex_expression import Node, Unreadable, parse, symbols

End = Value  # float("inf") and float("-inf") among them
INFINITE = float("inf")
TURNED = {"<": ">", ">": "<", r"\leq": r"\geq", r"\geq": r"\leq", r"\neq": r"\neq", "=": "="}


@dataclass(frozen=True)
class Piece:
    left: End
    right: End
    has_left: bool = False
    has_right: bool = False


@dataclass(frozen=True)
class RealSet:
    """`variable`: whose values they are, if that is said."""

    pieces: tuple[Piece, ...]
    variable: str | None = None


ALL = (Piece(-INFINITE, INFINITE),)


def same_set(a: RealSet, b: RealSet) -> bool:
    if len(a.pieces) != len(b.pieces) or (a.variable and b.variable and a.variable != b.variable):
        return False
    return all(
        _compare(p.left, q.left) == 0
        and _compare(p.right, q.right) == 0
        and (p.has_left, p.has_right) == (q.has_left, q.has_right)
        for p, q in zip(a.pieces, b.pieces, strict=True)
    )


def real_set(form: Form) -> RealSet | None:
    """The set that the form describes, or None."""
    try:
        return _read(form)
    except (Unreadable, Uncomputable):
        return None


def _read(form: Form) -> RealSet | None:
    match form:
        case Group(opening, (left, right), closing) if opening in "([" and closing in ")]":
            ends = _end(left), _end(right)
            if _compare(*ends) >= 0:
                return None
            return RealSet((Piece(*ends, opening == "[", closing == "]"),))
        case Union(parts, without):
            inside = _joined([_points_or_set(part) for part in parts])
            outside = _joined([_points_or_set(part) for part in without]) if without else None
            if inside is None or (without and outside is None):
                return None
            taken = inside if outside is None else _common(inside, _complement(outside))
            return RealSet(tuple(taken))
        case Relation():
            return _relation(form)
        case Listing(parts, joint):
            return _listed([_read(part) for part in parts], joint)
        case Words("all real numbers" | "all reals" | "all real" | r"\mathbb r"):
            return RealSet(ALL)
        case Quantity(latex) if re.fullmatch(r"\\mathbb\s*\{?\s*R\s*\}?|\\Reals?", latex):
            return RealSet(ALL)
        case _:
            return None


def _listed(sets: list[RealSet | None], joint: str) -> RealSet | None:
    """x < 1 or x > 3; x > 1 and x < 3."""
    known = [one for one in sets if one is not None and one.variable is not None]
    names = {one.variable for one in known}
    if len(known) != len(sets) or len(names) != 1:
        return None
    pieces = list(known[0].pieces)
    for one in known[1:]:
        both = [*pieces, *one.pieces]
        pieces = _merge(both) if joint == "or" else _common(pieces, list(one.pieces))
    return RealSet(tuple(pieces), names.pop()) if pieces else None


def _points_or_set(form: Form) -> RealSet | None:
    if isinstance(form, Listing):
        points = [_end(part) for part in form.parts]
        return RealSet(tuple(_merge(Piece(x, x, True, True) for x in points)))
    return _read(form)


def _joined(sets: Iterable[RealSet | None]) -> list[Piece] | None:
    pieces: list[Piece] = []
    for one in sets:
        if one is None:
            return None
        pieces.extend(one.pieces)
    return _merge(pieces)


def _relation(form: Relation) -> RealSet | None:
    if r"\in" in form.operators:
        if form.operators != (r"\in",):
            return None
        inside = _points_or_set(read(form.sides[1]))
        return None if inside is None else RealSet(inside.pieces, form.sides[0])
    if "=" in form.operators or not set(form.operators) <= set(TURNED):
        return None
    pieces: list[Piece] = list(ALL)
    names = frozenset[str]()
    for i, operator in enumerate(form.operators):
        left, right = form.sides[i], form.sides[i + 1]
        tree: Node = ("add", _tree(left), ("neg", _tree(right)))
        names |= symbols(tree)
        if _infinite(left) or _infinite(right):
            continue
        if len(names) != 1 or symbols(tree) != names:
            return None
        half_line = _half_line(tree, operator)
        if half_line is None:
            return None
        pieces = _common(pieces, half_line)
    return RealSet(tuple(pieces), next(iter(names))) if pieces and names else None


def _tree(latex: str) -> Node:
    return ("num", Fraction(0)) if _infinite(latex) else parse(latex)


def _infinite(latex: str) -> float | None:
    match = re.fullmatch(r"([+-]?)\s*\\infty\s*", latex)
    return None if match is None else float(match[1] + "inf")


def _half_line(tree: Node, operator: str) -> list[Piece] | None:
    """Where `tree operator 0` holds, if the tree is linear in its variable."""
    (name,) = symbols(tree)
    at = [number(_put(tree, name, Fraction(x))) for x in (0, 1, 2, 7)]
    slope = difference(at[1], at[0])
    steps = [quotient(difference(at[i], at[0]), Fraction(x)) for i, x in ((2, 2), (3, 7))]
    if is_zero(slope) or not all(map(is_real, at)) or not all(close(step, slope) for step in steps):
        return None
    zero = quotient(difference(Fraction(0), at[0]), slope)
    if operator == r"\neq":
        return [Piece(-INFINITE, zero), Piece(zero, INFINITE)]
    above = (operator in (">", r"\geq")) == (slope > 0)
    closed = operator in (r"\leq", r"\geq")
    if above:
        return [Piece(zero, INFINITE, has_left=closed)]
    return [Piece(-INFINITE, zero, has_right=closed)]


def _put(tree: Node, name: str, value: Fraction) -> Node:
    if tree == ("sym", name):
        return ("num", value)
    return tuple(_put(cast(Node, x), name, value) if isinstance(x, tuple) else x for x in tree)


def _end(form: Form) -> End:
    if not isinstance(form, Quantity) or form.unit:
        raise Unreadable("an end of an interval must be a number")
    infinite = _infinite(form.number)
    if infinite is not None:
        return infinite
    value = number(parse(form.number))
    if not is_real(value):
        raise Uncomputable("an end of an interval must be real")
    return value if isinstance(value, Fraction) else value.real


def _compare(x: End, y: End) -> int:
    """-1, 0 or 1."""
    infinite: Any = [isinstance(end, float) for end in (x, y)]
    if any(infinite):
        a, b = (end if isinstance(end, float) else 0.0 for end in (x, y))
        return (a > b) - (a < b)
    if close(x, y):
        return 0
    return 1 if difference(x, y) > 0 else -1


def _order(p: Piece, q: Piece) -> int:
    return _compare(p.left, q.left) or q.has_left - p.has_left


def _merge(pieces: Iterable[Piece]) -> list[Piece]:
    """Sorted, and joined where nothing is between."""
    merged: list[Piece] = []
    for piece in sorted(pieces, key=cmp_to_key(_order)):
        last = merged[-1] if merged else None
        if last is not None:
            gap = _compare(piece.left, last.right)
            if gap < 0 or (gap == 0 and (piece.has_left or last.has_right)):
                end = _compare(piece.right, last.right)
                wider = piece if end > 0 else last
                has_right = wider.has_right or (end == 0 and piece.has_right)
                merged[-1] = Piece(last.left, wider.right, last.has_left, has_right)
                continue
        merged.append(piece)
    return merged


def _complement(pieces: list[Piece]) -> list[Piece]:
    """What is left of the line."""
    left, has_left, rest = -INFINITE, False, list[Piece]()
    for piece in pieces:
        if _compare(left, piece.left) < 0 or (has_left and not piece.has_left):
            rest.append(Piece(left, piece.left, has_left, not piece.has_left))
        left, has_left = piece.right, not piece.has_right
    if _compare(left, INFINITE) < 0:
        rest.append(Piece(left, INFINITE, has_left))
    return rest


def _common(a: list[Piece], b: list[Piece]) -> list[Piece]:
    return _complement(_merge([*_complement(_merge(a)), *_complement(_merge(b))]))
