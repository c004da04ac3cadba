"""math-verify as published: the same verdicts as its own two calls, faults included."""

import pytest

from rewards import REWARDS, WorkerPool, per_completion
from rewards.math_verify_grader import POOL, grade_as_published
from rewards.values import Unsettled


@pytest.mark.slow
def test_it_is_what_math_verify_says():
    from math_verify import parse, verify

    cases = [
        ("42", "I thought about 42 but could not finish."),
        ("52_8", r"\boxed{52_9}"),
        (r"\frac{1}{303!}", r"\boxed{\frac{1}{305!}}"),
        ("3-\\sqrt{5}", r"\boxed{3}"),
        ("east", r"\boxed{seat}"),
        ("5", r"\boxed{5}"),
        ("5", ""),
        ("12", r"\boxed{11}, really \boxed{12}"),
        ("240", r"\boxed{240 sheets per day}"),
    ]
    expected = [float(verify(parse(f"${gold}$"), parse(text))) for gold, text in cases]
    assert expected.count(1.0) == 5
    reward = per_completion(REWARDS["math_verify"])
    golds, texts = zip(*cases, strict=True)
    assert reward([""] * len(cases), list(texts), answer=list(golds)) == expected


@pytest.mark.slow
def test_a_hang_is_ended_and_scores_nothing():
    pool = WorkerPool(POOL.target, workers=1, limit=2.0)
    texts = [r"\boxed{9^{9^{9^{9^9}}}}", r"\boxed{2^{2^{2^{100}}}} is \boxed{7}"]
    found = grade_as_published(texts, ["9", "7"], pool=pool)
    assert found == [0.0, 0.0]
    assert isinstance(found[0], Unsettled)
    assert found[0].failed.kind == "timeouts"
    pool.close()
