"""Calls of a worker pool that came to nothing, as scores that stand all the same.

An answer that cannot be compared in time is wrong, and so is one that crashes what compares it.
That must show in the log (rewards/NAME/timeouts): else a slow grader reads as a bad model.
"""

from typing import Literal

from rewards.values import Failed, Unsettled
from rewards.worker_pool import Outcome

Kind = Literal["timeouts", "crashes", "exceptions"]
KINDS: dict[str, Kind] = {"timeout": "timeouts", "died": "crashes", "error": "exceptions"}


def failure(outcome: Outcome, limit: float) -> Failed | None:
    """None for a call that gave a value. limit: its seconds."""
    if outcome.status == "ok":
        return None
    late = outcome.status == "timeout"
    why = f"was not done within {limit:g} s per answer" if late else f"failed ({outcome.detail})"
    return Failed(KINDS[outcome.status], why)


def correctness(outcome: Outcome, limit: float) -> float:
    """1.0 or 0.0 for a call that says whether an answer is right."""
    failed = failure(outcome, limit)
    return float(bool(outcome.value)) if failed is None else Unsettled(0.0, failed)
