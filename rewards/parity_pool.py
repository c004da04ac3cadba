"""Verdicts of math-verify as other stacks ask it, from worker processes."""

from collections.abc import Sequence

from rewards.worker_pool import WorkerPool

POOL = WorkerPool("rewards.parity_equivalence:verdict", workers=2, limit=10.0)


def verdicts(way: str, golds: Sequence[str], texts: Sequence[str]) -> list[bool | None]:
    """For each pair whether it is right; None where the gold cannot be parsed, False after a
    time-out or crash. way: a key of `parity_equivalence.WAYS`."""
    pairs = dict.fromkeys(zip(golds, texts, strict=True))
    outcomes = POOL.run([(way, gold, text) for gold, text in pairs])
    for pair, outcome in zip(pairs, outcomes, strict=True):
        pairs[pair] = outcome.value if outcome.status == "ok" else False
    return [pairs[pair] for pair in zip(golds, texts, strict=True)]
