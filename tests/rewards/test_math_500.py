"""The golds of MATH-500, and real outputs for its problems."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from rewards import WorkerPool
from rewards.math_answer import grade_math
from tests.rewards.changed_golds import is_same, last_digit_changed, near_misses

# golds whose last digit may change: none
ALLOWED: dict[str, str] = {}
# share of right answers by the reference of the design study: boxes only, normalised
REFERENCE = {128: 29.0, 256: 35.2, 512: 39.6}


def in_format(answer: str) -> str:
    return f"<reasoning>\nSo it is.\n</reasoning>\n<answer>\n\\boxed{{{answer}}}\n</answer>"


@pytest.fixture(scope="module")
def golds(shared_data: Path) -> list[str]:
    lines = (shared_data / "math500" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["answer"] for line in lines]


@pytest.mark.slow
def test_every_gold_is_right_and_with_its_last_digit_changed_wrong(
    golds: list[str], math_pool: WorkerPool
):
    assert len(golds) == 500
    assert grade_math(list(map(in_format, golds)), golds, pool=math_pool) == [1.0] * 500
    changed = [(gold, wrong) for gold in golds if (wrong := last_digit_changed(gold))]
    assert len(changed) == 489
    scores = grade_math([in_format(w) for _, w in changed], [g for g, _ in changed], pool=math_pool)
    paid = {gold for (gold, _), score in zip(changed, scores, strict=True) if score}
    assert paid == ALLOWED.keys()


@pytest.mark.slow
def test_each_gold_is_read_and_not_only_spelled_alike(golds: list[str], math_pool: WorkerPool):
    """Written another way, so that the same text cannot decide."""
    numbers = [gold for gold in golds if gold.isdigit()]
    others = [f"{int(gold) - 1} + 1" for gold in numbers]
    assert len(numbers) > 250
    assert grade_math([in_format(a) for a in others], numbers, pool=math_pool) == [1.0] * len(
        others
    )


@pytest.mark.slow
def test_no_near_miss_is_paid(golds: list[str], math_pool: WorkerPool):
    pairs = [
        (gold, wrong)
        for gold in sorted(set(golds))[::3]
        for wrong in near_misses(gold)
        if not is_same(gold, wrong)
    ]
    assert len(pairs) > 1300
    scores = grade_math([in_format(w) for _, w in pairs], [g for g, _ in pairs], pool=math_pool)
    assert [pair for pair, score in zip(pairs, scores, strict=True) if score] == []


@pytest.mark.slow
def test_real_outputs_agree_with_the_reference(shared_data: Path):
    """None of them takes 2 s."""
    pool = WorkerPool("rewards.equivalence:equal", workers=2, limit=2.0)
    with gzip.open(shared_data / "d1_llada_generations.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for length, reference in REFERENCE.items():
        some = [r for r in rows if r["task"] == "math500" and r["gen_length"] == length]
        scores = grade_math(
            [row["generation"] for row in some], [row["ground_truth"] for row in some], pool=pool
        )
        assert len(some) == 500
        assert abs(sum(map(float, scores)) / 5 - reference) <= 0.3
    assert pool.counts.keys() == {"ok"}
    pool.close()


@pytest.mark.slow
def test_gsm8k_texts_are_graded_at_300_a_second(shared_data: Path):
    with gzip.open(shared_data / "d1_llada_generations.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows: list[dict[str, Any]] = [
            row for row in map(json.loads, lines) if row["task"] == "gsm8k"
        ]
    pool = WorkerPool("rewards.equivalence:equal", workers=2, limit=2.0)
    pool.run([("1", "1")])  # its import is on no clock
    start = time.perf_counter()
    scores = grade_math(
        [row["generation"] for row in rows], [str(row["ground_truth"]) for row in rows], pool=pool
    )
    assert len(scores) / (time.perf_counter() - start) > 300
    assert len(scores) == 3390
    assert pool.counts.keys() == {"ok"}
    pool.close()
