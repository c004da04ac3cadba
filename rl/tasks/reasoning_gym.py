"""The tasks of reasoning-gym by name, graded as `rewards.reasoning_gym` says.

    task: {name: reasoning_gym, dataset: mini_sudoku, config: {min_empty: 6, max_empty: 8}}

Validation and test are the same entries whatever the seed of the run; only training follows it. A
question that is in test is left out of validation, one in either out of training, so no seed and no
size lets them overlap. `metadata` is JSON, since each data set has its own. Loading a split draws
the held-out ones as well: zebra_puzzles and sudoku take 20 to 100 ms an entry.
"""

import importlib.util
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rl.resolve import did_you_mean
from rl.tasks.base import Row, Split, Task, ask, reply

# which stretch of reasoning-gym's seeds a split is drawn from; training has the others
HELD_OUT = {"test": 1, "validation": 2}
STRETCH, STRETCHES = 10_000_000, 200
CHUNK = 50
PATIENCE = 1000  # entries in a row whose question is not new
PLACES = ("seed", "size")  # of a data set's configuration, and not the user's to set


@dataclass(frozen=True, kw_only=True)
class ReasoningGym(Task):
    """config: of the data set (its difficulty), by reasoning-gym's names."""

    name: ClassVar[str] = "reasoning_gym"
    grader: ClassVar[str] = "reasoning_gym"

    dataset: str = "mini_sudoku"
    config: dict[str, Any] = field(default_factory=dict)
    train_size: int = 5000
    validation_size: int = 100
    test_size: int = 200

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        sizes = {
            "train": self.train_size,
            "validation": self.validation_size,
            "test": self.test_size,
        }
        wanted = sizes[split] if limit is None else limit
        if split != "train":
            wanted = min(wanted, sizes[split])
        taken: set[str] = set()
        for held in ("test", "validation"):
            if held == split:
                break
            found = self._entries(HELD_OUT[held], sizes[held], taken)
            taken |= {entry["question"] for entry in found}
        stretch = HELD_OUT.get(split, 3 + seed % (STRETCHES - 3))
        return [self._row(entry, split, i) for i, entry in enumerate(
            self._entries(stretch, wanted, taken))]  # fmt: skip

    def validate(self) -> None:
        if importlib.util.find_spec("reasoning_gym") is None:
            raise ValueError(
                f"task {self.name!r} needs reasoning-gym: pip install 'unmask-rl[reasoning]'"
            )
        from reasoning_gym.factory import DATASETS

        known = sorted(DATASETS.keys() - {"composite"})
        if self.dataset not in known:
            raise ValueError(
                f"task {self.name!r}: dataset {self.dataset!r} is none of reasoning-gym's"
                f"{did_you_mean(self.dataset, known)} Known: {', '.join(known)}"
            )
        if min(self.train_size, self.validation_size, self.test_size) < 0:
            raise ValueError(f"task {self.name!r}: the sizes are numbers of rows, 0 or more")
        if set(PLACES) & set(self.config):
            raise ValueError(
                f"task {self.name!r}: config sets {' and '.join(set(PLACES) & set(self.config))}, "
                "which are the task's to choose; use train_size, validation_size and test_size"
            )
        self._made(seed=0, size=1)

    def _made(self, *, seed: int, size: int) -> Any:
        import reasoning_gym

        try:
            return reasoning_gym.create_dataset(self.dataset, seed=seed, size=size, **self.config)
        except (AssertionError, TypeError, ValueError) as error:
            raise ValueError(
                f"task {self.name!r}: reasoning-gym refuses config {self.config} for "
                f"{self.dataset}: {error}"
            ) from error

    def _entries(self, stretch: int, count: int, taken: set[str]) -> list[dict[str, Any]]:
        """The first `count` entries of a stretch with different questions that are not `taken`."""
        seen = set(taken)
        found: list[dict[str, Any]] = []
        fruitless = 0
        for entry in self._stream(stretch) if count else ():
            if entry["question"] not in seen:
                seen.add(entry["question"])
                found.append(entry)
                fruitless = 0
            else:
                fruitless += 1
            if len(found) == count:
                break
            if fruitless == PATIENCE:
                raise ValueError(
                    f"task {self.name!r}: {self.dataset} has about {len(seen)} different questions "
                    f"with config {self.config}, too few for {count} rows beside the held-out "
                    "ones. Ask for fewer, or widen its ranges"
                )
        return found

    def _stream(self, stretch: int) -> Iterator[dict[str, Any]]:
        """Entries without end. reasoning-gym draws entry i from seed + i, so the stretches must lie
        apart; some data sets make a list of `size`, so it is asked for a few at a time."""
        for start in range(STRETCH * stretch, STRETCH * (stretch + 1), CHUNK):
            data = self._made(seed=start, size=CHUNK)
            yield from (data[i] for i in range(CHUNK))

    def _row(self, entry: dict[str, Any], split: Split, i: int) -> Row:
        gold = entry["answer"]
        row: Row = {
            "id": f"{self.dataset}-{split}-{i}",
            "prompt": ask(
                "Solve this.", answer="the answer alone, in the form that is asked for",
                problem=entry["question"].strip(),
            ),
            "question": entry["question"],
            "answer": gold,
            "metadata": json.dumps(entry["metadata"], default=_plain),
        }  # fmt: skip
        return row if gold is None else row | {"completion": reply("I solved it.", gold)}


def _plain(value: Any) -> Any:
    """What JSON does not know: numpy's numbers and arrays, sets, and whatever has a text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return sorted(value) if isinstance(value, set | frozenset) else str(value)
