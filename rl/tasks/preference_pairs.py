"""Pairs of completions, of which one is preferred, for DPO on differences of likelihoods (VRPO).

A row has `recorded`: the chosen completion with reward 1, then the rejected one with reward 0. It
is for `rollout: recorded` with trainer.num_generations 2; nothing is written or graded.

The fields are those of TRL's preference data sets: prompt, chosen, rejected, each a text or a list
of messages. Without prompt, both are conversations and the prompt is what they share.
"""

from dataclasses import dataclass
from typing import ClassVar

from rl.tasks.base import Row, Split, Task
from rl.tasks.conversations import completion_of, prompt_of
from rl.tasks.sources import Record, check_path, read_split

EXPECTED = (
    "A folder with train.jsonl, one .jsonl file with the fields prompt, chosen and rejected, or a "
    "hub data set with a split `train` is expected"
)


@dataclass(frozen=True, kw_only=True)
class PreferencePairs(Task):
    name: ClassVar[str] = "preference_pairs"
    grader: ClassVar[str] = ""

    path: str
    config: str | None = None

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        records = read_split(self.name, self.path, split, key=None, config=self.config)
        return [_row(record) for record in records[:limit]]

    def validate(self) -> None:
        check_path(self.name, self.path, EXPECTED)


def _row(record: Record) -> Row:
    prompt = prompt_of(record, "chosen", "rejected")
    chosen = completion_of(record, "chosen", prompt)
    rejected = completion_of(record, "rejected", prompt)
    return {
        "id": record.id,
        "prompt": prompt,
        "completion": chosen,
        "recorded": [
            {"prompt": prompt, "completion": chosen, "reward": 1.0},
            {"prompt": prompt, "completion": rejected, "reward": 0.0},
        ],
    }
