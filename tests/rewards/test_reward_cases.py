"""Cases from public bug reports and from real outputs (`reward_cases.jsonl`)."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rewards import REWARDS, WorkerPool
from rewards.math_answer import grade_math

COLUMNS = {
    "gsm8k": lambda case: {"answer": case["gold"]},
    "countdown": lambda case: {k: case["extra"][k] for k in ("numbers", "target")},
    "sudoku": lambda case: {"puzzle": case["extra"]["puzzle"]},
}


def settled(shared_cases: Path, *tasks: str) -> list[dict[str, Any]]:
    """The cases that no policy decides."""
    lines = (shared_cases / "reward_cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    return [c for c in cases if c["task"] in tasks and not c["extra"].get("contested")]


def test_gsm8k_countdown_and_sudoku(shared_cases: Path):
    cases = settled(shared_cases, "gsm8k", "countdown", "sudoku")
    assert len(cases) == 27
    wrong = {
        case["id"]: score
        for case in cases
        if (score := REWARDS[case["task"]](case["completion"], **COLUMNS[case["task"]](case)))
        != case["expected"]
    }
    assert wrong == {}
    assert not any(Path(c["extra"].get("must_not_create", "/nowhere")).exists() for c in cases)


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [False, True])
def test_math(shared_cases: Path, math_pool: WorkerPool, hangs: bool):
    cases = [
        case
        for case in settled(shared_cases, "math")
        if ("max_seconds" in case["extra"] and case["expected"] == 0) is hangs
    ]
    assert len(cases) == (4 if hangs else 35)
    pool = WorkerPool(math_pool.target, workers=2, limit=1.0) if hangs else math_pool
    scores = grade_math(
        [case["completion"] for case in cases], [case["gold"] for case in cases], pool=pool
    )
    wrong = [c["id"] for c, s in zip(cases, scores, strict=True) if s != c["expected"]]
    assert wrong == []
    if hangs:
        pool.close()


def test_rewards_load_neither_torch_nor_math_verify():
    program = "import sys, rewards; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    loaded = set(run.stdout.split())
    assert "rewards" in loaded
    assert loaded.isdisjoint(
        {"torch", "transformers", "trl", "rl", "math_verify", "sympy", "numpy"}
    )
