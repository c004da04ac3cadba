"""The form of an answer, its unit, and the sets of real numbers."""

import pytest

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
from rewards.answer_reading import read
from rewards.answer_units import fits, read_unit, split_unit
from rewards.math_text import plain
from rewards.real_sets import real_set, same_set

ONE, TWO = Quantity("1"), Quantity("2")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("1, 2", Listing((ONE, TWO))),
        ("1 or 2", Listing((ONE, TWO), "or")),
        (r"1\text{ and }2", Listing((ONE, TWO), "and")),
        (r"\{1, 2\}", Listing((ONE, TWO), r"\{")),
        ("(1, 2]", Group("(", (ONE, TWO), "]")),
        (r"(1,2) \cup [2,1]", Union((Group("(", (ONE, TWO), ")"), Group("[", (TWO, ONE), "]")))),
        (r"1 \pm 2", Listing((Quantity("1 + 2"), Quantity("1 - 2")))),
        ("1 < x < 2", Relation(("1", "x", "2"), ("<", "<"))),
        ("y = 2x", Relation(("y", "2x"), ("=",))),
        ("52_8", Based("52", 8)),
        (r"52_{\text{eight}}", Based("52", 8)),
        ("52 base 8", Based("52", 8)),
        ("3:05 pm", Clock(3, 5, "p")),
        ("3:2", Quantity("(3)/(2)")),
        ("(B)", Choice("B")),
        (r"\text{(B)} 12", Choice("B", "12")),
        ("B", Choice("B", sure=False)),
        ("The taller tree", Words("taller tree")),
        ("The area is 1", ONE),
        (r"\begin{pmatrix} 1 & 2 \\ 2 & 1 \end{pmatrix}", Matrix(((ONE, TWO), (TWO, ONE)))),
        (r"\begin{pmatrix} 1 & 2 \end{pmatrix}^T", Matrix(((ONE,), (TWO,)))),
        (r"90^\circ", Quantity("90", (("degree", 1),))),
        ("(x+1)(x+2)", Quantity("(x+1)(x+2)")),
    ],
)
def test_forms(text: str, form: Form):
    assert read(plain(text)) == form


@pytest.mark.parametrize("text", ["(B) or (C)", "(B) 12 or (C) 13", "B, C", "not 5", "at least 5"])
def test_what_hedges_is_neither_a_choice_nor_a_number(text: str):
    assert not isinstance(read(plain(text)), Choice | Quantity)


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        (r"15\text{ cm}^2", "15", (("cm", 2),)),
        ("15 square centimeters", "15", (("cm", 2),)),
        ("60 miles per hour", "60", (("hour", -1), ("mile", 1))),
        ("60 mph", "60", (("hour", -1), ("mile", 1))),
        (r"\$18.90", "18.90", (("dollar", 1),)),
        (r"-\$5", "-5", (("dollar", 1),)),
        ("35%", "35", (("%", 1),)),
        ("12 red apples", "12", (("apple", 1), ("red", 1))),
        ("3 million", "(3) * 10^{6}", ()),
        ("5 squared", "5 squared", ()),
        ("5 hundredths", "5 hundredths", ()),
        ("12", "12", ()),
        (r"\sin 30^\circ", r"\sin 30^\circ", ()),
    ],
)
def test_units(text: str, number: str, unit: tuple[tuple[str, int], ...]):
    assert split_unit(text) == (number, unit)


@pytest.mark.parametrize(
    ("gold", "answer", "verdict"),
    [
        ("cm^2", "", True),
        ("cm^2", "cm^3", False),
        ("cm^2", "square cm", True),
        ("cm", "m", False),
        ("apples", "red apples", True),
        ("apples", "pears", False),
        ("cents", "dollars", False),
        ("units", "cm", True),
        ("units", "cm^2", False),
    ],
)
def test_units_that_fit(gold: str, answer: str, verdict: bool):
    first, second = read_unit(gold), read_unit(answer)
    assert first is not None
    assert second is not None
    assert fits(first, second) is verdict
    assert fits(second, first) is verdict


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("x < 5", r"(-\infty, 5)", True),
        ("x < 5", r"(-\infty, 5]", False),
        ("5 > x", "x < 5", True),
        ("-2x < 4", r"(-2, \infty)", True),
        ("1 < 2x + 1 < 5", "(0,2)", True),
        (r"x \neq 1", r"(-\infty,1) \cup (1,\infty)", True),
        (r"(0,9) \cup (9,36)", "(0,36)", False),
        (r"(0,36) \setminus \{9\}", r"(0,9) \cup (9,36)", True),
        (r"[0,2] \cup [2,5]", "[0,5]", True),
        (r"[0,2) \cup (2,5]", "[0,5]", False),
        (r"[0,2) \cup \{2\} \cup (2,5]", "[0,5]", True),
        ("x < 1 or x > 3", r"(3,\infty) \cup (-\infty,1)", True),
        ("x > 1 and x < 3", "(1,3)", True),
        (r"x \in [\sqrt{2}, 2]", r"\sqrt{2} \leq x \leq 2", True),
        (r"x \in [1,2]", r"y \in [1,2]", False),
        (r"\mathbb{R}", r"(-\infty, \infty)", True),
        (r"(\frac{\pi}{2}, 3)", r"(\pi/2, 3)", True),
        ("(1,3)", "(1,3.1)", False),
    ],
)
def test_sets_of_real_numbers(a: str, b: str, same: bool):
    sets = [real_set(read(plain(text))) for text in (a, b)]
    assert sets[0] is not None
    assert sets[1] is not None
    assert same_set(*sets) is same


@pytest.mark.parametrize("text", ["(5, 1)", "x^2 < 4", "x < y", "(a, b)", "1, 2", r"(i, 2)"])
def test_what_is_no_set(text: str):
    assert real_set(read(plain(text))) is None
