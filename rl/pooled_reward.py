"""A reward of the user's own in worker processes: the trainer's side.

It is called like any reward. A completion whose grading hangs, crashes or raises gets a `Failed`
in place of a value, and costs nobody else theirs. A grader of one text has the limit for every
text; a reward with TRL's call has it for the whole call.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewards import WorkerPool
from rewards.base import text_of
from rewards.columns import Columns
from rewards.extraction import Extraction
from rewards.values import Failed, RewardError, Value
from rewards.worker_pool import Outcome, Running

Values = list[Value | Failed]


@dataclass(frozen=True, kw_only=True)
class PooledReward:
    """columns: those of a grader of one text; None for TRL's call.

    together: the grader is async or has a batch version, so that many texts go in one call.
    extraction: for one that is marked as a reader of answers, what it reads.
    """

    name: str
    pool: WorkerPool
    limit: float
    columns: Columns | None
    together: bool
    extraction: Callable[..., Extraction] | None = None

    def __call__(self, prompts: Any, completions: Any, **columns: Any) -> Values:
        return self.start(prompts=prompts, completions=completions, **columns)()

    def start(self, **arguments: Any) -> Callable[[], Values]:
        """Hand the work to the processes, and go on; the result waits for them."""
        if self.columns is None:
            return self._start_batch(arguments)
        given = {key: value for key, value in arguments.items() if key != "completions"}
        given = {"prompt": given.pop("prompts")} | given
        texts = [text_of(completion) for completion in arguments["completions"]]
        picked, applies = self.columns.rows(given, len(texts))
        work = Graded(self, texts, picked)
        return work.start(applies)

    def _start_batch(self, arguments: Mapping[str, Any]) -> Callable[[], Values]:
        expected = len(arguments["completions"])
        log_extra, log_metric = arguments.get("log_extra"), arguments.get("log_metric")
        sent = {k: v for k, v in arguments.items() if k not in ("log_extra", "log_metric")}
        sent["trainer_state"] = _plain_state(arguments.get("trainer_state"))
        running = self.pool.start([("batch", sent)], limit=self.limit)

        def finish() -> Values:
            (outcome,) = running.result()
            values, reply = self.values(outcome, expected)
            if log_extra is not None:
                for column, logged in reply.get("extra", ()):
                    log_extra(column, logged)
            if log_metric is not None:
                for metric, logged in reply.get("metrics", ()):
                    log_metric(metric, logged)
            return values

        return finish

    def values(self, outcome: Outcome, expected: int) -> tuple[Values, dict[str, Any]]:
        """(what a call gave for its completions, the whole reply)."""
        reply: Any = outcome.value if outcome.status == "ok" else None
        if not isinstance(reply, dict):
            return [self.failure(outcome)] * expected, {}
        if "wrong" in reply:
            raise RewardError(str(reply["wrong"]))
        values: Values = reply["values"]
        for at, failed in enumerate(reply.get("failed", ())):
            if failed is not None:
                kind, why = failed
                values[at] = self._late() if kind == "timeouts" else Failed(kind, f"raised {why}")
        return values, reply

    def failure(self, outcome: Outcome) -> Failed:
        if outcome.status == "timeout":
            return self._late()
        if outcome.status == "died":
            return Failed(
                "crashes",
                f"crashed ({outcome.detail})",
                "if it ran out of memory, allow it more: `memory_gib` in its entry of `rewards:`",
            )
        return Failed("exceptions", f"raised {outcome.detail}")

    def _late(self) -> Failed:
        per = "call" if self.columns is None else "completion"
        return Failed(
            "timeouts",
            f"was not done within {self.limit:g} s per {per}",
            "make it faster, or set a larger `timeout` (seconds) in its entry of `rewards:`",
        )


@dataclass(frozen=True)
class Graded:
    """Texts that a grader of one text is to grade."""

    reward: PooledReward
    texts: Sequence[str]
    columns: Mapping[str, Sequence[Any]]

    def start(self, rows: Sequence[int]) -> Callable[[], Values]:
        """Many in a call where that is faster; those of a call that fails once more, each alone."""
        chunks = self._chunks(rows)
        running = self._start_chunks(chunks) if self.reward.together else self._start_alone(rows)

        def finish() -> Values:
            values: Values = [None] * len(self.texts)
            outcomes = running.result()
            if self.reward.together:
                alone = list[int]()
                for chunk, outcome in zip(chunks, outcomes, strict=True):
                    if outcome.status != "ok":
                        alone += chunk
                        continue
                    own, _ = self.reward.values(outcome, len(chunk))
                    for row, value in zip(chunk, own, strict=True):
                        values[row] = value
                outcomes = self._start_alone(alone).result()
            else:
                alone = list(rows)
            for row, outcome in zip(alone, outcomes, strict=True):
                (values[row],), _ = self.reward.values(outcome, 1)
            return values

        return finish

    def _start_alone(self, rows: Sequence[int]) -> Running:
        calls = [
            ("one", self.texts[row], {c: values[row] for c, values in self.columns.items()})
            for row in rows
        ]
        return self.reward.pool.start(calls, limit=self.reward.limit)

    def _start_chunks(self, chunks: Sequence[Sequence[int]]) -> Running:
        limit = self.reward.limit
        calls = [
            (
                "many",
                [self.texts[row] for row in chunk],
                {c: [values[row] for row in chunk] for c, values in self.columns.items()},
                limit,
            )
            for chunk in chunks
        ]
        return self.reward.pool.start(calls, limit=1.5 * limit + 1.0)

    def _chunks(self, rows: Sequence[int]) -> list[Sequence[int]]:
        """A share for every worker."""
        size = -(-len(rows) // self.reward.pool.workers) or 1
        return [rows[at : at + size] for at in range(0, len(rows), size)]


def _plain_state(state: Any) -> dict[str, Any]:
    """The numbers and strings of the trainer's state."""
    if not dataclasses.is_dataclass(state):
        fields: Mapping[str, Any] = getattr(state, "__dict__", {})
    else:
        fields = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
    plain = str | int | float | bool | None
    return {key: value for key, value in fields.items() if isinstance(value, plain)}
