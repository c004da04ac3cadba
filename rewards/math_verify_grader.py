"""math-verify as its users call it, for parity with published numbers.

    verify(parse(f"${answer}$"), parse(completion))

It is not what to train with; `math` is. Its faults, each measured: it pays a number that is merely
mentioned when no answer is declared, also after an empty or echoed box; takes several boxes for one
set; reads `2 3` as 5, `52_9` as 52, cm^3 as cm^2, R as r, bare words as products of letters (
`seat` is `east`), and `0.\\overline{3}` as 0; rounds to six decimals (1/303! is 1/305!); refuses
unit words, mixed numbers and `pi`. It may hang, so it runs in a worker process; its own time limits
are signals, and are off there.
"""

from collections.abc import Sequence

from rewards.base import with_batch
from rewards.pool_failures import correctness
from rewards.worker_pool import WorkerPool

POOL = WorkerPool("rewards.math_verify_reading:as_published", workers=2, limit=5.0)


def grade_as_published(
    completions: Sequence[str], answer: Sequence[str], *, pool: WorkerPool = POOL
) -> list[float | None]:
    """1.0 or 0.0 for each completion; equal pairs are compared once."""
    pairs = [(str(gold), text) for text, gold in zip(completions, answer, strict=True)]
    asked = list(dict.fromkeys(pairs))
    outcomes = dict(zip(asked, pool.run(asked), strict=True))
    return [correctness(outcomes[pair], pool.limit) for pair in pairs]


@with_batch(grade_as_published)
def math_verify(completion: str, answer: str) -> float | None:
    """1.0 if math-verify finds the gold `answer` in the whole completion, else 0.0.

    As published, with its faults: see `rewards.math_verify_grader`.
    """
    return grade_as_published([completion], [answer])[0]
