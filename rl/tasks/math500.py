r"""MATH-500, the 500 competition problems of arXiv:2305.20050; `answer` is LaTeX.

From the hub by default, where it is a test split only; `path` may be a local folder or file with
the fields problem and answer, and solution where it is to be trained on. The prompt asks for a box:
\boxed{...} inside <answer>, which the grader reads as well as a bare answer.
"""

from dataclasses import dataclass
from typing import ClassVar

from rl.tasks.base import Row, Split, Task, ask, reply
from rl.tasks.sources import Record, check_path, read_split

EXPECTED = (
    "A folder with train.jsonl and test.jsonl, one .jsonl file with the fields problem and answer, "
    "or a hub data set such as HuggingFaceH4/MATH-500 is expected"
)


@dataclass(frozen=True, kw_only=True)
class Math500(Task):
    name: ClassVar[str] = "math500"
    grader: ClassVar[str] = "math"

    path: str = "HuggingFaceH4/MATH-500"

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        records = read_split(self.name, self.path, split, key="problem")
        return [_row(record) for record in records[:limit]]

    def validate(self) -> None:
        check_path(self.name, self.path, EXPECTED)


def _row(record: Record) -> Row:
    answer = record.text("answer")
    row: Row = {
        "id": record.id,
        "prompt": ask(
            "Solve this problem.",
            answer=r"\boxed{the final answer}",
            problem=record.text("problem"),
        ),
        "answer": answer,
    }
    if record.fields.get("solution"):
        row["completion"] = reply(record.text("solution"), rf"\boxed{{{answer}}}")
    return row
