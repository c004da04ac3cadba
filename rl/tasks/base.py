"""A task: rows with a prompt and what a grader needs, divided into train, validation and test.

A row is `{"id": ..., "prompt": text or messages, "completion": a right answer where one is known,
**columns of the grader}`. `grader` names the entry of `rewards.REWARDS` that judges the task, in
training and in evaluation alike. The same task, split, limit and seed give the same rows anywhere.
"""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Split = Literal["train", "validation", "test"]
Row = dict[str, Any]
Prompt = str | list[dict[str, str]]

SHAPE = """Think the problem through step by step, then commit to one answer.
Reply in exactly this form and add nothing after it:
<reasoning>
your steps
</reasoning>
<answer>
{answer}
</answer>"""


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """Where prompts come from and how completions are judged."""

    name: ClassVar[str]
    grader: ClassVar[str]

    @abstractmethod
    def rows(self, split: Split, limit: int | None = None, seed: int = 0) -> list[Row]:
        """The first `limit` rows of a split. `seed` chooses what a generator draws; the rows of a
        file come in its order whatever the seed. More rows never change the ones before them."""

    @abstractmethod
    def validate(self) -> None:
        """Raise ValueError for what is wrong with the fields, before anything is loaded."""


def split_of(task: str, key: str) -> Split:
    """The split that a prompt of a generated task belongs to: a tenth each for test and validation.

    It depends on the prompt alone, so no seed and no size can move a prompt across.
    """
    bucket = zlib.crc32(f"{task}:{key}".encode()) % 10
    return "test" if bucket == 0 else "validation" if bucket == 1 else "train"


def ask(request: str, *, answer: str, problem: str) -> list[dict[str, str]]:
    """A conversation of one message: what to do, the shape of the reply, the problem."""
    return [
        {"role": "user", "content": f"{request} {SHAPE.format(answer=answer)}\n\n{problem}"},
    ]


def reply(reasoning: str, answer: str) -> str:
    """A completion in the shape that `ask` asks for."""
    return f"<reasoning>\n{reasoning.strip()}\n</reasoning>\n<answer>\n{answer}\n</answer>"


def assert_disjoint(train: Sequence[Row], test: Sequence[Row]) -> None:
    """Raise ValueError, with examples, if a prompt is in both."""
    seen = set(_as_text(train))
    shared = [
        (row["id"], prompt)
        for row, prompt in zip(test, _as_text(test), strict=True)
        if prompt in seen
    ]
    if shared:
        examples = "; ".join(
            f"{key!r}, which ends in {prompt[-80:]!r}" for key, prompt in shared[:3]
        )
        raise ValueError(
            f"{len(shared)} of {len(test)} test prompts are also training prompts, so a test score "
            f"would measure memory: {examples}. Give the task a folder with a train and a "
            f"test file that share no prompt"
        )


def _as_text(rows: Sequence[Row]) -> list[str]:
    prompts = (row["prompt"] for row in rows)
    return [
        prompt
        if isinstance(prompt, str)
        else "\n".join(f"{m['role']}: {m['content']}" for m in prompt)
        for prompt in prompts
    ]
