r"""Whether two expressions have the same value, by computing it: exactly, or to many digits.

Rational arithmetic is exact (`Fraction`). The rest is computed by mpmath to 50 digits, more where
both values are tiny; two numbers that agree are computed again, to 250 digits. Expressions
with variables are compared at fixed points, drawn from the names; two that agree at six generic
points to 25 digits are the same function.
Variables are taken as real, and where a value is not real the point does not count: so
\sqrt{1/n} = 1/\sqrt{n}, and |x| is not x.

Bounded before anything is computed: a power or a factorial of more than MAX_BITS bits is refused
with `Uncomputable`. mpmath is no dependency of `rewards`: import this in a worker process only.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random
from typing import Any, cast

import mpmath  # pyright: ignore[reportMissingTypeStubs]

from rewards.latex_expression import Node, symbols

Value = Any  # Fraction, or a real or complex number of mpmath
MAX_BITS = 20_000
MAX_LOG = 100_000.0
DIGITS = (50, 250, 1000)
POINTS = 12
ENOUGH, PLENTY = 4, 6  # points at which all values are real
mp: Any = cast(Any, mpmath).mp


class Uncomputable(ValueError):
    """The value is too large, or there is none."""


def same_value(a: Node, b: Node, tolerance: float | None = None) -> bool:
    """True if the two are equal for all real values of their variables.

    `tolerance`: how far numbers may be apart, relative to the larger; None: not at all.
    """
    agreeing = 0
    for x, y in values((a, b)):
        if not close(x, y, tolerance):
            return False
        agreeing += 1
    if symbols(a) or symbols(b):
        return agreeing >= ENOUGH
    return tolerance is not None or close(*_evaluate_together((a, b), {}, digits=DIGITS[1:]))


def same_ratio(a: Node, b: Node, *, positive: bool = False) -> bool:
    """True if a = c b for a constant c that is not 0 (and positive, if that is asked)."""
    if symbols(a) != symbols(b) or not symbols(a):
        return False
    first: Value = None
    agreeing = 0
    for x, y in values((a, b)):
        if is_zero(x) or is_zero(y):
            if is_zero(x) != is_zero(y):
                return False
            continue
        ratio = quotient(x, y)
        first = ratio if first is None else first
        if not close(ratio, first):
            return False
        agreeing += 1
    if agreeing < ENOUGH:
        return False
    return not positive or (is_real(first) and mp.re(_mp(first)) > 0)


def values(trees: tuple[Node, ...]) -> Iterator[tuple[Value, ...]]:
    """The values of all trees, at each point where they are real, in their parts too."""
    names = sorted(frozenset[str]().union(*map(symbols, trees)))
    if not names:
        yield _evaluate_together(trees, {})
        return
    for real in (True, False):  # false: i is in them, or their domain is elsewhere
        found = 0
        for number in range(POINTS):
            try:
                together = _evaluate_together(trees, _point(names, number), real)
            except Uncomputable:
                continue
            yield together
            found += 1
            if found == PLENTY:
                return
        if found >= ENOUGH:
            return


def number(tree: Node) -> Value:
    """The value of an expression without variables."""
    if symbols(tree):
        raise Uncomputable("it has variables")
    return _evaluate_together((tree,), {})[0]


def close(x: Value, y: Value, tolerance: float | None = None) -> bool:
    """Equal, as far as it can be told; within `tolerance` of the larger if that is given."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x == y if tolerance is None else _near(x, y, Fraction(tolerance))
    if tolerance is not None:
        return bool(_near(_mp(x), _mp(y), tolerance))
    x, y = _mp(x), _mp(y)
    if max(abs(x), abs(y)) < mp.mpf(10) ** (-mp.dps // 2) and 0 in (x, y):
        return True  # sqrt(3 + 2 sqrt 2) - 1 - sqrt 2
    return bool(_near(x, y, mp.mpf(10) ** (-mp.dps // 2)))


def is_real(x: Value) -> bool:
    return isinstance(x, Fraction) or not x.imag or abs(x.imag) < abs(x) * mp.mpf(10) ** -30


def is_zero(x: Value) -> bool:
    return x == 0 if isinstance(x, Fraction) else abs(x) < mp.mpf(10) ** (-mp.dps // 2)


def _near(x: Value, y: Value, tolerance: Value) -> bool:
    return abs(x - y) <= tolerance * max(abs(x), abs(y))


def _point(names: list[str], number: int) -> dict[str, Fraction]:
    """Even numbers: all positive; every other odd one: all negative; else by chance.

    The names choose the values, so that a run can be repeated.
    """
    point: dict[str, Fraction] = {}
    for name in names:
        draw = Random(f"{name} {number}")
        size = Fraction(draw.randrange(30, 330), 97)
        negative = number % 4 == 1 or (number % 4 == 3 and draw.random() < 0.5)
        point[name] = -size if negative else size
    return point


def _evaluate_together(
    trees: tuple[Node, ...],
    point: dict[str, Fraction],
    real: bool = False,
    digits: tuple[int, ...] = DIGITS,
) -> tuple[Value, ...]:
    """To as many digits as it takes to tell tiny values from zero."""
    for precision in digits:
        mp.dps = precision
        found = tuple(_evaluate(tree, point, real) for tree in trees)
        if all(isinstance(x, Fraction) or abs(x) > mp.mpf(10) ** (-precision // 2) for x in found):
            break
    return found  # pyright: ignore[reportPossiblyUnboundVariable]


def _evaluate(tree: Node, point: dict[str, Fraction], real: bool) -> Value:
    """`real`: a value that is not real, of a part too, is `Uncomputable`."""
    kind = tree[0]
    if kind == "num":
        return tree[1]
    if kind == "sym":
        return point[tree[1]]
    if kind == "const":
        if tree[1] == "inf":
            raise Uncomputable("infinity")
        return {"pi": +mp.pi, "e": +mp.e, "i": mp.mpc(0, 1)}[tree[1]]
    parts = [_evaluate(cast(Node, x), point, real) for x in tree[1:] if isinstance(x, tuple)]
    try:
        value = _call(tree[1], parts) if kind == "call" else _OPERATIONS[kind](*parts)
    except (ZeroDivisionError, OverflowError) as error:
        raise Uncomputable(str(error)) from error
    if real and not is_real(value):
        raise Uncomputable("not real")
    return value


def _mp(x: Value) -> Value:
    return mp.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else x


def _both(operation: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """Exact if both are fractions (of a bounded size), else by mpmath."""

    def apply(x: Value, y: Value) -> Value:
        exact = isinstance(x, Fraction) and isinstance(y, Fraction)
        result = operation(x, y) if exact else operation(_mp(x), _mp(y))
        if exact and _bits(result) > MAX_BITS:
            raise Uncomputable("too large")
        return result

    return apply


quotient = _both(lambda x, y: x / y)
difference = _both(lambda x, y: x - y)


def _bits(x: Fraction) -> int:
    return max(x.numerator.bit_length(), x.denominator.bit_length())


def _power(base: Value, exponent: Value) -> Value:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        if abs(exponent) * _bits(base) > MAX_BITS and abs(base) not in (0, 1):
            raise Uncomputable("too large a power")
        return base ** int(exponent % 2 if base == -1 else exponent)
    base, exponent = _mp(base), _mp(exponent)
    if base == 0:
        if mp.re(exponent) <= 0:
            raise Uncomputable("0 to a power that is not positive")
        return Fraction(0)
    if abs(exponent) * abs(mp.log(base)) > MAX_LOG:
        raise Uncomputable("too large a power")
    return mp.power(base, exponent)


def _factorial(x: Value) -> Value:
    if isinstance(x, Fraction) and x.denominator == 1 and x >= 0:
        if x > 2000:
            raise Uncomputable("too large a factorial")
        return Fraction(math.factorial(int(x)))
    if abs(x) > 2000:
        raise Uncomputable("too large a factorial")
    try:
        return mp.gamma(_mp(x) + 1)
    except ValueError as error:
        raise Uncomputable("a factorial of a negative number") from error


def _binomial(n: Value, k: Value) -> Value:
    if any(abs(_mp(x)) > 2000 for x in (n, k)):
        raise Uncomputable("too large a binomial coefficient")
    if isinstance(n, Fraction) and isinstance(k, Fraction) and n.denominator == k.denominator == 1:
        return Fraction(math.comb(int(n), int(k))) if n >= 0 and k >= 0 else Fraction(0)
    return mp.binomial(_mp(n), _mp(k))


def _negative(x: Value) -> Value:
    return -x


def _absolute(x: Value) -> Value:
    return abs(x)


_OPERATIONS: dict[str, Callable[..., Value]] = {
    "add": _both(lambda x, y: x + y),
    "mul": _both(lambda x, y: x * y),
    "div": quotient,
    "neg": _negative,
    "abs": _absolute,
    "pow": _power,
    "fact": _factorial,
}
_MP_NAMES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "ln": "log"}


def _call(name: str, arguments: list[Value]) -> Value:
    if name == "binomial":
        return _binomial(arguments[0], arguments[1])
    x = arguments[0]
    if name in ("floor", "ceil") and isinstance(x, Fraction):
        return Fraction(math.floor(x) if name == "floor" else math.ceil(x))
    x = _mp(x)
    if abs(x) > MAX_LOG and name not in ("ln", "log", "lg"):
        raise Uncomputable("too large an argument")
    try:
        if name in ("log", "lg"):
            value = mp.log(x) / mp.log(_mp(arguments[1]) if len(arguments) > 1 else 10)
        else:
            value = getattr(mp, _MP_NAMES.get(name, name))(x)
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise Uncomputable(f"{name} has no value there") from error
    if not mp.isfinite(value):
        raise Uncomputable(f"{name} has no value there")
    return value
