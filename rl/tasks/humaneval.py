"""HumanEval, 164 functions to complete (arXiv:2107.03374); for evaluation only.

From the hub by default; `path` may be a local folder or file with the fields prompt, test and
entry_point, and canonical_solution where `completion` is wanted. `format: plain` gives the prompt
as published, whose continuation is the function's body; `chat` asks for the whole function in a
block. Either way the tests may use what the prompt's code defines.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from rl.tasks.base import Row, Split
from rl.tasks.code_task import CodeTask, ask_for_code, code_reply
from rl.tasks.sources import Record, check_path, read_split

EXPECTED = (
    "A folder with test.jsonl or one .jsonl file with the fields prompt, test and entry_point, or "
    "a hub data set such as openai/openai_humaneval is expected"
)


@dataclass(frozen=True, kw_only=True)
class HumanEval(CodeTask):
    name: ClassVar[str] = "humaneval"

    path: str = "openai/openai_humaneval"
    format: Literal["chat", "plain"] = "chat"

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        if split != "test":
            raise ValueError(
                f"task {self.name!r} has no {split} split: its problems are for evaluation only. "
                "Train on another task (mbpp), and leave evaluation.every at 0"
            )
        records = read_split(self.name, self.path, split, key=None)
        return [self._row(record) for record in records[:limit]]

    def validate(self) -> None:
        check_path(self.name, self.path, EXPECTED)

    def _row(self, record: Record) -> Row:
        code = record.text("prompt")
        row: Row = {
            "id": record.id,
            "prompt": code
            if self.format == "plain"
            else ask_for_code(
                "Complete this Python function; repeat what stands there.",
                f"```python\n{code.strip()}\n```",
            ),
            "starter_code": code,
            "test": record.text("test"),
            "entry_point": record.text("entry_point"),
        }
        if record.fields.get("canonical_solution"):
            body = record.text("canonical_solution")
            row["completion"] = body if self.format == "plain" else code_reply(code + body)
        return row
