from fractions import Fraction

import pytest

from rewards.prose_numbers import number_in_prose
from rewards.quantities import as_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("007", 7),
        ("-7", -7),
        ("\N{MINUS SIGN}7", -7),
        ("+7", 7),
        ("20.", 20),
        (".5", Fraction(1, 2)),
        ("1,234,567", 1234567),
        ("1,234.50", Fraction(2469, 2)),
        ("$1,000", 1000),
        (r"\$1{,}000", 1000),
        ("-$5", -5),
        (r"385\,000", 385000),
        (r"11,\! 111", 11111),
        ("7/8", Fraction(7, 8)),
        (r"-\frac{3}{4}", Fraction(-3, 4)),
        (r"\dfrac{6}{8}", Fraction(3, 4)),
        ("1 1/4", Fraction(5, 4)),
        (r"2\frac{1}{2}", Fraction(5, 2)),
        (r"12\text{ cm}", 12),
        (r"\text{17}", 17),
        (r"90^\circ", 90),
        (r"\(5\)", 5),
        ("**5**", 5),
        ("{5}", 5),
        ("12,34,567", 1234567),
        ("1.234.567", 1234567),
        ("1.234,56", Fraction(30864, 25)),
        ("1 234", 1234),
        ("1'234.5", Fraction(2469, 2)),
        ("0,125", Fraction(1, 8)),
        ("1.234", Fraction(617, 500)),
        ("1.2e3", 1200),
        (r"1.2 \times 10^{3}", 1200),
        ("10\N{SUPERSCRIPT THREE}", 1000),
        ("2\N{VULGAR FRACTION ONE HALF}", Fraction(5, 2)),
    ],
)
def test_numbers(text: str, number: Fraction | int):
    assert as_number(text) == number
    assert number_in_prose(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ten eleven",
        "1,2",
        "1,23",
        "12,34",
        "1.2.3",
        "3^2",
        "5x",
        "x-5",
        "2/0",
        "12 and 30",
        "7!",
        "--5",
        r"5\text{ million}",
        "5-2",
        r"\sqrt{2}",
        r"3\sqrt{2}",
        "2:30 pm",
        "\N{SUPERSCRIPT TWO}",
        "9" * 501,
        "3,5",
        "1 23",
        "12 34 567",
        "1 5/4",
        "10^400",
        "1.234.56",
        "01,234",
    ],
)
def test_not_a_number(text: str):
    assert as_number(text) is None
    assert number_in_prose(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("72 clips, altogether", 72),
        ("240 sheets per day", 240),
        ("5 changes/day", 5),
        ("3 + 4 = 7 eggs", 7),
        ("x = 5", 5),
        ("Total: $7.", 7),
        ("The total is $7.", 7),
        (r"60\%", 60),
        ("2/3 of a cup", Fraction(2, 3)),
    ],
)
def test_one_number_among_words(text: str, number: Fraction | int):
    assert number_in_prose(text) == number
    assert as_number(text) is None
