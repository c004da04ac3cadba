"""Single completions, each labelled good or bad, for KTO.

Nothing is compared within a prompt, so two examples that follow each other in the file make a row,
whose `recorded` has one prompt, completion and reward (1 or 0) each. It is for `rollout: recorded`
with trainer.num_generations 2. The last example of an odd number is left out, and the log says so.

The fields are those of TRL's unpaired data sets: prompt, completion (texts or lists of messages)
and label (true or false).
"""

import logging
from dataclasses import dataclass
from typing import Any, ClassVar

from rl.tasks.base import Row, Split, Task
from rl.tasks.conversations import completion_of, prompt_of
from rl.tasks.sources import Record, check_path, read_split

logger = logging.getLogger(__name__)

EXPECTED = (
    "A folder with train.jsonl, one .jsonl file with the fields prompt, completion and label, or a "
    "hub data set with a split `train` is expected"
)


@dataclass(frozen=True, kw_only=True)
class PreferenceLabels(Task):
    name: ClassVar[str] = "preference_labels"
    grader: ClassVar[str] = ""

    path: str
    config: str | None = None

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        records = read_split(self.name, self.path, split, key=None, config=self.config)
        wanted = records if limit is None else records[: 2 * limit]
        if len(wanted) % 2:
            logger.info("%s is left out: examples are taken two at a time", wanted[-1].where)
        pairs = zip(wanted[::2], wanted[1::2], strict=False)
        return [_row(_example(first), _example(second)) for first, second in pairs]

    def validate(self) -> None:
        check_path(self.name, self.path, EXPECTED)


def _row(first: dict[str, Any], second: dict[str, Any]) -> Row:
    return {
        "id": f"{first['id']}+{second['id']}",
        "prompt": first["prompt"],
        "completion": first["completion"],
        "recorded": [first, second],
    }


def _example(record: Record) -> dict[str, Any]:
    prompt = prompt_of(record, "completion")
    label = record.fields.get("label")
    if not isinstance(label, bool):
        raise ValueError(f"{record.where}: field 'label' is {label!r:.80}; true or false is needed")
    return {
        "id": record.id,
        "prompt": prompt,
        "completion": completion_of(record, "completion", prompt),
        "reward": float(label),
    }
