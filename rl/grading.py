"""Rewards of completions, and what there is to tell about them."""

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from jaxtyping import Float, Int
from torch import Tensor

from estimators import stable_seed
from rewards.values import FAILURES
from rl.completions_log import CompletionsLog
from rl.diagnostics import duplicates, fingerprints
from rl.gathered import over_ranks
from rl.generation import as_completion
from rl.metrics import Metrics
from rl.reward_calls import RewardCalls
from rl.reward_monitor import RewardMonitor
from rl.rollout_schemes import Rollouts
from rl.rollout_schemes.base import Key
from rl.rollouts import Completions

logger = logging.getLogger(__name__)

GRADING = ("time/reward", "time/monitor")  # logged here

Rows = Sequence[dict[str, Any]]


class Grading:
    """The rewards of a run, and the log of what they were given for."""

    def __init__(self, rewards: RewardCalls, accelerator: Accelerator, metrics: Metrics) -> None:
        self.rewards, self.accelerator, self.metrics = rewards, accelerator, metrics
        self.monitor = RewardMonitor(rewards, accelerator, metrics)
        self._log: CompletionsLog | None = None
        self._graded: Completions | None = None  # by the last call, with what follows
        self._values: list[list[float]] = []
        self._columns: Mapping[str, Sequence[Any]] = {}
        self._warned: set[str] = set()

    def __call__(self, rows: Rows, written: Completions, trainer_state: Any) -> Float[Tensor, " R"]:
        """Rewards of this rank's completions, NaN where nothing graded one. All ranks call it."""
        start = time.perf_counter()
        completions = [
            as_completion(text, row["prompt"])
            for text, row in zip(written.texts, rows, strict=True)
        ]
        values = self.rewards(rows, completions, written.token_ids, trainer_state)
        self._graded, self._values = written, values
        self._columns, metrics, errors = self.rewards.take_logs()
        self._failures(metrics, len(rows))
        names = {name for names in gather_object([sorted(metrics)]) for name in names}
        for name in sorted(names):  # a reward may have logged it on some ranks only
            self.metrics.add_all(name, torch.tensor(metrics.get(name, [])))
        for i, name in enumerate(self.rewards.names):
            rewards = torch.tensor([each[i] for each in values])
            self.metrics.add_all(f"rewards/{name}", rewards[~rewards.isnan()])
            self.metrics.add_all(f"rewards/{name}/not_graded", rewards.isnan())
            self.metrics.add(f"rewards/{name}/errors", float(errors.get(name, 0)))
            if len(self.rewards.names) > 1 and bool(rewards.isnan().all()):
                self._warn_once(
                    f"silent {name}",
                    f"reward {name} graded none of {len(rewards)} completions of a step: it gave "
                    "None or failed for all; does it fit this task (its columns, its answers)?",
                )
        self.metrics.add("time/reward", time.perf_counter() - start)
        return torch.tensor(self.rewards.totals(values))

    def _failures(self, metrics: dict[str, list[float]], count: int) -> None:
        """How gradings failed, as shares of the completions; taken out of `metrics`."""
        for name in self.rewards.names:
            for kind in FAILURES:
                failed = float(sum(metrics.pop(f"rewards/{name}/{kind}", [])))
                total = torch.tensor(float(count))
                self.metrics.add_sum(f"rewards/{name}/{kind}", torch.tensor(failed), total)
                if kind == "timeouts":
                    self.monitor.timeouts(name, failed, count)

    def record(
        self, rollouts: Rollouts, step: int, history: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """What to log of a rollout's outcome; warns of what makes it worthless.

        history: the logs so far.
        """
        rewards = rollouts.rewards.cpu()
        peers = torch.tensor([stable_seed(*_peers(key)) for key in rollouts.keys])
        prints = fingerprints(rollouts.completions.token_ids)
        peers_N, prints_N, rewards_N = (
            over_ranks(self.accelerator, x) for x in (peers, prints, rewards)
        )
        repeated_N = duplicates(peers_N, prints_N)
        self.metrics.add_all("reward", rewards[~rewards.isnan()])
        self.metrics.add_all("reward/equal_groups", _equal_groups(peers_N, rewards_N))
        self.metrics.add_all("completions/duplicates", repeated_N)
        self.metrics.add_all("completions/length", rollouts.completions.lengths)
        if bool(rewards_N.isnan().all()):
            self._warn_once(
                "not graded",
                f"no completion of step {step + 1} was graded: every reward gave None or failed; "
                "nothing is learned from it",
            )
        if float(repeated_N.mean()) > 0.5:
            self._warn_once(
                "duplicates",
                f"{100 * float(repeated_N.mean()):.0f} % of the completions of step {step + 1} are "
                "equal to another one of their group, which has nothing to learn from it; raise "
                "sampler.temperature, branch a tree earlier (rollout.parts), or stop if rewards "
                "have stopped rising",
            )
        read = self.monitor(rollouts, self._values_of(rollouts), history)
        self._add_to_log(rollouts, read)

    def log_to(self, folder: Path) -> None:
        """Log every completion there, with its rewards and advantage."""
        self._log = CompletionsLog(folder)

    def write_log(self, step: int) -> None:
        if self._log is not None:
            self._log.write(step, self.accelerator.process_index)

    def _values_of(self, rollouts: Rollouts) -> list[list[float]] | None:
        """Its rewards by name, unless the scheme has graded other completions since."""
        return self._values if self._graded is rollouts.completions else None

    def _add_to_log(self, rollouts: Rollouts, read: Mapping[str, Sequence[Any]]) -> None:
        if self._log is None:
            return
        names, values, columns = self.rewards.names, self._values_of(rollouts), self._columns
        if values is None:
            names, values, columns = ["total"], rollouts.rewards[:, None].tolist(), {}
        each = rollouts.advantages.view(len(rollouts.rows), -1).mean(-1)
        texts = rollouts.completions.texts
        self._log.add(rollouts.rows, texts, names, values, each.tolist(), {**columns, **read})

    def _warn_once(self, kind: str, message: str) -> None:
        if kind not in self._warned and self.accelerator.is_main_process:
            logger.warning("%s (told once a run)", message)
        self._warned.add(kind)


def _peers(key: Key) -> Key:
    """What a completion is compared with: all that differ in the number of the generation only."""
    return (*key[:3], *key[4:])


def _equal_groups(peers: Int[Tensor, " N"], rewards: Float[Tensor, " N"]) -> Tensor:
    """For each group whether all its rewards are the same, which leaves nothing to compare."""
    groups, member_N = peers.unique(return_inverse=True)
    low, high = (
        rewards.new_zeros(len(groups)).scatter_reduce(
            0, member_N, rewards, reduce, include_self=False
        )
        for reduce in ("amin", "amax")
    )
    return low == high
