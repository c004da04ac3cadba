"""The part of the fuzz that runs in a worker, where memory and time are bounded.

A grader of one text is called on each; what takes or has a batch form, on all of a batch at once.
"""

import functools
import math
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from rewards import REWARDS
from rewards.case_grading import is_batch
from tests.rewards.mutations import mutated

SHOWN = 200  # characters of a text


def fuzz(
    name: str,
    settings: dict[str, Any],
    rows: list[dict[str, Any]],
    seeds: tuple[int, int],
    limits: tuple[float, float, float],
) -> dict[str, Any]:
    """What went wrong for texts of these seeds, each with one of the rows.

    limits: the lowest and the highest score, and seconds of this thread for one text.
    """
    low, high, seconds = limits
    grader = functools.partial(REWARDS[name], **settings) if settings else REWARDS[name]
    wrong: list[str] = []
    scores: list[float | None] = []
    slowest = 0.0

    def tell(seed: int, what: str) -> None:
        wrong.append(f"{name} {settings or ''} seed {seed}: {what}: {mutated(seed)[:SHOWN]!r}")

    numbers = range(*seeds)
    texts = [mutated(seed) for seed in numbers]
    columns = [rows[seed % len(rows)] for seed in numbers]
    batch = getattr(REWARDS[name], "batch", None)
    every = {key: [row[key] for row in columns] for key in columns[0]}
    if is_batch(REWARDS[name]):
        ids = [list(text[:3_000].encode("utf-8", "surrogatepass")) for text in texts]
        prompts = [""] * len(texts)
        scores = grader(prompts=prompts, completions=texts, completion_ids=ids, **every)
    elif batch is not None:
        scores = batch(texts, **every, **settings)
    else:
        for seed, text, row in zip(numbers, texts, columns, strict=True):
            start = time.thread_time()
            try:
                score = grader(text, **row)
            except Exception as error:
                tell(seed, f"raised {type(error).__name__}: {error}"[:SHOWN])
                score = None
            took = time.thread_time() - start
            slowest = max(slowest, took)
            if took > seconds:
                tell(seed, f"took {took:.2f} s")
            scores.append(score)
    for seed, score in zip(numbers, scores, strict=True):
        parts = list(score.values()) if isinstance(score, dict) else [score]
        total = sum(part for part in parts if part is not None)
        if not (math.isfinite(total) and low - 1e-9 <= total <= high + 1e-9):
            tell(seed, f"scored {score!r}")
    paid = sum(score not in (None, 0, 0.0) for score in scores)
    return {"texts": len(texts), "wrong": wrong, "slowest": slowest, "paid": paid}
