"""Our own inputs of each kind of fault: cases/TOPIC.jsonl, in the format of `rewards.validate`.

Each goes through the registered grader that its task names. Files named lenient_* are graded in
lenient mode, where the grader has one.
"""

from pathlib import Path

import pytest

from rewards.case_grading import grade_case
from rewards.cases import Case, read_cases
from rewards.validate import reward_of

FOLDER = Path(__file__).parent / "cases"
FILES = sorted(FOLDER.glob("*.jsonl"))


def grade(case: Case, mode: str) -> tuple[float | None, float]:
    score, seconds, written = grade_case(
        reward_of(case),
        case.prefill + case.completion,
        case.columns,
        {"mode": mode},
        case.run_in_thread,
        case.must_not_create,
    )
    assert not written, f"{case.id} wrote {case.must_not_create}"
    return score, seconds


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_case_is_right(file: Path):
    mode = "lenient" if file.stem.startswith("lenient_") else "strict"
    wrong: dict[str, str] = {}
    for case in read_cases(file):
        score, seconds = grade(case, mode)
        if score not in case.right:
            wrong[case.id] = f"{score}, not {case.expected}: {case.completion!r:.200}"
        elif case.max_seconds is not None and seconds > case.max_seconds:
            wrong[case.id] = f"{seconds:.1f} s, at most {case.max_seconds}"
    assert wrong == {}


def test_each_kind_has_at_least_four_inputs():
    cases = [case for file in FILES for case in read_cases(file)]
    assert len({case.id for case in cases}) == len(cases)
    count: dict[str, int] = {}
    for case in cases:
        count[case.kind] = count.get(case.kind, 0) + 1
    assert {kind: number for kind, number in count.items() if number < 4} == {}


def test_a_wrong_case_is_found():
    right, wrong = (
        next(c for c in read_cases(FOLDER / "gsm8k.jsonl") if c.expected == expected)
        for expected in (1.0, 0.0)
    )
    assert grade(right, "strict")[0] == 1.0
    assert grade(wrong, "strict")[0] == 0.0
