"""One spelling for what is written in several."""

from fractions import Fraction

import pytest

from rewards.math_text import is_deep, is_finite_decimal, plain, rational, spelling


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"10,\!080", "10080"),
        (r"11,\! 111,\! 111,\! 100", "11111111100"),
        (r"385\,000", "385000"),
        ("1 000 000", "1000000"),
        ("1'000'000", "1000000"),
        ("12,34,567", "1234567"),
        ("1.234.567", "1234567"),
        ("1.234,56", "1234.56"),
        ("1{,}000", "1000"),
        ("3{,}5", "3.5"),
        ("100, 200", "100, 200"),
        ("(100,200)", "(100,200)"),
        ("1,234,56", "1,234,56"),
        ("x\N{SUPERSCRIPT TWO}", "x^{2}"),
        ("10\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT THREE}", "10^{-3}"),
        ("1\N{VULGAR FRACTION ONE HALF}", r"1\frac{1}{2}"),
        ("1 1/4", r"1\frac{1}{4}"),
        ("pi/2", r"\pi /2"),
        ("2\N{GREEK SMALL LETTER PI}", r"2\pi"),
        ("\N{MINUS SIGN}5", "-5"),
        ("\N{FULLWIDTH DIGIT FIVE}", "5"),
        ("x\N{LESS-THAN OR EQUAL TO}5", r"x\leq 5"),
        ("$x=5$ or $x=6$", "x=5 or x=6"),
        ("$5", "$5"),
        (r"\left(\dfrac{1}{2}\right)", r"(\frac{1}{2})"),
        (r"1.5e3", "1.5*10^{3}"),
        ("a\u200bb\x00", "ab"),
    ],
)
def test_plain(text: str, expected: str):
    assert plain(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.30", Fraction(3, 10)),
        (".5", Fraction(1, 2)),
        ("-7/8", Fraction(-7, 8)),
        (r"-\frac{3}{4}", Fraction(-3, 4)),
        (r"\frac{-3}{4}", Fraction(-3, 4)),
        (r"2\frac{1}{2}", Fraction(5, 2)),
        (r"\frac43", Fraction(4, 3)),
        ("1/0", None),
        ("2 3", None),
        (r"\sqrt{4}", None),
        ("5x", None),
        ("", None),
    ],
)
def test_rational(text: str, expected: Fraction | None):
    assert rational(text) == expected


def test_the_rest():
    assert spelling(r"\text{B}") == spelling(" B ") == "B"
    assert spelling("3 - x") == spelling("3-x")
    assert spelling("1 2") != spelling("12")
    assert is_finite_decimal(Fraction(7, 40))
    assert not is_finite_decimal(Fraction(1, 3))
    assert is_deep("(" * 31)
    assert not is_deep("()" * 200)
