"""What became of each case: right, paid too much, paid too little, hung or failed.

right           the score is one of those that the case accepts
false_positive  it is higher: a wrong answer was paid
false_negative  it is lower, or None where a score was expected: a right answer was refused
hang            it took longer than the case allows, and was killed if it did not end
error           an exception, a process that died, a score that is no finite number, or the
                completion made the file that it must not make
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rewards.cases import Case
from rewards.worker_pool import Outcome, WorkerPool

Status = Literal["right", "false_positive", "false_negative", "hang", "error"]
STATUSES: tuple[Status, ...] = ("right", "false_positive", "false_negative", "hang", "error")
TARGET = "rewards.case_grading:grade_case"
WARM_UP = 60.0  # seconds that a reward may take to load what it needs, before the clock runs
CLOSE = 1e-9  # two scores so close are equal: sums of components are floats


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """seconds: of the grading alone, without the start of a process."""

    case: Case
    reward: str
    score: float | None
    seconds: float
    status: Status
    detail: str = ""


def judge(
    cases: Sequence[Case],
    rewards: Sequence[str],
    *,
    settings: Mapping[str, Any],
    limit: float,
    workers: int,
) -> list[Verdict]:
    """Each case through its reward, in killable processes.

    limit: seconds for a case that sets none itself.
    """
    limits = [case.max_seconds or limit for case in cases]
    outcomes: dict[int, Outcome] = {}
    pool = WorkerPool(TARGET, workers=workers)
    try:
        pool.run(_trials(cases, rewards, settings, workers), limit=WARM_UP)
        for allowed in sorted(set(limits)):
            chosen = [i for i, own in enumerate(limits) if own == allowed]
            calls = [_arguments(cases[i], rewards[i], settings) for i in chosen]
            outcomes |= zip(chosen, pool.run(calls, limit=allowed), strict=True)
    finally:
        pool.close()
    return [_verdict(case, rewards[i], outcomes[i], limits[i]) for i, case in enumerate(cases)]


def counts(verdicts: Iterable[Verdict]) -> dict[Status, int]:
    found = Counter(verdict.status for verdict in verdicts)
    return {status: found[status] for status in STATUSES}


def _trials(
    cases: Sequence[Case], rewards: Sequence[str], settings: Mapping[str, Any], workers: int
) -> list[list[Any]]:
    r"""A harmless completion through each reward, so that imports are on nobody's clock."""
    first = dict(zip(reversed(rewards), reversed(cases), strict=True))
    return [
        [name, r"\boxed{\sqrt{2}}", dict(case.columns), dict(settings)]
        for name, case in first.items()
        for _ in range(workers)
    ]


def _arguments(case: Case, reward: str, settings: Mapping[str, Any]) -> list[Any]:
    text, columns = case.prefill + case.completion, dict(case.columns)
    return [reward, text, columns, dict(settings), case.run_in_thread, case.must_not_create]


def _verdict(case: Case, reward: str, outcome: Outcome, allowed: float) -> Verdict:
    def verdict(
        status: Status, score: float | None = None, seconds: float = 0.0, detail: str = ""
    ) -> Verdict:
        return Verdict(
            case=case, reward=reward, score=score, seconds=seconds, status=status, detail=detail
        )

    if outcome.status == "timeout":
        return verdict("hang", seconds=allowed, detail="killed")
    if outcome.status != "ok":
        return verdict("error", detail=outcome.detail)
    score, seconds, created = outcome.value
    if created:
        return verdict("error", score, seconds, f"it wrote {case.must_not_create}")
    if seconds > allowed:
        return verdict("hang", score, seconds, f"more than {allowed:g} s")
    if score is not None and not math.isfinite(score):
        return verdict("error", None, seconds, f"returned {score}")
    return verdict(_compared(score, case.right), score, seconds)


def _compared(score: float | None, right: Sequence[float | None]) -> Status:
    if score is None:
        return "right" if None in right else "false_negative"
    numbers = [x for x in right if x is not None]
    if any(math.isclose(score, x, rel_tol=CLOSE, abs_tol=CLOSE) for x in numbers):
        return "right"
    return "false_positive" if score > max(numbers, default=-math.inf) else "false_negative"
