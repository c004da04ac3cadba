"""Reading an expression: what it means, and what it refuses."""

import math
from fractions import Fraction

import pytest

from rewards.expression_value import Uncomputable, number, same_ratio, same_value
from rewards.latex_expression import Unreadable, parse, symbols


def value(latex: str) -> float:
    return float(number(parse(latex)))


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("2+3*4", 14),
        ("-2^2", -4),
        ("2^-1", 0.5),
        ("2^{3^2}", 512),
        ("x^10".replace("x", "2"), 1024),
        ("1/2/2", 0.25),
        (r"\frac12", 0.5),
        (r"\frac 59", 5 / 9),
        (r"\frac9{19}", 9 / 19),
        (r"\frac{270}7", 270 / 7),
        (r"1\frac{4}{5}", 1.8),
        (r"-1\frac{1}{2}", -1.5),
        (r"2^3\frac{1}{2}", 4),
        (r"0.1\overline{6}", 1 / 6),
        (r"\sqrt2", math.sqrt(2)),
        (r"\sqrt[3]{8}", 2),
        (r"5\sqrt(3)", 5 * math.sqrt(3)),
        (r"\sin^2 30^\circ", 0.25),
        (r"\sin^{-1} 1", math.pi / 2),
        (r"\sin 2\pi + 1", 1),
        (r"\log_2 8", 3),
        (r"\log 100", 2),
        (r"\ln e^2", 2),
        (r"5!", 120),
        (r"\binom{5}{2}", 10),
        (r"|{-3}|", 3),
        (r"\lfloor 3.7 \rfloor", 3),
        (r"50\%", 0.5),
        ("2(3+4)", 14),
        (r"2\mathrm{e}", 2 * math.e),
    ],
)
def test_values(latex: str, expected: float):
    assert value(latex) == pytest.approx(expected, rel=1e-12)


def test_rationals_are_exact():
    assert number(parse(r"\frac{1}{3} + 0.1")) == Fraction(13, 30)
    assert number(parse(r"\frac{1}{303!}")) == Fraction(1, math.factorial(303))


@pytest.mark.parametrize(
    "latex",
    [
        "2 3",
        "4{10}",
        "(1",
        "1)",
        r"\frac{1}",
        r"\sqrt[",
        "1+",
        "",
        r"\foo",
        r"\int_0^1 x",
        "a=b",
        "(" * 50 + "1" + ")" * 50,
        "1" * 401,
        "x" * 501,
        r"\text{cat}",
        "2^",
        "1,2",
        "$",
    ],
)
def test_what_is_no_expression(latex: str):
    with pytest.raises(Unreadable):
        parse(latex)


@pytest.mark.parametrize(
    "latex",
    [
        "9^{9^{9^9}}",
        "2^{16^{256}}",
        "((20!)!)!",
        "(10^9)!",
        "1/0",
        "0^{-1}",
        r"\infty",
        "x",
        r"\sin(10^{10^{10}})",
        r"\binom{10^9}{10^8}",
        r"\ln 0",
        r"e^{10^{9}}",
    ],
)
def test_what_has_no_value_or_too_large_a_one(latex: str):
    with pytest.raises(Uncomputable):
        number(parse(latex))


def test_letters_keep_their_case_and_subscripts():
    assert symbols(parse(r"R x_1 + \alpha_{12} f'")) == {"R", "x_1", r"\alpha_12", "f'"}


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (r"1+\tan^2 t", r"\sec^2 t", True),
        (r"1-\tan^2 t", r"\sec^2 t", False),
        (r"\sqrt{1/n}", r"1/\sqrt{n}", True),
        (r"\sqrt{ab}", r"\sqrt{a}\sqrt{b}", True),
        ("|x|", "x", False),
        (r"\sqrt{x^2}", "|x|", True),
        ("(x+1)^2", "x^2+2x+1", True),
        ("(x+1)^2", "x^2+x+1", False),
        ("x+10^{-40}", "x", False),
        ("e^{-40}", "e^{-41}", False),
        ("e^{-400}", "e^{-401}", False),
        (r"\sqrt{3+2\sqrt2}-1-\sqrt2", "0", True),
        ("i^2", "-1", True),
        ("2+3i", "3+2i", False),
        (r"\sqrt{-1-x^2}", r"i\sqrt{1+x^2}", True),
        ("n!", "n(n-1)!", True),
        ("x - x + 5", "5", True),
        ("1/0", "1/0", False),
    ],
)
def test_same_value(a: str, b: str, same: bool):
    try:
        found = same_value(parse(a), parse(b))
    except Uncomputable:
        found = False
    assert found is same


@pytest.mark.parametrize(
    ("a", "b", "ratio", "positive"),
    [
        ("3x-4y+5", "-3x+4y-5", True, False),
        ("2x-4", "x-2", True, True),
        ("x-2", "x-3", False, False),
        ("x^2/36+y^2/20-1", "x^2/9+y^2/5-1", False, False),
        ("x", "y", False, False),
        ("5", "10", False, False),  # no variable: 5 = 0 and 10 = 0 are no equations
    ],
)
def test_same_ratio(a: str, b: str, ratio: bool, positive: bool):
    assert same_ratio(parse(a), parse(b)) is ratio
    assert same_ratio(parse(a), parse(b), positive=True) is positive
