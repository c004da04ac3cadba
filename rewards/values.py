"""What a reward may give for a completion, and what it may not.

A number (a bool, a tensor of one element), None for "not graded", or components by name:
{"tests": 0.5, "style": None} is a reward of 0.5, of which `tests` is logged on its own.
"""

from asyncio import CancelledError
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

Value = float | None | Mapping[str, float | None]
FAILURES = ("timeouts", "crashes", "exceptions")
# the user's own code may raise anything; Ctrl-C alone is not its doing
RAISED = (Exception, SystemExit, CancelledError)
RESERVED = frozenset({*FAILURES, "errors", "not_graded"})  # logged as rewards/NAME/... already


class RewardError(ValueError):
    """A reward function that cannot be used as it is."""


@dataclass(frozen=True)
class Failed:
    """In place of a value: grading this completion came to nothing.

    why: follows the reward's name. fix: what the user can do.
    """

    kind: Literal["timeouts", "crashes", "exceptions"]
    why: str
    fix: str = ""


def raised(error: BaseException) -> Failed:
    return Failed("exceptions", f"raised {type(error).__name__}: {error}")


class Unsettled(float):
    """A score that stands although grading came to nothing: 0.0 for an answer that hangs the
    grader. It is that number to all but those who count failures."""

    failed: Failed

    def __new__(cls, score: float, failed: Failed) -> "Unsettled":
        self = super().__new__(cls, score)
        self.failed = failed
        return self


def values_of(name: str, returned: Any, expected: int) -> list[Value | Failed]:
    """What a reward returned, one value per completion, or RewardError."""
    try:
        values = list(returned)
    except TypeError:
        raise RewardError(
            f"reward {name} returned {returned!r:.200}; it must return a list with one float or "
            f"None per completion ({expected} here)"
        ) from None
    if len(values) != expected or isinstance(returned, Mapping):
        raise RewardError(
            f"reward {name} returned {len(values)} values for {expected} completions; it must "
            "return one float or None for each"
        )
    return [value_of(name, value) for value in values]


def value_of(name: str, value: Any) -> Value | Failed:
    """One completion's value as plain numbers, or RewardError."""
    if isinstance(value, Failed | Unsettled):
        return value
    if not isinstance(value, Mapping):
        return _number(name, value)
    components = cast(Mapping[Any, Any], value)
    for component in components:
        if not isinstance(component, str) or not component or component in RESERVED:
            raise RewardError(
                f"reward {name} returned a component called {component!r:.100}; it must be a "
                f"string other than {', '.join(sorted(RESERVED))}"
            )
    return {component: _number(name, part) for component, part in components.items()}


def total(value: Value | Failed) -> float | None:
    """The reward: the sum of the components that there are; None if there are none."""
    if isinstance(value, Failed):
        return None
    if value is None or isinstance(value, float | int):
        return value
    parts = [part for part in value.values() if part is not None]
    return sum(parts) if parts else None


def _number(name: str, value: Any) -> float | None:
    try:
        if not isinstance(value, str | bytes):
            return None if value is None else float(value)
    except (TypeError, ValueError, ArithmeticError, RuntimeError):  # the last one by tensors
        pass
    raise RewardError(
        f"reward {name} returned {value!r:.200} for a completion; each value must be a float or "
        "None, or a dictionary of such by name"
    )
