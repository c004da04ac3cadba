"""d1's rewards with their faults: values from running d1's own functions, or by hand."""

import gzip
import json
import re
import time
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from statistics import mean

import pytest

from rewards import PARITY, REWARDS
from rewards.parity_python import LARGEST, OutOfBounds, python_value

MULTI = "<reasoning>\nstep one\nstep two\n</reasoning>\n<answer>\n7\n</answer>"
ONE_LINE = "<reasoning>\na\n</reasoning>\n<answer>\n7\n</answer>\n"


def d1(name: str, text: str, **columns: object) -> float:
    return PARITY[f"parity:d1_{name}"](text, **columns)


@pytest.mark.parametrize(
    ("text", "gold", "score"),
    [
        (MULTI, "7", 2.0),
        ("7", "7", 2.0),
        (" 7 ", "7", 2.0),
        ("<answer>1000</answer>", "1,000", 0.0),
        ("<answer>72.0</answer>", "72", 0.0),
        ("<answer>$72</answer>", "72", 0.0),
        ("<answer>72 dollars</answer>", "72", 0.0),
        (r"<answer>\boxed{72}</answer>", "72", 0.0),
        ("<answer>1</answer><answer>72</answer>", "72", 2.0),
        ("<answer>72", "72", 2.0),
        ("<answer>72</answer><|eot_id|><answer>1</answer>", "72", 0.0),
    ],
)
def test_gsm8k(text: str, gold: str, score: float):
    assert d1("gsm8k", text, answer=gold) == score


@pytest.mark.parametrize(
    ("answer", "score"),
    [("7", 0.5), ("0", 0.5), ("-3", 0.0), ("1,000", 0.0), ("3.5", 0.0), ("\u00b2", 0.5), ("", 0.0)],
)
def test_int(answer: str, score: float):
    assert d1("int", f"<answer>{answer}</answer>") == score
    assert d1("int", answer) == score


@pytest.mark.parametrize(
    ("text", "soft", "strict"),
    [
        (MULTI, 0.0, 0.0),
        (ONE_LINE, 0.0, 0.5),
        (ONE_LINE.rstrip(), 0.0, 0.0),  # no newline at the end
        ("<reasoning>a</reasoning> <answer>7</answer> more", 0.5, 0.0),
        ("<reasoning></reasoning><answer></answer>", 0.5, 0.0),
        ("<reasoning>a</reasoning><reasoning>b</reasoning><answer>7</answer>", 0.5, 0.0),
        ("so <reasoning>a</reasoning><answer>7</answer>", 0.0, 0.0),
    ],
)
def test_soft_and_strict_format(text: str, soft: float, strict: float):
    assert d1("soft_format", text) == soft
    assert d1("strict_format", text) == strict


def test_xml_count_charges_the_whole_text_for_a_missing_newline():
    body = "<reasoning>\n{}\n</reasoning>\n<answer>\n7\n</answer>"
    text = body.format("x" * (1000 - len(body) + 2))
    assert len(text) == 1000
    # 0.5 - 1000/1000 + (0 - (-1))/1000: d1 prints -0.499; the 1046 characters of its report, -0.546
    assert d1("xml_count", text) == pytest.approx(0.5 - 1.0 + 0.001)
    assert d1("xml_count", text + "\n") == pytest.approx(0.5)
    assert d1("xml_count", body.format("x" * 3000)) < -2
    assert d1("xml_count", text + "\nten chars.") == pytest.approx(0.5 - 0.020)
    assert d1("xml_count", "") == 0.0


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (r"<answer>\boxed{7}</answer>", 0.75),
        ("<answer>", 0.75),
        ("", 0.25),
        (r"\boxed{7}", 0.25),
        ("<answer>\boxed{7}</answer>", 1.0),  # a backspace
    ],
)
def test_boxed_and_answer_tags(text: str, score: float):
    assert d1("boxed_and_answer_tags", text) == score


@pytest.mark.parametrize(
    ("answer", "numbers", "target", "score"),
    [
        ("3+4", [3, 4], 7, 1.0),
        ("3*4", [3, 4], 7, 0.1),
        ("", [3, 4], 7, 0.1),
        ("hello", [3, 4], 7, 0.1),
        ("2**3+4", [2, 3, 4], 12, 1.0),
        ("7//2+9", [7, 2, 9], 12, 1.0),
        ("1.5*4", [1, 5, 4], 6, 1.0),
        (".5*4", [5, 4], 2, 1.0),
        ("-(-3)+5-7", [3, 5, 7], 1, 1.0),
        ("10/3*3", [10, 3, 3], 10, 1.0),
        ("3+4=7", [3, 4], 7, 0.1),
        (r"4 \times 2", [4, 2], 8, 0.1),
        ("4 \u00d7 2", [4, 2], 8, 0.1),
        (r"\boxed{3+4}", [3, 4], 7, 0.1),
        ("3\n+4", [3, 4], 7, 0.1),
        ("3(4)", [3, 4], 12, 0.1),
        ("3/(4-4)", [3, 4, 4], 0, 0.1),
        ("03+4", [3, 4], 7, 0.1),
        ("9**9**9**9", [9, 9, 9, 9], 81, 0.1),
        ("9**-9**99**9", [9, 9, 99, 9], 81, 0.1),
        ("(-8)**(1/3)", [8, 1, 3], 2, 0.1),
        ("-" * 250 + "3+4", [3, 4], 7, 1.0),
    ],
)
def test_countdown(answer: str, numbers: list[int], target: int, score: float):
    text = f"<answer>{answer}</answer>"
    assert d1("countdown", text, numbers=numbers, target=target) == score
    assert d1("countdown", answer, numbers=numbers, target=target) == 0.0


PUZZLE, SOLUTION = "1204041020400321", "1234341221434321"


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        (SOLUTION, 1.0),
        ("4" * 16, 1 / 6),
        ("2" + SOLUTION[1:], 1.0),  # a clue is changed
        (SOLUTION + "999", 1.0),
        (SOLUTION[:8], 0.5),  # padded: 3 of the 6 empty cells are in the first half
        ("9994999199999999", 0.0),
        ("", 0.0),
        (f"The 4x4 solution is: {SOLUTION}", 2 / 6),  # read as 44123434...
    ],
)
def test_sudoku(answer: str, score: float):
    found = d1("sudoku", f"<answer>{answer}</answer>", puzzle=PUZZLE, solution=SOLUTION)
    assert found == pytest.approx(score)
    assert d1("sudoku", answer, puzzle=PUZZLE, solution=SOLUTION) == 0.0


def test_python_value_is_evals_within_bounds():
    for text in ("2**-1", "7//2", "-7//2", "1.5*4", "(-8)**(1/3)", "2-3-4", "2**3**2", "+-3", ".5"):
        assert python_value(text) == eval(text)
    assert python_value(f"{LARGEST}-1") == LARGEST - 1
    for text in ("9**9**9", f"{LARGEST}+1", "1/0", "0**-1", "()", "a", "f(3)", "3 4", "3,4",
                 "[3]", "1 if 2 else 3", "'3'", "1j", "1%2", "3" * 301, "(" * 200, "",
                 "1\x00"):  # fmt: skip
        with pytest.raises(OutOfBounds):
            python_value(text)


@pytest.mark.parametrize(
    ("text", "gold", "score"),
    [
        (r"so \boxed{\dfrac12}", r"\frac{1}{2}", 2.0),
        (r"\boxed{3/4}", r"\frac34", 2.0),
        (r"\boxed{x = 0.5}", r"\frac{1}{2}", 2.0),
        (r"\boxed{12\text{ cm}}", "12", 2.0),
        (r"first \boxed{1}, then \boxed{\sqrt3}", r"\sqrt{3}", 2.0),
        ("5", "5", 2.0),  # no box: all of it
        # its faults
        (r"\boxed{0.25}", r"\frac14", 0.0),
        (r"\boxed{1,000}", "1000", 0.0),
        (r"\boxed{\text{(A)}}", "A", 0.0),
        (r"\boxed{x+1}", "1+x", 0.0),
        (r"\boxed{x/2}", r"\frac{x}{2}", 0.0),
        (r"\boxed{7} in a \boxed command", "7", 0.0),
        (r"\boxed{7", "7", 0.0),
        ("<answer>7</answer>", "7", 0.0),
    ],
)
def test_math(text: str, gold: str, score: float):
    assert d1("math", text, answer=gold) == score


def test_real_generations(shared_data: Path):
    """What d1's training rewards pay LLaDA-8B-Instruct (all 6,426 outputs), as measured with d1's
    own functions: format never, a tenth for nearly every Countdown answer. (d1's evaluation reads
    unclosed <answer> tags of Sudoku too, and gets 6.7 and 5.5.)"""
    tenths: Counter[int] = Counter()
    right: Counter[int] = Counter()
    sudoku: dict[int, list[float]] = defaultdict(list)
    with gzip.open(shared_data / "d1_llada_generations.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            text, length = row["generation"], row["gen_length"]
            assert d1("soft_format", text) == d1("strict_format", text) == 0.0
            assert d1("xml_count", text) <= 0.5
            if row["task"] == "countdown":
                numbers, target = row["ground_truth"]
                tenths[length] += d1("countdown", text, numbers=numbers, target=target) == 0.1
            elif row["task"] == "sudoku":
                puzzle = row["question"].split(":")[1].strip()
                gold = row["ground_truth"]
                sudoku[length].append(d1("sudoku", text, puzzle=puzzle, solution=gold))
            elif row["task"] == "math500":
                right[length] += d1("math", text, answer=row["ground_truth"]) == 2.0
    assert right == {128: 130, 256: 162, 512: 181}
    assert tenths == {128: 243, 256: 201, 512: 182}
    assert {length: len(scores) for length, scores in sudoku.items()} == dict.fromkeys(tenths, 256)
    assert [round(100 * mean(sudoku[length]), 1) for length in (128, 256, 512)] == [11.7, 5.9, 4.8]


def test_ours_differ_where_theirs_is_wrong():
    assert REWARDS["countdown"]("<answer>2**3+4</answer>", [2, 3, 4], 12) == 0.0
    assert REWARDS["soft_format"](MULTI) == 1.0
    assert REWARDS["boxed_format"](r"<answer>\boxed{7}</answer>") == 1.0


def test_linear_searches_find_what_the_published_patterns_find():
    """On texts of nothing but tags, where the patterns are as ambiguous as can be."""
    soft = re.compile(r"<reasoning>.*?</reasoning>\s*<answer>.*?</answer>")
    rng, hits = Random(1), 0
    bits = ["<reasoning>", "</reasoning>", "<answer>", "</answer>", "\n", " ", "2"]
    for _ in range(20_000):
        text = rng.choice(["", "<reasoning>"]) + "".join(rng.choices(bits, k=rng.randint(0, 9)))
        expected = 0.5 * (soft.match(text) is not None)
        hits += expected > 0
        assert d1("soft_format", text) == expected, text
        blocks = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
        right = float(blocks[-1].strip() == "2") if blocks else 0.0
        assert (d1("countdown", text, numbers=[2], target=2) == 1.0) == bool(right), text
    assert hits > 100


def test_they_are_linear():
    started = time.process_time()
    for text in (
        "<answer>" * 50_000,
        "<reasoning>" + "</reasoning><answer>" * 50_000 + "\n</answer>",
    ):
        d1("countdown", text, numbers=[3], target=3)
        d1("sudoku", text, puzzle=PUZZLE, solution=SOLUTION)
        assert d1("soft_format", text) == 0.0
    assert time.process_time() - started < 5
