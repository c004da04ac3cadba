"""From completions to advantages, and what there is to tell about them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import Tensor

from rl.advantages import GroupAdvantage
from rl.completions_log import CompletionsLog
from rl.generation import as_completion
from rl.metrics import Metrics
from rl.reward_calls import RewardCalls
from rl.rollouts import Completions


class Grading:
    """Rewards of a rank's completions, compared within groups that ranks may share.

    completions_folder: where to log every completion; None to log none.
    """

    def __init__(
        self,
        rewards: RewardCalls,
        advantage: GroupAdvantage,
        accelerator: Accelerator,
        metrics: Metrics,
        *,
        num_generations: int,
        completions_folder: Path | None,
    ) -> None:
        self.rewards, self.advantage = rewards, advantage
        self.accelerator, self.metrics = accelerator, metrics
        self.num_generations = num_generations
        self.log = CompletionsLog(completions_folder) if completions_folder else None

    def __call__(
        self, rows: Sequence[dict[str, Any]], written: Completions, trainer_state: Any
    ) -> Tensor:
        """Advantages [B] of this rank's completions."""
        completions = [
            as_completion(text, row["prompt"])
            for text, row in zip(written.texts, rows, strict=True)
        ]
        values = self.rewards(rows, completions, written.token_ids, trainer_state)
        everyone = gather_object(values)
        totals = torch.tensor([self.rewards.total(v) for v in everyone])
        first = self.accelerator.process_index * len(rows)
        mine = self.advantage(totals, self.num_generations)[first : first + len(rows)]
        self._collect(everyone, totals)
        extra, metrics, errors = self.rewards.take_logs()
        names = {name for names in gather_object([sorted(metrics)]) for name in names}
        for name in sorted(names):  # a reward may have logged it on some ranks only
            self.metrics.add_all(name, torch.tensor(metrics.get(name, [])))
        for name in self.rewards.names:
            self.metrics.add(f"rewards/{name}/errors", float(errors.get(name, 0)))
        if self.log is not None:
            self.log.add(rows, written.texts, self.rewards.names, values, mine.tolist(), extra)
        return mine.to(self.accelerator.device)

    def write_log(self, step: int) -> None:
        if self.log is not None:
            self.log.write(step, self.accelerator.process_index)

    def _collect(self, values: Sequence[Sequence[float]], totals: Tensor) -> None:
        groups = totals.view(-1, self.num_generations)
        same = (groups == groups[:, :1]).all(1)
        self.metrics.add_all("reward", totals[~totals.isnan()])
        self.metrics.add_all("reward/equal_groups", same)
        for name, column in zip(self.rewards.names, zip(*values, strict=True), strict=True):
            rewards = torch.tensor(column)
            self.metrics.add_all(f"rewards/{name}", rewards[~rewards.isnan()])
            self.metrics.add_all(f"rewards/{name}/not_graded", rewards.isnan())
