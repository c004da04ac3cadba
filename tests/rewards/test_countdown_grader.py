import gzip
import json
import re
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random

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
        ("7 = 3+4", [3, 4], 7),
        ("(1+2)*4 = 3*4 = 12", [1, 2, 4], 12),
        ("3+4=7=7", [3, 4], 7),
        ("(4) = 2+2", [2, 2], 4),
        ("3+4 == 7", [3, 4], 7),
        ("\N{FULLWIDTH DIGIT THREE}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH DIGIT FOUR}", [3, 4], 7),
        ("\N{ARABIC-INDIC DIGIT THREE}+4", [3, 4], 7),
        ("4 x 2", [4, 2], 8),
        ("2\N{DOT OPERATOR}5\N{BULLET}2", [2, 5, 2], 20),
        ("6\N{DIVISION SLASH}2", [6, 2], 3),
        (r"4\cdot\frac12", [4, 1, 2], 2),
        (r"\cfrac{8}{2}\,\ast\,3", [8, 2, 3], 12),
        (r"\bigl\{3+4\bigr\} \quad", [3, 4], 7),
        (r"\(3+4\).", [3, 4], 7),
        ("**3*4**", [3, 4], 12),
        ("`3+4`", [3, 4], 7),
        ("```python\n3+4\n```", [3, 4], 7),
        ("1,000+4", [1000, 4], 1004),
        ("+".join(["1"] * 200), [1] * 200, 200),
        ("5", [5], 5),
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
        ("3+4=8=7", [3, 4], 7),
        ("8=3+4", [3, 4], 7),
        ("1*7=3+4", [3, 4], 7),  # the first side with an operator is the answer
        ("3+4=7", [3, 4], 8),
        ("7=7", [3, 4], 7),
        ("=3+4", [3, 4], 7),
        ("3+4==", [3, 4], 7),
        ("=".join(["3+4"] * 9), [3, 4], 7),
        ("3+4=7/(2-2)", [3, 4], 7),
        ("3+4=?", [3, 4], 7),
        ("3+4=", [3, 4], 7),
        ("(3+4", [3, 4], 7),
        ("(3+4]", [3, 4], 7),
        ("3+4)", [3, 4], 7),
        ("3+", [3], 3),
        ("3*/4", [3, 4], 12),
        ("3/(4-4)", [3, 4, 4], 0),
        (r"\frac12", [1, 2], 2),
        (r"\sqrt{4}+3", [3, 4], 5),
        ("3\N{SUPERSCRIPT TWO}", [32], 32),
        ("\N{VULGAR FRACTION ONE HALF}*4", [1, 2, 4], 2),
        (r"\frac123", [1, 23], 23),
        (r"\frac{1}{2}3", [1, 2, 3], 3),
        ("**2**3**", [2, 3], 8),
        ("F{8}{2}", [8, 2], 4),  # the tokeniser's own letter
        ("1,00+4", [100, 4], 104),
        ("3,4", [3, 4], 34),
        ("3 x", [3], 3),
        ("x3", [3], 3),
        ("3;4", [3, 4], 7),
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


def test_depth_and_length_are_limited():
    columns = {"numbers": [3, 4], "target": 7}
    assert countdown_reached("(" * 90 + "3+4" + ")" * 90, **columns) == 1.0
    assert countdown_reached("(" * 110 + "3+4" + ")" * 110, **columns) == 0.0
    assert countdown_reached("3+4" + " " * 350, **columns) == 1.0
    assert countdown_reached("3" + " " * 370 + "+4", **columns) == 0.0


@pytest.mark.parametrize(
    ("numbers", "target"),
    [(["3", "4"], "7"), ("3,4", 7), ("[3, 4]", 7.0), ((3.0, 4), 7), (range(3, 5), 7)],
)
def test_columns_in_every_form_that_files_have(numbers: object, target: object):
    assert countdown_reached("3+4", numbers=numbers, target=target) == 1.0
    assert countdown_reached("3+5", numbers=numbers, target=target) == 0.0


@pytest.mark.parametrize(
    ("numbers", "target", "column"),
    [
        ([], 7, "numbers"),
        ([3, -4], -1, "numbers"),
        ([3, 4.5], 7, "numbers"),
        (["three"], 3, "numbers"),
        (7, 7, "numbers"),
        ([3, 4], 7.5, "target"),
        ([3, 4], float("inf"), "target"),
        ([3, 4], "seven", "target"),
    ],
)
def test_columns_that_are_wrong_are_named(numbers: object, target: object, column: str):
    with pytest.raises(ValueError, match=f"column '{column}' must"):
        countdown_reached("3+4", numbers=numbers, target=target)


@pytest.mark.parametrize("seed", range(3))
def test_a_random_expression_has_the_value_that_python_gives_it(seed: int):
    """Python's own arithmetic over Fraction literals is the oracle."""
    rng = Random(seed)
    for _ in range(200):
        numbers = [rng.randint(0, 30) for _ in range(rng.randint(1, 7))]
        parts = [str(number) for number in numbers]
        while len(parts) > 1:
            left, right = parts.pop(rng.randrange(len(parts))), parts.pop()
            parts.append(f"({left} {rng.choice('+-*/')} {rng.choice(['', '-'])}{right})")
        exact = re.sub(r"(\d+)", r"Fraction(\1)", parts[0])
        try:
            value = eval(exact, {"Fraction": Fraction})
        except ZeroDivisionError:
            assert countdown_reached(parts[0], numbers=numbers, target=0) == 0.0
            continue
        right = value.denominator == 1
        assert countdown_reached(parts[0], numbers=numbers, target=int(value)) == float(right)
        assert countdown_reached(parts[0], numbers=numbers, target=int(value) + 1) == 0.0


def test_real_generations_score_what_the_reference_says(shared_data: Path):
    """Countdown-3 by LLaDA-8B-Instruct, 256 problems at each of three lengths."""
    right: Counter[int] = Counter()
    with gzip.open(shared_data / "d1_llada_generations.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            if row["task"] == "countdown":
                numbers, target = row["ground_truth"]
                score = countdown_reached(row["generation"], numbers=numbers, target=target)
                right[row["gen_length"]] += int(score)
    assert {length: round(n / 2.56, 1) for length, n in right.items()} == {
        128: 21.1,
        256: 19.1,
        512: 16.0,
    }
