"""50,000 broken completions: no grader raises, hangs, grows or pays outside of its range.

    UNMASK_FUZZ=10 pytest tests/rewards/test_fuzz.py     ten times as many, and other ones

Every grader runs in processes with 1 GiB and a time limit, so that growth and hangs are failures.
"""

import json
import os
import random
from dataclasses import dataclass
from typing import Any

import pytest

from rewards import REWARDS, WorkerPool
from tests.rewards.fuzzing import fuzz
from tests.rewards.mutations import ANSWERS, mutated

TIMES = int(os.environ.get("UNMASK_FUZZ", "1"))
BATCH = 250  # texts in one call of a worker
SECONDS = 1.0  # of one thread for one text


@dataclass(frozen=True, kw_only=True)
class Target:
    """rows: columns to grade against. low, high: the range of the score. texts: how many, of all.

    batch_seconds: for a batch; graders that ask other processes need more.
    """

    rows: list[dict[str, Any]]
    low: float = 0.0
    high: float = 1.0
    texts: int = 2_500
    settings: tuple[dict[str, Any], ...] = ({},)
    batch_seconds: float = 60.0
    batch: int = BATCH


GOLDS = [
    {"answer": gold}
    for gold in ("42", "-1,234.5", r"\frac{3}{4}", r"3\sqrt{13}", "(3,\\infty)", "52_8", "B", "x=5")
]
SOLUTIONS = [{"solution": row["answer"]} for row in GOLDS]
INTEGERS = [{"answer": gold} for gold in ("42", "-1,234.5", "4")]
NUMBERS = [{"numbers": [44, 19, 35], "target": 60}, {"numbers": [12, 4, 3], "target": 6}]
PUZZLE = {"puzzle": "1204041020400321", "solution": "1234341221434321"}
PUZZLES = [{"puzzle": PUZZLE["puzzle"]}, {"puzzle": "0" * 81}]
PEOPLE = [{"names": ["Zoey", "Oliver"], "solution": [True, False]}]
GRIDS = [
    {"answer": "Eric", "solution": None},
    {"answer": None, "solution": {"House 1": {"Name": "Eric"}}},
]
GYM = [
    {"metadata": json.dumps({"source_dataset": "chain_sum"}), "answer": "42"},
    {"metadata": json.dumps({"source_dataset": "family_relationships"}), "answer": "aunt"},
]
TESTS = [{"test_list": ["assert add(1, 2) == 3"], "entry_point": "add"}]
MODES = ({}, {"mode": "lenient"})

TARGETS: dict[str, Target] = {
    "gsm8k": Target(rows=INTEGERS, settings=MODES, texts=6_000),
    "countdown": Target(rows=NUMBERS, settings=MODES, texts=6_000),
    "sudoku": Target(rows=PUZZLES, settings=(*MODES, {"shaped": True}), texts=6_000),
    "knights_knaves": Target(rows=PEOPLE, settings=MODES, texts=4_000),
    "zebra": Target(rows=GRIDS, settings=MODES, texts=4_000),
    "reasoning_gym": Target(rows=GYM, settings=MODES, texts=2_000),
    "math": Target(rows=GOLDS, settings=MODES, texts=2_000),
    "math_verify": Target(rows=GOLDS, texts=200, batch=50),
    "unit_tests": Target(
        rows=TESTS, settings=({"execute_code": True, "wall_s": 2.0},), texts=40, batch=20
    ),
    "soft_format": Target(rows=[{}]),
    "strict_format": Target(rows=[{}]),
    "tag_format": Target(rows=[{}]),
    "boxed_format": Target(rows=[{}]),
    "xml_count": Target(rows=[{}], high=0.5),
    "int_answer": Target(rows=[{}]),
    "overlong": Target(rows=[{}], low=-1.0, high=0.0, texts=1_000),
    "cosine": Target(rows=GOLDS, low=-1.0, texts=500),
    "repetition": Target(rows=[{}], low=-1.0, high=0.0, texts=1_000),
    "parity:d1_gsm8k": Target(rows=INTEGERS, high=2.0, texts=1_000),
    "parity:d1_int": Target(rows=[{}], high=0.5, texts=1_000),
    "parity:d1_soft_format": Target(rows=[{}], high=0.5, texts=1_000),
    "parity:d1_strict_format": Target(rows=[{}], high=0.5, texts=1_000),
    "parity:d1_xml_count": Target(rows=[{}], low=-1e5, high=0.5, texts=1_000),
    "parity:d1_boxed_and_answer_tags": Target(rows=[{}], high=0.75, texts=1_000),
    "parity:d1_math": Target(rows=GOLDS, high=2.0, texts=1_000),
    "parity:d1_countdown": Target(rows=NUMBERS, texts=1_000),
    "parity:d1_sudoku": Target(rows=[PUZZLE], texts=1_000),
    "parity:open_r1_accuracy": Target(rows=SOLUTIONS, texts=100, batch=25),
    "parity:open_r1_format": Target(rows=[{}], texts=1_000),
    "parity:open_r1_tag_count": Target(rows=[{}], texts=1_000),
    "parity:open_r1_reasoning_steps": Target(rows=[{}], texts=1_000),
    "parity:open_r1_len": Target(rows=SOLUTIONS, low=-0.5, high=0.5, texts=100, batch=25),
    "parity:open_r1_cosine": Target(rows=SOLUTIONS, low=-1.0, texts=100, batch=25),
    "parity:open_r1_repetition": Target(rows=[{}], low=-1.0, high=0.0, texts=1_000),
    "parity:trl_accuracy": Target(rows=SOLUTIONS, texts=100, batch=25),
    "parity:trl_think_format": Target(rows=[{}], texts=1_000),
    "parity:trl_cosine": Target(rows=SOLUTIONS, low=-1.0, texts=100, batch=25),
    "parity:trl_repetition": Target(rows=[{}], low=-1.0, high=0.0, texts=1_000),
    "parity:trl_soft_overlong": Target(rows=[{}], low=-1.0, high=0.0, texts=1_000),
}


def test_every_registered_reward_is_fuzzed() -> None:
    assert set(TARGETS) == set(REWARDS)


def test_the_whole_is_large_enough() -> None:
    assert sum(target.texts for target in TARGETS.values()) >= 50_000


def test_mutations_are_seeded_and_differ() -> None:
    texts = [mutated(seed) for seed in range(2_000)]
    assert texts == [mutated(seed) for seed in range(2_000)]
    assert len(set(texts)) > 1_800
    everything = "".join(text[:500] for text in texts)
    assert all(mark in everything for mark in ("\ud800", "\x00", "9^{9^{", "\\boxed{", "!)!)!"))
    assert max(map(len, texts)) > 900_000
    assert sum(answer in text for text in texts for answer in ANSWERS if len(answer) > 5) > 200


def raises(completion: str) -> float:
    raise IndexError(completion)


def slow(completion: str) -> float:
    return float(sum(range(200_000)) < 0)


@pytest.mark.parametrize(
    ("grader", "said"),
    [
        (raises, "raised IndexError"),
        (slow, "took"),
        (lambda completion: 1.5, "scored 1.5"),
        (lambda completion: float("nan"), "scored nan"),
        (lambda completion: {"a": 0.5, "b": 0.6}, "scored {'a': 0.5"),
        (lambda completion: -0.1, "scored -0.1"),
    ],
)
def test_what_is_wrong_is_noticed(monkeypatch, grader: Any, said: str) -> None:
    monkeypatch.setitem(REWARDS, "planted", grader)
    found = fuzz("planted", {}, [{}], (0, 5), (0.0, 1.0, 1e-3))
    assert len(found["wrong"]) == 5
    assert all(said in line for line in found["wrong"])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_fuzz(name: str) -> None:
    target = TARGETS[name]
    first = random.Random(name).randrange(10**9)
    each = TIMES * target.texts // len(target.settings)
    calls = [
        (
            name, settings, target.rows,
            (first + at, first + min(at + target.batch, each)),
            (target.low, target.high, SECONDS),
        )
        for settings in target.settings
        for at in range(0, each, target.batch)
    ]  # fmt: skip
    pool = WorkerPool("tests/rewards/fuzzing.py:fuzz", limit=target.batch_seconds, memory_gib=1.0)
    try:
        outcomes = pool.run(calls)
    finally:
        pool.close()
    failed = [
        (call[1], call[3], outcome.status, outcome.detail)
        for call, outcome in zip(calls, outcomes, strict=True)
        if outcome.status != "ok"
    ]
    assert failed == []
    wrong = [line for outcome in outcomes for line in outcome.value["wrong"]]
    assert wrong == []
    assert sum(outcome.value["texts"] for outcome in outcomes) >= target.texts * TIMES - 3
