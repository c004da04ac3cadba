"""GSM8K, grade-school word problems (arXiv:2110.14168); `answer` is the number after "####".

From the hub by default; `path` may be a local folder or file with the fields question and answer.
The validation split is a tenth of the training file. `completion` is the data set's own solution,
without its <<calculator annotations>>, in the shape that the prompt asks for.
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from rewards.quantities import as_number
from rl.tasks.base import Row, Split, Task, ask, reply
from rl.tasks.sources import Record, check_path, read_split

EXPECTED = (
    "A folder with train.jsonl and test.jsonl, one .jsonl file with the fields question and answer "
    "(which ends in '#### <number>'), or a hub data set such as openai/gsm8k is expected"
)


@dataclass(frozen=True, kw_only=True)
class Gsm8k(Task):
    name: ClassVar[str] = "gsm8k"
    grader: ClassVar[str] = "gsm8k"

    path: str = "openai/gsm8k"
    config: str = "main"

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        records = read_split(self.name, self.path, split, key="question", config=self.config)
        return [_row(record) for record in records[:limit]]

    def validate(self) -> None:
        check_path(self.name, self.path, EXPECTED)


def _row(record: Record) -> Row:
    question, solution = record.text("question"), record.text("answer")
    steps, mark, answer = solution.rpartition("####")
    answer = answer.strip()
    if not mark or as_number(answer) is None:
        raise ValueError(
            f"{record.where}: field 'answer' must end in '#### <number>'; got ...{solution[-60:]!r}"
        )
    return {
        "id": record.id,
        "prompt": ask(
            "Solve this problem.", answer="the number alone, without units", problem=question
        ),
        "completion": reply(re.sub(r"<<[^<>]*>>", "", steps), answer),
        "answer": answer,
    }
