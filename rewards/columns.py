"""Which columns of the data set a grader takes, read from its signature.

    def score(completion, answer, level=None, *, style="auto"): ...

`answer` is required, `level` is taken if there is such a column, and `style` is a setting: a
keyword-only parameter with a default is the recipe's to set and never filled from a column.
The same holds for a parameter that a `functools.partial` has bound.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

# what the trainer passes to every reward beside the columns of the data set
TRAINER_EXTRAS = frozenset(
    {"completion_ids", "trainer_state", "log_extra", "log_metric", "environments"}
)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """accepted: None for whatever there is. settings: parameters that no column fills.
    unset: those of the settings that have their default."""

    name: str
    required: tuple[str, ...]
    accepted: tuple[str, ...] | None
    settings: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()

    def rows(
        self, columns: Mapping[str, Any], count: int
    ) -> tuple[dict[str, Sequence[Any]], list[int]]:
        """(one value a row of every column the grader takes, rows that have all it needs)."""
        picked = self._pick(columns, count)
        applies = [
            row
            for row in range(count)
            if all(picked[column][row] is not None for column in self.required)
        ]
        return picked, applies

    def shadowed(self, columns: Collection[str]) -> list[str]:
        """Columns of the data set that a setting, left at its default, keeps from the grader."""
        return [name for name in self.unset if name in columns]

    def _pick(self, columns: Mapping[str, Any], count: int) -> dict[str, Sequence[Any]]:
        missing = [column for column in self.required if column not in columns]
        if missing:
            present = sorted(column for column in columns if column not in TRAINER_EXTRAS)
            raise ValueError(
                f"reward {self.name!r} needs the column {' and '.join(map(repr, missing))}; "
                f"the data set has {', '.join(present) or 'no columns'}"
            )
        if self.accepted is None:
            names = [c for c in columns if c not in TRAINER_EXTRAS and c not in self.settings]
        else:
            names = [column for column in self.accepted if column in columns]
        return {name: self._one_a_row(name, columns[name], count) for name in names}

    def _one_a_row(self, column: str, value: Any, count: int) -> Sequence[Any]:
        if not isinstance(value, list | tuple):  # one value for the whole batch
            return [value] * count
        values = cast(Sequence[Any], value)
        if len(values) != count:
            raise ValueError(
                f"reward {self.name!r}: column {column!r} has {len(values)} values for {count} "
                f"completions"
            )
        return values


def columns_of(score: Callable[..., Any]) -> Columns:
    """What `score(completion, **columns)` takes; ValueError if it takes no text."""
    function, bound = score, set[str]()
    name = str(getattr(score, "__name__", type(score).__name__))
    skipped = 1  # the text
    while isinstance(function, functools.partial):
        bound |= set(function.keywords)
        skipped += len(function.args)
        function = function.func
    parameters = list(inspect.signature(function).parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in (*positional, inspect.Parameter.VAR_POSITIONAL):
        raise ValueError(
            f"a grader is called as score(completion, **columns), but {name!r} takes no argument "
            "for the text"
        )
    by_name = [
        p for p in parameters[skipped:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    unset = {
        p.name
        for p in by_name
        if p.kind is p.KEYWORD_ONLY and p.default is not p.empty and p.name not in bound
    }
    settings = bound | unset
    own = [p for p in by_name if p.name not in settings]
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return Columns(
        name=name,
        required=tuple(p.name for p in own if p.default is p.empty),
        accepted=None if takes_all else tuple(p.name for p in own),
        settings=tuple(sorted(settings)),
        unset=tuple(sorted(unset)),
    )
