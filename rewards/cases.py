"""Cases that a reward must get right: what a line of such a file says, and reading it.

    {"id": "comma-1", "task": "gsm8k", "completion": "<answer>70,000</answer>", "gold": "70000",
     "extra": {"kind": "thousands comma", "contested": false}, "expected": 1.0}

id, task, completion, gold (null where there is none) and expected (a number, or null: not graded)
must be there; other keys, a source for instance, are kept out of it. In `extra`:

    kind             which fault the case stands for
    contested        true: a matter of policy, reported apart
    accept           a list of further right scores, such as [0.0, null]
    max_seconds      a longer grading is a hang
    must_not_create  a path; the completion is hostile, and this file would be its doing
    run_in_thread    true: graded outside the main thread
    prefill          what the prompt already wrote of the answer, such as "<reasoning>\\n"

Every other key of `extra` is a column of the data set (numbers, target, puzzle, ...); `gold` is
the columns `answer` and `gold` where `extra` has none of that name, and the column `solution` of a
reward that cannot do without.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOLD_COLUMNS = ("answer", "gold")  # that `gold` stands for
SHOWN = 20  # mistakes of one file


@dataclass(frozen=True, kw_only=True)
class Case:
    """One line of a file of cases; `right` holds every score that is right."""

    line: int
    id: str
    task: str
    completion: str
    right: tuple[float | None, ...]
    columns: Mapping[str, Any]
    kind: str = ""
    contested: bool = False
    max_seconds: float | None = None
    must_not_create: str | None = None
    run_in_thread: bool = False
    prefill: str = ""

    @property
    def expected(self) -> float | None:
        return self.right[0]


def read_cases(path: Path) -> list[Case]:
    """All cases of a file; ValueError with the line of every mistake."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from error
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    cases: list[Case] = []
    mistakes: list[str] = []
    lines_by_id: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            case = _case(line, number)
            if case.id in lines_by_id:
                raise ValueError(f"id {case.id!r} is taken by line {lines_by_id[case.id]}")
        except ValueError as error:
            mistakes.append(f"{path}, line {number}: {error}")
            continue
        lines_by_id[case.id] = number
        cases.append(case)
    if mistakes:
        more = len(mistakes) - SHOWN
        raise ValueError("\n".join(mistakes[:SHOWN] + [f"and {more} more"] * (more > 0)))
    if not cases:
        raise ValueError(f"{path} has no case; it needs one JSON object a line")
    return cases


def _case(line: str, number: int) -> Case:
    try:
        raw: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise ValueError(f"a case is a JSON object, got {line.strip()[:80]!r}")
    fields: dict[str, Any] = dict(raw)  # pyright: ignore[reportUnknownArgumentType]
    missing = [
        name for name in ("id", "task", "completion", "gold", "expected") if name not in fields
    ]
    if missing:
        raise ValueError(f"missing {', '.join(missing)}; it has {', '.join(fields) or 'nothing'}")
    extra = _extra(fields)
    told: dict[str, Any] = {
        name: _checked(f"extra.{name}", extra.pop(name), *EXTRAS[name])
        for name in EXTRAS
        if name in extra
    }
    expected = _checked("expected", fields["expected"], _score, "a finite number or null")
    accept: list[float | None] = told.pop("accept", [])
    columns = {name: fields["gold"] for name in GOLD_COLUMNS} | extra
    return Case(
        line=number,
        id=_checked("id", fields["id"], _text, "a text that is not empty"),
        task=_checked("task", fields["task"], _text, "a text that is not empty"),
        completion=_checked("completion", fields["completion"], _string, "a text"),
        right=(expected, *accept),
        columns=columns,
        **told,
    )


def _extra(fields: Mapping[str, Any]) -> dict[str, Any]:
    extra = fields.get("extra", {})
    if not isinstance(extra, dict):
        raise ValueError(f"extra must be a JSON object, got {extra!r:.80}")
    return dict(extra)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _checked(name: str, value: Any, fits: Callable[[Any], bool], allowed: str) -> Any:
    if not fits(value):
        raise ValueError(f"{name} must be {allowed}, got {value!r:.80}")
    return value


def _string(value: Any) -> bool:
    return isinstance(value, str)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _score(value: Any) -> bool:
    return value is None or _number(value)


def _scores(value: Any) -> bool:
    return isinstance(value, list) and all(map(_score, value))  # pyright: ignore[reportUnknownArgumentType]


def _seconds(value: Any) -> bool:
    return _number(value) and value > 0


EXTRAS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "kind": (_string, "a text"),
    "contested": (_flag, "true or false"),
    "accept": (_scores, "a list of finite numbers and nulls"),
    "max_seconds": (_seconds, "a number of seconds above 0"),
    "must_not_create": (_text, "a path"),
    "run_in_thread": (_flag, "true or false"),
    "prefill": (_string, "a text"),
}
