"""Where every completion of a prompt fails, parts of a reference solution are given as hints.

    failed group    max r_i <= threshold
    again           each of its completions, on a canvas that shows chunks of the solution
    replaced        those that now succeed (r > threshold), up to `share` of the group

The solution's tokens are cut into chunks of min_chunk to max_chunk tokens; a share eta ~ U(low,
high) of the chunks, drawn for each completion, stands where it stands in the solution. Hints are
fixed text: shown, never scored. Other groups are left as they are.

Paper     IGPO, arXiv:2509.10396 (eta 0.2 to 0.6, chunks of 5 to 10 tokens, half of 8 replaced)
Note      The paper also learns the fifth of the hints' tokens with the highest entropy, which were
          not the policy's actions; here none. The released code takes whichever of the new
          completions succeed for the first places of the group; here each keeps its own place.

Shapes: B completions on this rank, H of them written again, N on all ranks, L tokens.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from estimators import RowRandom, stable_seed
from rl.canvas import check_possible, on_canvas, text_ids
from rl.models.loading import LoadedModel
from rl.rollouts import completed
from rl.samplers import Rollout

from .base import Key, Rollouts, RolloutScheme, Row, Rows, Window

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Inpaint(RolloutScheme):
    """
    column: of the task's rows, with the text of a reference solution.
    threshold: the highest reward that still counts as a failure.
    share: of a failed group, how much may be replaced.
    low, high: share of the solution's chunks that are shown.
    """

    paper = "IGPO, arXiv:2509.10396"
    changes = "groups that fail as a whole are written again with parts of a solution as fixed text"

    column: str = "completion"
    threshold: float = 0.0
    share: float = 0.5
    low: float = 0.2
    high: float = 0.6
    min_chunk: int = 5
    max_chunk: int = 10

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(
                f"share is {self.share}; use a share of the group, above 0 and up to 1"
            )
        if not 0 < self.low <= self.high <= 1:
            raise ValueError(
                f"low is {self.low} and high is {self.high}; they are shares of the solution's "
                "chunks, 0 < low <= high <= 1"
            )
        if not 1 <= self.min_chunk <= self.max_chunk:
            raise ValueError(
                f"min_chunk is {self.min_chunk} and max_chunk is {self.max_chunk}; they are "
                "numbers of tokens, 1 <= min_chunk <= max_chunk"
            )

    def __call__(self, window: Window) -> Rollouts:
        seeds = [stable_seed("rollout", *key) for key in window.keys]
        rollout = window.write(window.rows, seeds)
        written = completed(window.loaded, window.rows, rollout)
        rewards = window.grade(window.rows, written)
        failed_N = self.failed(window.gather(rewards), window.num_generations)
        replaced = torch.zeros_like(rewards, dtype=torch.bool)
        if bool(failed_N.any()):  # on every rank, since all must write
            rollout, rewards, replaced = self._inpainted(rollout, rewards, failed_N, window)
        if bool(replaced.any()):
            written = completed(window.loaded, window.rows, rollout)
        return Rollouts(
            rows=window.rows,
            keys=window.keys,
            completions=written,
            advantages=window.compare(rewards, window.num_generations),
            rewards=rewards,
            metrics={
                "inpaint/failed": window.mine(failed_N).double(),
                "inpaint/replaced": replaced.double(),
            },
        )

    def check_rows(self, rows: Rows, *, num_generations: int) -> None:
        for row in rows:
            if not isinstance(row.get(self.column), str):
                raise ValueError(
                    f"row {row.get('id')!r} has no text in column {self.column!r} to take hints "
                    f"from (its columns: {', '.join(sorted(row))}); use a task whose rows have a "
                    "solution, or name its column in rollout.column"
                )

    def fitting(self, rows: Rows, loaded: LoadedModel, *, length: int) -> list[Row]:
        solutions = text_ids(loaded, [row[self.column] for row in rows])
        check_possible(loaded, [row["id"] for row in rows], on_canvas(loaded, solutions, length))
        long = sum(len(ids) > length for ids in solutions)
        if long:
            logger.info("%d of %d solutions have more than %d tokens; hints come from the "
                        "beginning of those", long, len(rows), length)  # fmt: skip
        return list(rows)

    def failed(self, rewards: Float[Tensor, " N"], group: int) -> Bool[Tensor, " N"]:
        """Members of groups in which nothing succeeded and something was graded."""
        best = rewards.nan_to_num(-torch.inf).view(-1, group).amax(1)
        return ((best <= self.threshold) & (best > -torch.inf)).repeat_interleave(group)

    def accepted(
        self, again: Float[Tensor, " N"], failed: Bool[Tensor, " N"], group: int
    ) -> Bool[Tensor, " N"]:
        """Which of the second rewards are successes to take, the first ones of each group."""
        good = (failed & (again > self.threshold)).view(-1, group)
        return (good & (good.cumsum(1) <= max(1, int(self.share * group)))).flatten()

    def hint(self, solution: Sequence[int], length: int, uniform: Float[Tensor, " U"]) -> list[int]:
        """A canvas with chunks of the solution, -1 elsewhere; `uniform` has 1 + 2 L numbers."""
        eta, *draws = uniform.tolist()
        sizes, ranks = draws[:length], draws[length:]
        end, at = min(len(solution), length), 0
        chunks: list[range] = []
        while at < end:
            size = self.min_chunk + int(sizes[len(chunks)] * (self.max_chunk - self.min_chunk + 1))
            if end - at >= self.min_chunk:
                chunks.append(range(at, min(at + size, end)))
            at += size
        shown = math.ceil((self.low + eta * (self.high - self.low)) * len(chunks))
        canvas = [-1] * length
        for i in sorted(range(len(chunks)), key=lambda i: ranks[i])[:shown]:
            for place in chunks[i]:
                canvas[place] = solution[place]
        return canvas

    def _inpainted(
        self, rollout: Rollout, rewards: Tensor, failed: Bool[Tensor, " N"], window: Window
    ) -> tuple[Rollout, Float[Tensor, " B"], Bool[Tensor, " B"]]:
        """Rollout and rewards with what now succeeds, and where that is."""
        most = int(failed.view(window.processes, -1).sum(1).max())
        # Ranks write equally many: rows that did not fail stand in where a rank has fewer.
        again_H = window.mine(failed).int().argsort(descending=True, stable=True)[:most]
        again: list[int] = again_H.tolist()
        rows, keys = [window.rows[i] for i in again], [window.keys[i] for i in again]
        hinted = window.write(
            rows,
            [stable_seed("inpaint", *key) for key in keys],
            start=Rollout.given(self._hints(rows, keys, window)),
        )
        second_H = window.grade(rows, completed(window.loaded, rows, hinted))
        better = torch.full_like(rewards, -torch.inf).index_copy(0, again_H, second_H)
        accepted_N = self.accepted(window.gather(better), failed, window.num_generations)
        replaced = window.mine(accepted_N)
        taken_H = replaced[again_H]
        place = again_H[taken_H].to(window.device)
        rollout = rollout.put(place, hinted.rows(taken_H.to(window.device)))
        return rollout, torch.where(replaced, better, rewards), replaced

    def _hints(self, rows: Rows, keys: Sequence[Key], window: Window) -> Int[Tensor, "H L"]:
        solutions = text_ids(window.loaded, [row[self.column] for row in rows])
        random = RowRandom([stable_seed("hints", *key) for key in keys])
        uniform = random.per_row(1 + 2 * window.length)
        canvases = [
            self.hint(ids, window.length, u) for ids, u in zip(solutions, uniform, strict=True)
        ]
        return torch.tensor(canvases, device=window.device)
