"""MBPP, short Python programs with a few asserts each (arXiv:2108.07732).

From the hub by default; `path` may be a local folder or file in one of two forms:
    the original      text (or prompt), test_list, and code, test_setup_code, test_imports if known
    MultiPL-E's       prompt (the head of a typed function), test, entry_point
The prompt shows the first assert (of MultiPL-E's, the head), since the function's name is part of
the problem; `shown_tests` sets how many of the original's.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from rl.tasks.base import Row, Split, split_of
from rl.tasks.code_task import CodeTask, ask_for_code, code_reply
from rl.tasks.sources import Record, check_path, read_split

EXPECTED = (
    "A folder with train.jsonl and test.jsonl or one .jsonl file, with the fields text and "
    "test_list or prompt, test and entry_point, or a hub data set such as "
    "google-research-datasets/mbpp is expected"
)


@dataclass(frozen=True, kw_only=True)
class Mbpp(CodeTask):
    name: ClassVar[str] = "mbpp"

    path: str = "google-research-datasets/mbpp"
    config: str | None = None
    shown_tests: int = 1

    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        self.validate()
        records = read_split(self.name, self.path, split, key=None, config=self.config)
        if split != "test":
            kept = split == "validation"
            records = [
                record
                for record in records
                if (split_of(self.name, _problem(record)) == "validation") == kept
            ]
        return [self._row(record) for record in records[:limit]]

    def validate(self) -> None:
        check_path(self.name, self.path, EXPECTED)
        if self.shown_tests < 1:
            raise ValueError(
                f"task {self.name!r}: shown_tests is {self.shown_tests}; without a test the prompt "
                "does not say what the function is called, so show at least 1"
            )

    def _row(self, record: Record) -> Row:
        if "test_list" not in record.fields:
            return _typed_row(record)
        tests = _texts(record, "test_list")
        if not tests:
            raise ValueError(f"{record.where}: field 'test_list' is empty; asserts are expected")
        shown = "\n".join(tests[: self.shown_tests])
        row: Row = {
            "id": record.id,
            "prompt": ask_for_code(
                "Write a Python program that passes tests like the one below.",
                f"{_problem(record)}\n\n{shown}",
            ),
            "test_list": tests,
            "test_setup_code": record.fields.get("test_setup_code") or "",
            "test_imports": _texts(record, "test_imports"),
        }
        if record.fields.get("code"):
            row["completion"] = code_reply(record.text("code"))
        return row


def _problem(record: Record) -> str:
    return record.text("text" if record.fields.get("text") else "prompt")


def _typed_row(record: Record) -> Row:
    code = record.text("prompt")
    return {
        "id": record.id,
        "prompt": ask_for_code(
            "Complete this Python function; repeat what stands there.",
            f"```python\n{code.strip()}\n```",
        ),
        "starter_code": code,
        "test": record.text("test"),
        "entry_point": record.text("entry_point"),
    }


def _texts(record: Record, field: str) -> list[str]:
    value: Any = record.fields.get(field) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(
            f"{record.where}: field {field!r} must be a list of texts; got {value!r:.80}"
        )
    return value
