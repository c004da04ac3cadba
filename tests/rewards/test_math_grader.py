import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from rewards import Outcome, WorkerPool, math_correct
from rewards.math_answer import POOL, decide, grade_math
from rewards.values import Unsettled


def in_box(answer: str) -> str:
    return f"So we get \\boxed{{{answer}}}."


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
def test_every_case_is_right_contested_ones_too(shared_cases: Path, math_pool: WorkerPool):
    """The policy: what a careful teacher accepts without guessing."""
    lines = (shared_cases / "reward_cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [case for line in lines if (case := json.loads(line))["task"] == "math"]
    assert sum(bool(case["extra"].get("contested")) for case in cases) == 8
    before = math_pool.counts.copy()
    scores = grade_math(
        [c["completion"] for c in cases], [c["gold"] for c in cases], pool=math_pool
    )
    wrong = [c["id"] for c, score in zip(cases, scores, strict=True) if score != c["expected"]]
    assert wrong == []
    assert (math_pool.counts - before).keys() <= {"ok"}  # none had to be killed


def test_how_the_answer_is_read_can_be_chosen():
    text = r"\boxed{5}" + "\n#### 7"
    assert grade_math([text], ["5"]) == [1.0]
    assert grade_math([text], ["7"], style="hash") == [1.0]
    assert grade_math([r"\boxed{5"], ["5"], mode="strict") == [0.0]
    assert grade_math([r"<answer>\boxed{5</answer>"], ["5"], mode="lenient") == [1.0]
    with pytest.raises(ValueError, match="style"):
        grade_math([text], ["5"], style="boxes")
    with pytest.raises(ValueError, match="mode"):
        grade_math([text], ["5"], mode="loose")  # pyright: ignore[reportArgumentType]


def test_without_a_gold_there_is_no_score():
    assert grade_math([r"\boxed{5}", r"\boxed{5}"], ["", " "]) == [None, None]


def test_settled_pairs_are_remembered(math_pool: WorkerPool):
    pair = ([r"\boxed{z+17}"], ["17+z"])
    before = math_pool.counts.total()
    assert grade_math(*pair, pool=math_pool) == grade_math(*pair, pool=math_pool) == [1.0]
    assert math_pool.counts.total() == before + 1


def test_what_was_killed_is_wrong_counted_and_not_remembered():
    class Late:
        limit = 3.0

        def run(self, calls: Sequence[object]) -> list[Outcome]:
            return [Outcome("timeout") for _ in calls]

    pair = ([r"\boxed{z+18}"], ["18+z"])
    (late,) = grade_math(*pair, pool=Late())
    assert late == 0.0
    assert isinstance(late, Unsettled)
    assert (late.failed.kind, late.failed.why) == ("timeouts", "was not done within 3 s per answer")
    assert grade_math(*pair) == [1.0]
