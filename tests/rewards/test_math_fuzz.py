"""Mutated answers through the comparison: nothing raises, nothing is late, memory is bounded."""

import random
import re
from pathlib import Path

import pytest

from rewards import WorkerPool
from rewards.cases import read_cases
from rewards.math_answer import grade_math

CASES = Path(__file__).parent / "cases"
COMMANDS = (
    r"\frac \sqrt \pm \mp \cup \setminus \{ \} \\ \in \infty \pi \sin \log_ \binom \text{ \gcd \max"
    r" \begin{pmatrix} \end{pmatrix} \operatorname{ \overline{ \int ^\circ \lfloor \left \right"
    r" \mathbb{R} and or x e i 1,000 A) _8 10^{10} cm per ^{9^{9}}"
)
PIECES = [
    *"^{}()[]|&,=<>!%$'_:.-+*/ 0",
    *re.split(" ", COMMANDS),
    *("\x00", "\u200b", "\u0660", "\U0001d7d8", "\xb2", "\xbd", "\u221a", "\u221e", "\ud800"),
    "9" * 40,
    "(" * 25,
]
ANSWER = re.compile(r"(?:boxed\{|<answer>)(.*?)(?:\}?\.?$|\}?\s*</answer>)")


def mutated(text: str, seeds: list[str], rng: random.Random) -> str:
    for _ in range(rng.randint(1, 6)):
        start, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        kind = rng.random()
        if kind < 0.5:
            text = text[:start] + rng.choice(PIECES) + text[start:]
        elif kind < 0.65:
            text = text[:start] + text[end:]
        elif kind < 0.8:
            text = text[:end] + text[start:end] * rng.randint(1, 4) + text[end:]
        elif kind < 0.9:
            text = text[:start] + rng.choice(seeds) + text[end:]
        else:
            text = text[:start]
    return text[:600]


@pytest.fixture(scope="module")
def seeds() -> list[str]:
    cases = [case for file in sorted(CASES.glob("math_*.jsonl")) for case in read_cases(file)]
    answers = [ANSWER.search(case.completion) for case in cases]
    return [match[1][:200] for match in answers if match and match[1]]


@pytest.mark.slow
def test_nothing_raises_and_nothing_is_late(seeds: list[str]):
    assert len(seeds) > 200
    rng = random.Random(0)
    pool = WorkerPool("rewards.equivalence:equal", workers=1, limit=20.0, memory_gib=0.5)
    pairs = [(rng.choice(seeds), mutated(rng.choice(seeds), seeds, rng)) for _ in range(1200)]
    pairs += [(mutated(gold, seeds, rng), answer) for gold, answer in pairs[:200]]
    outcomes = pool.run(pairs)
    assert {o.status for o in outcomes} == {"ok"}, next(
        (pair, o) for pair, o in zip(pairs, outcomes, strict=True) if o.status != "ok"
    )
    assert max(o.seconds for o in outcomes) < 10
    pool.close()


@pytest.mark.slow
def test_huge_completions_cost_little(math_pool: WorkerPool):
    huge = [
        "\\boxed{" * 50_000,
        "\\boxed{" + "9" * 1_000_000 + "}",
        "\\boxed{" + "{" * 100_000 + "}" * 100_000 + "}",
        "\\boxed{" + "9^{" * 200 + "9" + "}" * 200 + "}",
        "\\boxed{" + ",".join("1" * 240) + "}",
        "<answer>" * 20_000 + "7",
        "\\frac" * 100_000,
        "\x00\ud800" * 10_000 + "\\boxed{7}",
        "\\boxed{" + "1 " * 249 + "}",
        "\\boxed{" + "x" * 499 + "}",
        "\\boxed{" + "\\text{" * 60 + "}" * 60 + "}",
    ]
    before = math_pool.counts.copy()
    scores = grade_math(huge, ["7"] * len(huge), pool=math_pool)
    assert [i for i, score in enumerate(scores) if score] == [7]
    assert (math_pool.counts - before).keys() <= {"ok"}
