import time

import pytest

from rewards import countdown_reached


@pytest.mark.parametrize(
    ("answer", "numbers", "target"),
    [
        ("3+4", [3, 4], 7),
        ("\\boxed{3+4}", [3, 4], 7),
        ("4 \N{MULTIPLICATION SIGN} 2", [4, 2], 8),
        ("8 \N{DIVISION SIGN} 2 \N{MINUS SIGN} 1", [8, 2, 1], 3),
        (r"8 \times 2 \div 4", [8, 2, 4], 4),
        (r"8 \cdot 2", [2, 8], 16),
        (r"\frac{12}{4} + 3", [12, 4, 3], 6),
        (r"\dfrac{1+\frac{6}{2}}{4}", [1, 6, 2, 4], 1),
        (r"\left(3+4\right)\cdot 5", [3, 4, 5], 35),
        ("$[(3+4)*5] - 1$", [3, 4, 5, 1], 34),
        ("10/3*3", [10, 3, 3], 10),  # exactly, although 10/3 is no decimal
        ("8/(3-8/3)", [3, 3, 8, 8], 24),
        ("-3 + 10", [3, 10], 7),
        ("10 - (-3)", [3, 10], 13),
        ("2 - 3 - 4", [2, 3, 4], -5),  # from the left
        ("12/2/3", [12, 2, 3], 2),
        ("2+3*4", [2, 3, 4], 14),
        ("3+4=7", [3, 4], 7),
        ("3 + 4 = 7.", [3, 4], 7),
        ("2 - 7 = -5", [2, 7], -5),
    ],
)
def test_right(answer: str, numbers: list[int], target: int):
    tagged = f"<reasoning>1+1</reasoning>\n<answer>\n{answer}\n</answer>"
    assert countdown_reached(tagged, numbers=numbers, target=target) == 1.0
    assert countdown_reached(answer, numbers=numbers, target=target) == 1.0
    assert countdown_reached(tagged, numbers=numbers, target=target + 1) == 0.0
    assert countdown_reached(tagged, numbers=[*numbers, 1], target=target) == 0.0


@pytest.mark.parametrize(
    ("answer", "numbers", "target"),
    [
        ("", [3, 4], 7),
        ("7", [3, 4], 7),
        ("50*2/2", [2, 50, 2, 2], 50),  # one 2 is not used
        ("3+4+3", [3, 4], 10),  # 3 is used twice
        ("40+8", [20, 28], 48),
        ("7//2", [7, 2], 3),
        ("2**3", [2, 3], 8),
        ("2^3", [2, 3], 8),
        ("5!", [5], 120),
        ("1.5*2", [1, 5, 2], 3),
        (".5*4", [5, 4], 2),
        ("5.0+4", [5, 4, 0], 9),
        ("3 4", [3, 4], 34),
        ("34", [3, 4], 34),
        ("3(4)", [3, 4], 12),
        ("3+4=8", [3, 4], 7),
        ("3+4=7=7", [3, 4], 7),
        ("7=3+4", [3, 4], 7),
        ("3+4=", [3, 4], 7),
        ("(3+4", [3, 4], 7),
        ("(3+4]", [3, 4], 7),
        ("3+4)", [3, 4], 7),
        ("3+", [3], 3),
        ("3*/4", [3, 4], 12),
        ("3/(4-4)", [3, 4, 4], 0),
        (r"\frac12", [1, 2], 2),
        (r"\sqrt{4}+3", [3, 4], 5),
        ("\N{ARABIC-INDIC DIGIT THREE}+4", [3, 4], 7),
        ("open('owned','w').write('3')", [3], 3),
        ("three plus four", [3, 4], 7),
    ],
)
def test_wrong(answer: str, numbers: list[int], target: int):
    assert countdown_reached(f"<answer>{answer}</answer>", numbers=numbers, target=target) == 0.0


def test_where_the_answer_is():
    columns = {"numbers": [3, 4], "target": 7}
    assert countdown_reached("<answer>1+1</answer> <answer>3+4</answer>", **columns) == 1.0
    assert countdown_reached("<answer>3+4</answer> <answer>1+1</answer>", **columns) == 0.0
    assert countdown_reached(r"perhaps \boxed{3*4}, no, \boxed{3+4}", **columns) == 1.0
    assert countdown_reached("It is 3+4", **columns) == 0.0


def test_texts_made_to_hang_or_overflow_are_refused_at_once():
    started = time.process_time()
    columns = {"numbers": [9, 9, 9, 9], "target": 81}
    for text in ("9**9**9**9", "(" * 5000 + "9" + ")" * 5000, "-" * 299 + "9", "9*" * 100_000):
        assert countdown_reached(f"<answer>{text}</answer>", **columns) == 0.0
    assert time.process_time() - started < 1.0


def test_depth_is_limited():
    columns = {"numbers": [3, 4], "target": 7}
    assert countdown_reached("(" * 30 + "3+4" + ")" * 30, **columns) == 1.0
    assert countdown_reached("(" * 45 + "3+4" + ")" * 45, **columns) == 0.0


def test_columns_may_be_text():
    assert countdown_reached("3+4", numbers=["3", "4"], target="7") == 1.0
