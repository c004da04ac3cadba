"""HumanEval's and MBPP's problems: right programs pass their tests, near misses do not."""

import ast
import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rewards.unit_tests import unit_tests


def in_threads(function: Any, items: list[Any]) -> list[Any]:
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(function, items))


@pytest.fixture(scope="module")
def humaneval(shared_data: Path) -> list[dict[str, Any]]:
    with gzip.open(shared_data / "humaneval" / "HumanEval.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def mbpp(shared_data: Path) -> list[dict[str, Any]]:
    with (shared_data / "mbpp" / "mbpp-py_reflexion.jsonl").open() as lines:
        return [json.loads(line) for line in lines]


def humaneval_score(problem: dict[str, Any], completion: str) -> float | None:
    return unit_tests(
        completion,
        test=problem["test"],
        entry_point=problem["entry_point"],
        prompt=problem["prompt"],
        execute_code=True,
        wall_s=60,
        cpu_s=40,
    )


NEAR_MISS = """

def changed(value):
    if isinstance(value, bool): return not value
    if isinstance(value, int | float): return value + 1
    if isinstance(value, str): return value + "x"
    if isinstance(value, list | tuple): return [*value, 0]
    return 0 if value is None else None

right = {name}
def {name}(*arguments): return changed(right(*arguments))
"""


def near_miss(problem: dict[str, Any]) -> str:
    own = NEAR_MISS.replace("{name}", problem["entry_point"])
    return f"```python\n{problem['prompt']}{problem['canonical_solution']}{own}\n```"


@pytest.mark.slow
def test_every_humaneval_solution_passes_and_a_near_miss_does_not(humaneval: list[dict[str, Any]]):
    assert len(humaneval) == 164
    right = in_threads(lambda p: humaneval_score(p, p["canonical_solution"]), humaneval)
    assert [p["task_id"] for p, score in zip(humaneval, right, strict=True) if score != 1.0] == []
    some = humaneval[::8]
    wrong = in_threads(lambda p: humaneval_score(p, near_miss(p)), some)
    assert [p["task_id"] for p, score in zip(some, wrong, strict=True) if score != 0.0] == []


def looked_up(problem: dict[str, Any], spoil: bool) -> str | None:
    """A program that knows the expected values, of which the last may be another one."""
    table: list[str] = []
    for node in ast.walk(ast.parse(problem["test"])):
        if not isinstance(node, ast.Assert):
            continue
        test = node.test
        if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Call)):
            return None
        arguments = ast.unparse(ast.Tuple(test.left.args, ast.Load()))
        table.append(f"({arguments}, {ast.unparse(test.comparators[0])})")
    if spoil:
        inputs = ast.unparse(ast.parse(table[-1], mode="eval").body.elts[0])  # type: ignore[attr-defined]
        table[-1] = f"({inputs}, ['another value'])"
    return (
        f"```python\ndef {problem['entry_point']}(*given):\n"
        f"    for arguments, value in [{', '.join(table)}]:\n"
        "        if repr(arguments) == repr(given):\n            return value\n```"
    )


@pytest.mark.slow
def test_every_mbpp_problem_pays_its_expected_values_and_no_others(mbpp: list[dict[str, Any]]):
    def scores(problem: dict[str, Any]) -> tuple[float | None, float | None] | None:
        right, wrong = looked_up(problem, spoil=False), looked_up(problem, spoil=True)
        if right is None or wrong is None:
            return None
        columns = {"test": problem["test"], "entry_point": problem["entry_point"]}
        settings = {"execute_code": True, "wall_s": 60, "cpu_s": 40}
        given = {"starter_code": problem["prompt"]}
        return tuple(unit_tests(text, **columns, **given, **settings) for text in (right, wrong))

    found = in_threads(scores, mbpp[::10])
    assert sum(score is not None for score in found) >= 35
    assert {score for score in found if score is not None} == {(1.0, 0.0)}
