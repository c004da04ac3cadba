"""What tasks of Python programs with unit tests have in common.

The grader runs the programs. A run must allow that by `execute_code: true`, in the entry of
`rewards:` for training, in `task:` for an evaluation.
"""

from dataclasses import dataclass
from typing import ClassVar

from rl.tasks.base import Prompt, Task

SHAPE = """Think it through first if you like, then give the whole program in one block:
```python
your code
```"""


@dataclass(frozen=True, kw_only=True)
class CodeTask(Task):
    """execute_code, allow_weak_isolation, wall_s: see `rewards.unit_tests`; of an evaluation."""

    grader: ClassVar[str] = "unit_tests"

    execute_code: bool = False
    allow_weak_isolation: bool = False
    wall_s: float = 10.0


def ask_for_code(request: str, problem: str) -> Prompt:
    """A conversation of one message: what to do, the shape of the reply, the problem."""
    return [{"role": "user", "content": f"{request} {SHAPE}\n\n{problem}"}]


def code_reply(code: str) -> str:
    """A completion in the shape that `ask_for_code` asks for."""
    return f"```python\n{code.strip()}\n```"
