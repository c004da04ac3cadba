import json
import re
from pathlib import Path

import pytest

from rewards import WorkerPool, math_correct
from rewards.math_answer import POOL, decide, grade_math


def in_box(answer: str) -> str:
    return f"So we get \\boxed{{{answer}}}."


def digit_changed(gold: str) -> str | None:
    """The gold with its last digit replaced by the next one."""
    digits = list(re.finditer(r"\d", gold))
    if not digits:
        return None
    last = digits[-1]
    return gold[: last.start()] + str((int(last[0]) + 1) % 10) + gold[last.end() :]


@pytest.mark.parametrize(
    ("gold", "answer", "verdict"),
    [
        ("17", r"\text{17}", True),
        ("17", "71", False),
        ("17", "17.0", True),
        (r"\frac43", r"\dfrac{4}{3}", True),
        (r"\frac{3}{10}", "0.30", True),
        (r"\frac{3}{10}", "0.31", False),
        ("0.0000001", "0.0000002", False),  # math-verify rounds both to 0
        ("10,080", "10080", True),
        (r"\frac{1}{3}", "0.3333333333", None),  # rounding is math-verify's to judge
        (r"3 - \sqrt{5}", r"3-\sqrt{5}", True),
        (r"3 - \sqrt{5}", "3", None),
        (r"\left( 3, \frac{\pi}{2} \right)", r"(3,\frac{\pi}{2})", True),
        ("12", "1 2", None),
        ("7", "", False),
        ("7", "7" * 501, False),
    ],
)
def test_what_needs_no_worker(gold: str, answer: str, verdict: bool | None):
    assert decide(gold, answer) is verdict


@pytest.mark.parametrize(
    ("completion", "gold", "score"),
    [
        (in_box("5"), r"\boxed{5}", 1.0),
        (in_box("5"), "$5$", 1.0),
        ("<answer>$5$.</answer>", "5", 1.0),
        (r"\boxed{11}. Checking, it is really \boxed{12}", "12", 1.0),
        (r"\boxed{11}. Checking, it is really \boxed{12}", "11", 0.0),
        (r"\boxed{12} <answer>11</answer>", "12", 0.0),
        ("I thought about 42 but could not finish", "42", 0.0),
        ("", "0", 0.0),
    ],
)
def test_where_the_answer_is(completion: str, gold: str, score: float):
    before = POOL.counts.copy()
    assert math_correct(completion, answer=gold) == score
    assert POOL.counts == before


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        (r"\sqrt{13}", "3.605551275463989", "3.60"),
        (r"\frac{1}{3}", "0.3333333333", "0.3333"),
        (r"\sec^2(t)", r"1 + \tan^2(t)", r"1 - \tan^2(t)"),
        ("3x - 4y + 5 = 0", "-3x + 4y - 5 = 0", "3x - 4y - 5 = 0"),
        (r"a=1 \text{ or } a=-2", r"a=-2 \text{ or } a=1", "a=1"),
        (r"m \geq \sqrt{3}", r"m \in [\sqrt{3}, \infty)", r"m > \sqrt{3}"),
        ("52_8", "52_{8}", "52_9"),
        (r"15\mbox{ cm}^2", r"15\text{ cm}^2", r"15\text{ cm}^3"),
        (r"\frac{1}{303!}", r"\frac{1}{303 \cdot 302!}", r"\frac{1}{305!}"),
        (r"3-\sqrt{5}", r"-\sqrt{5}+3", "3"),
        ("12 and 30", "30, 12", "30"),
        (r"(0,9) \cup (9,36)", r"(9,36) \cup (0,9)", "(0,36)"),
        ("x+1", "1+x", "x-1"),
        (
            r"\begin{pmatrix}1\\2\end{pmatrix}",
            r"\begin{bmatrix}1\\2\end{bmatrix}",
            r"\begin{pmatrix}1\\3\end{pmatrix}",
        ),
    ],
)
def test_what_math_verify_decides(math_pool: WorkerPool, gold: str, right: str, wrong: str):
    scores = grade_math([in_box(right), in_box(wrong)], [gold, gold], pool=math_pool)
    assert scores == [1.0, 0.0]


def test_equal_pairs_are_compared_once(math_pool: WorkerPool):
    before = math_pool.counts.total()
    assert grade_math([in_box("1+y")] * 5, ["y+1"] * 5, pool=math_pool) == [1.0] * 5
    assert math_pool.counts.total() == before + 1


@pytest.mark.slow
def test_golds_of_math_500(shared_data: Path, math_pool: WorkerPool):
    lines = (shared_data / "math500" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    golds = [json.loads(line)["answer"] for line in lines]
    assert grade_math(list(map(in_box, golds)), golds, pool=math_pool) == [1.0] * 500

    some = golds[::5]  # not by the fast path: math-verify itself must read each gold
    outcomes = math_pool.run([(gold, gold) for gold in some])
    assert [gold for gold, o in zip(some, outcomes, strict=True) if o.value is not True] == []

    near = [(gold, wrong) for gold in some if (wrong := digit_changed(gold))]
    scores = grade_math([in_box(w) for _, w in near], [g for g, _ in near], pool=math_pool)
    assert len(near) > 90
    assert [pair for pair, score in zip(near, scores, strict=True) if score] == []
