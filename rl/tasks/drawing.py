"""Tasks whose prompts are drawn by a generator, each row once, on a private random stream."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from rl.tasks.base import Row, Split, Task, split_of

CHUNK = 512  # draws at a time, whatever the limit, so that more rows continue fewer
PATIENCE = 100  # chunks in a row without a new prompt; then there are no more, or hardly any

Draw = Callable[[Random, int], list[Row]]  # so many tries, of which some may give no row


@dataclass(frozen=True, kw_only=True)
class DrawnTask(Task):
    """A task without a data set: the sizes are the numbers of rows when no limit is given."""

    train_size: int = 38_400
    validation_size: int = 600
    test_size: int = 1000

    def check_sizes(self) -> None:
        for name in ("train_size", "validation_size", "test_size"):
            if getattr(self, name) < 0:
                raise ValueError(
                    f"task {self.name!r}: {name} is a number of rows, 0 or more; "
                    f"got {getattr(self, name)}"
                )

    def draw_rows(self, draw: Draw, split: Split, limit: int | None, seed: int) -> list[Row]:
        """Rows of one split with different ids, from as many chunks of draws as it takes."""
        sizes = {
            "train": self.train_size,
            "validation": self.validation_size,
            "test": self.test_size,
        }
        wanted = sizes[split] if limit is None else limit
        rng = Random(f"{self.name} {split} {seed}")
        rows: dict[str, Row] = {}
        fruitless = 0
        while len(rows) < wanted and fruitless < PATIENCE:
            before = len(rows)
            for row in draw(rng, CHUNK):
                if row["id"] not in rows and split_of(self.name, row["id"]) == split:
                    rows[row["id"]] = row
            fruitless = 0 if len(rows) > before else fruitless + 1
        if len(rows) < wanted:
            raise ValueError(
                f"task {self.name!r} was asked for {wanted} distinct prompts in split {split!r} "
                f"but has about {len(rows)}: none of the last {PATIENCE * CHUNK} draws was new. "
                f"Ask for fewer, or widen the task's ranges"
            )
        return list(rows.values())[:wanted]
