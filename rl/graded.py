"""Completions of an evaluation, their scores, and what the scores add up to.

    accuracy = (number of completions that the grader gives 1) / (number that it graded)

A grader with modes grades in both: `lenient`, which reads an answer in garbled markup too, says
what the model knows and is the accuracy; `strict`, which pays in training, stands beside it. How
the answers were read (ok, no_answer, template_echo, garbled, truncated) is told as shares.
"""

import inspect
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rewards.extraction import extraction_of
from rl.generation import as_completion
from rl.intervals import Accuracy
from rl.reward_calls import RewardCalls
from rl.reward_function import as_reward, configure

Row = dict[str, Any]
Grader = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Generation:
    """One completion of one prompt. tokens: up to and including the first end token.

    strict_score: for a grader with modes. answer, status, boxes: what the grader read, for one of
    a declared answer.
    """

    id: str
    repeat: int
    completion: str
    tokens: int
    nfe: int
    steps: int
    temperature: float
    score: float | None = None
    strict_score: float | None = None
    answer: str | None = None
    status: str | None = None
    boxes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What an evaluation found at one setting.

    strict: None for a grader without modes.
    answers: share of completions by status, and of those with several boxes; empty for a grader
        that reads no declared answer.
    """

    accuracy: Accuracy
    strict: Accuracy | None = None
    answers: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The accuracy's own entries, and those of the other two under their names."""
        found: dict[str, Any] = dict(self.accuracy.as_dict())
        if self.strict is not None:
            found["strict"] = self.strict.as_dict()
        if self.answers:
            found["answers"] = dict(self.answers)
        return found


def has_modes(grader: Grader) -> bool:
    parameter = inspect.signature(grader).parameters.get("mode")
    return parameter is not None and parameter.kind is parameter.KEYWORD_ONLY


def grade(
    generations: Sequence[Generation], rows: Sequence[Row], grader: Grader
) -> list[Generation]:
    """Fill in what the grader says; a score is None where the grader does not apply or failed,
    which is logged.

    grader: `score(completion, **columns)`, or a reward with TRL's call.
    """
    modes = has_modes(grader)
    graded = _scored(generations, rows, _in_mode(grader, "lenient") if modes else grader)
    read = extraction_of(_in_mode(grader, "lenient") if modes else grader)
    if read is not None:
        readings = [read(x.completion) for x in graded]
        graded = [
            replace(x, answer=found.text, status=found.status, boxes=found.boxes)
            for x, found in zip(graded, readings, strict=True)
        ]
    if not modes:
        return graded
    # an answer that is intact is the same answer in both modes
    again = [x for x in graded if x.status != "ok"]
    strict = iter(_scored(again, rows, _in_mode(grader, "strict")))
    return [
        replace(x, strict_score=x.score if x.status == "ok" else next(strict).score) for x in graded
    ]


def measured(generations: Sequence[Generation]) -> Measured:
    """The accuracies and shares of graded generations."""
    strict = [x.strict_score for x in generations if x.strict_score is not None]
    statuses = Counter(x.status for x in generations if x.status is not None)
    answers = {status: count / len(generations) for status, count in sorted(statuses.items())}
    if answers:
        several = sum(x.boxes is not None and x.boxes > 1 for x in generations)
        answers["several_boxes"] = several / len(generations)
    return Measured(
        accuracy=accuracy(generations),
        strict=_accuracy(strict) if strict else None,
        answers=answers,
    )


def accuracy(generations: Sequence[Generation]) -> Accuracy:
    """Completions with score 1 out of those that were graded."""
    scores = [generation.score for generation in generations if generation.score is not None]
    if not scores:
        raise ValueError(
            f"none of the {len(generations)} completions could be graded; the log says why (a "
            "grader that failed, or rows without the answer column it needs)"
        )
    return _accuracy(scores)


def _accuracy(scores: Sequence[float]) -> Accuracy:
    return Accuracy(correct=sum(score >= 1 for score in scores), total=len(scores))


def _in_mode(grader: Grader, mode: str) -> Grader:
    def fail(where: str, why: str) -> None:
        raise ValueError(f"{where}: {why}")

    name = getattr(grader, "__name__", type(grader).__name__)
    bound = configure(grader, {"mode": mode}, f"grader {name}", fail)
    assert bound is not None
    return bound


def _scored(
    generations: Sequence[Generation], rows: Sequence[Row], grader: Grader
) -> list[Generation]:
    if not generations:
        return []
    by_id = {row["id"]: row for row in rows}
    own = [by_id[generation.id] for generation in generations]
    name = getattr(grader, "__name__", type(grader).__name__)
    calls = RewardCalls(names=[name], functions=[as_reward(grader)], weights=[1.0])
    completions = [
        as_completion(generation.completion, row["prompt"])
        for generation, row in zip(generations, own, strict=True)
    ]
    scores = calls(own, completions, [[] for _ in own])
    return [
        replace(generation, score=None if math.isnan(score) else score)
        for generation, (score,) in zip(generations, scores, strict=True)
    ]
