"""Verdicts of math-verify as other stacks ask it, from worker processes."""

from collections.abc import Sequence
from dataclasses import dataclass

from rewards.pool_failures import failure
from rewards.values import Failed, Unsettled
from rewards.worker_pool import WorkerPool

POOL = WorkerPool("rewards.parity_equivalence:verdict", workers=2, limit=10.0)


@dataclass(frozen=True)
class Verdict:
    """right: None where the gold cannot be parsed, False after a time-out or crash (`failed`)."""

    right: bool | None
    failed: Failed | None = None

    def paid(self, value: float) -> float:
        """`value`, with the note that nothing was compared if that is so."""
        return value if self.failed is None else Unsettled(value, self.failed)


def verdicts(way: str, golds: Sequence[str], texts: Sequence[str]) -> list[Verdict]:
    """Whether each text is right. way: a key of `parity_equivalence.WAYS`."""
    pairs = list(zip(golds, texts, strict=True))
    asked = list(dict.fromkeys(pairs))
    outcomes = POOL.run([(way, gold, text) for gold, text in asked])
    found = {
        pair: Verdict(each.value if each.status == "ok" else False, failure(each, POOL.limit))
        for pair, each in zip(asked, outcomes, strict=True)
    }
    return [found[pair] for pair in pairs]
