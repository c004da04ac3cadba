"""The grader of a task, configured by the task.

A field of the task that is a setting of its grader (a keyword-only parameter with that name) is
passed on: `task: {name: humaneval, execute_code: true}` allows what `rewards.unit_tests` asks for.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from rewards import REWARDS
from rl.reward_function import configure
from rl.tasks import Task


def task_grader(task: Task) -> Callable[..., Any]:
    """Raises ValueError where the grader refuses the task's settings."""
    target = REWARDS[task.grader]
    parameters = inspect.signature(target).parameters.values()
    known = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    settings = {
        field.name: getattr(task, field.name)
        for field in dataclasses.fields(task)
        if field.name in known
    }

    def refuse(where: str, why: str) -> None:
        raise ValueError(f"{where}: {why}")

    function = configure(target, settings, f"task {task.name}", refuse)
    assert function is not None
    return function
