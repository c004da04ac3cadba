"""Where completions come from, and what each of their tokens is credited with.

    Window --scheme--> Rollouts        rows and the means to write and grade -> text and advantages

Plain GRPO writes num_generations completions of a prompt and compares their rewards. A scheme may
branch them, grade what lies between, give hints, or take them from a file; whatever it does, the
updates get one row of `Sequences` per text to learn from, and its advantages.

Shapes: B rows of the window on this rank, R texts (B, or B times `rows_per_completion` of them to
learn from), N the same over all ranks, L completion tokens.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from rl.advantages import GroupAdvantage
from rl.models.loading import LoadedModel
from rl.rollouts import Completions, Rows
from rl.samplers import Rollout, Sampler

Row = dict[str, Any]
Key = tuple[Any, ...]  # what a row is, wherever it stands: (run seed, prompt, step, generation)


@runtime_checkable
class Write(Protocol):
    """The current policy writes on the rows' canvases; all ranks call it with equally many rows."""

    def __call__(
        self,
        rows: Rows,
        seeds: Sequence[int],
        *,
        start: Rollout | None = None,
        stop_after: int | None = None,
        record: Sequence[int] = (),
    ) -> Rollout: ...


@dataclass(frozen=True, kw_only=True)
class Share:
    """A rank's rows of one rollout, and the means to write and to compare.

    rows: one per completion; the completions of a prompt are neighbours, across ranks too.
    write: completes rows, from nothing or from where another rollout was stopped.
    gather: values of this rank's rows -> those of all ranks, in order.
    rank, processes: which share this is, of how many.
    """

    rows: Rows
    keys: Sequence[Key]
    num_generations: int
    rank: int
    processes: int
    device: torch.device
    sampler: Sampler | None
    write: Write
    gather: Callable[[Tensor], Tensor]
    advantage: GroupAdvantage

    def compare(
        self, rewards: Float[Tensor, " R"], group: int, spread: Float[Tensor, " R"] | None = None
    ) -> Float[Tensor, " R"]:
        """Advantages within groups of neighbouring rows, which may lie on several ranks."""
        spread = None if spread is None else self.gather(spread)
        return self.mine(self.advantage(self.gather(rewards), group, spread))

    def spread(self, rewards: Float[Tensor, " R"], group: int) -> Float[Tensor, " R"]:
        """What advantages are divided by, in such groups."""
        return self.mine(self.advantage.spread(self.gather(rewards), group))

    def mine(self, values: Tensor) -> Tensor:
        """This rank's part of values of all ranks."""
        share = len(values) // self.processes
        return values[self.rank * share : (self.rank + 1) * share]


@dataclass(frozen=True, kw_only=True)
class Window(Share):
    """A share, and the means to read and to grade it.

    grade: rewards of texts after the prompts of these rows, NaN where nothing graded one. All
        ranks call it.
    length: tokens of a completion.
    """

    length: int
    loaded: LoadedModel
    grade: Callable[[Rows, Completions], Float[Tensor, " R"]]


@dataclass(frozen=True, kw_only=True)
class Rollouts:
    """What the updates learn from, one row per text.

    rows, keys: as in the window; a key is longer where a completion gives several texts.
    advantages: of a text, or of each of its tokens.
    rewards: of the texts, for the log.
    metrics: name -> values to be averaged over rows and ranks; every rank has the same names.
    """

    rows: Rows
    keys: Sequence[Key]
    completions: Completions
    advantages: Float[Tensor, "R *L"]
    rewards: Float[Tensor, " R"]
    metrics: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RolloutScheme(ABC):
    """Base of every scheme: a frozen dataclass of its settings.

    writes: it needs the recipe's `sampler`. grades: it needs its `rewards`.
    compares: it uses the recipe's `advantage`.
    whole_groups: the completions of a prompt must be on one rank.
    per_token: it credits tokens, not completions.
    brought_by: what has the completions of a scheme that does not write any, and an example.
    """

    paper: ClassVar[str]
    changes: ClassVar[str]  # against writing and comparing independent completions
    writes: ClassVar[bool] = True
    grades: ClassVar[bool] = True
    compares: ClassVar[bool] = True
    whole_groups: ClassVar[bool] = False
    per_token: ClassVar[bool] = False
    brought_by: ClassVar[str] = ""

    @abstractmethod
    def __call__(self, window: Window) -> Rollouts:
        """Carry out one rollout. All ranks call it with equally many rows."""

    @property
    def rows_per_completion(self) -> int:
        """Texts to learn from, per row of the window."""
        return 1

    def validate(self, *, num_generations: int, length: int, sampler: Sampler | None) -> None:
        """Raise ValueError for settings that do not fit the other sections."""
        return

    def check_rows(self, rows: Rows, *, num_generations: int) -> None:
        """Raise ValueError if the task's rows lack what the scheme needs; before a model loads."""
        return

    def fitting(self, rows: Rows, loaded: LoadedModel, *, length: int) -> list[Row]:
        """The rows that can be used, asked once the tokenizer is known."""
        return list(rows)

    def prompts(self, row: Row) -> list[Any]:
        """What completions of this row may follow."""
        return [row["prompt"]]
