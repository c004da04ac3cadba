"""What a grader is, what a reward is, and how the first becomes the second.

A grader is a pure function of one text: `score(completion, **columns) -> float | None`. Its
parameters after the first name the columns of the data set that it needs; `None` means "does not
apply".
A reward is TRL's call, `f(prompts, completions, **columns) -> list[float | None]`.
`per_completion` turns the first into the second, so that training and evaluation share one grader.

    reward = per_completion(score)
    reward(prompts, [a, b], answer=["3", "5"])      # [score(a, answer="3"), score(b, answer="5")]

A grader that is much faster on many texts at once carries a second function, see `with_batch`.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

Grader = Callable[..., float | None]
Batch = Callable[..., list[float | None]]
Reward = Callable[..., list[float | None]]
G = TypeVar("G", bound=Grader)

# what the trainer passes to every reward beside the columns of the data set
TRAINER_EXTRAS = frozenset(
    {"completion_ids", "trainer_state", "log_extra", "log_metric", "environments"}
)


def per_completion(score: Grader) -> Reward:
    """Lift a grader of one text to TRL's call; a row whose required column is None scores None."""
    required, accepted = _columns(score)
    name: str = getattr(score, "__name__", type(score).__name__)
    batch: Batch | None = getattr(score, "batch", None)

    def reward(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        texts = [text_of(completion) for completion in completions]
        columns = {"prompt": prompts} | columns
        wanted = _pick(name, columns, required, accepted, len(texts))
        applies = [
            row
            for row in range(len(texts))
            if all(wanted[column][row] is not None for column in required)
        ]
        values: list[float | None] = [None] * len(texts)
        if batch is not None:
            some = {column: [rows[i] for i in applies] for column, rows in wanted.items()}
            scores = batch([texts[i] for i in applies], **some)
        else:
            scores = [
                score(texts[i], **{column: rows[i] for column, rows in wanted.items()})
                for i in applies
            ]
        for i, value in zip(applies, scores, strict=True):
            values[i] = value
        return values

    reward.__name__ = reward.__qualname__ = name
    reward.__doc__ = score.__doc__
    setattr(reward, "grader", score)  # noqa: B010 - what the trainer's monitor asks about answers
    return reward


def with_batch(batch: Batch) -> Callable[[G], G]:
    """Decorate a grader with `batch(completions, column=[...], ...)`, which scores many at once."""

    def attach(score: G) -> G:
        setattr(score, "batch", batch)  # noqa: B010 - a function has no declared attributes
        return score

    return attach


def required_columns(score: Grader) -> tuple[str, ...]:
    """The columns that a data set must have for this grader."""
    return _columns(score)[0]


def text_of(completion: Any) -> str:
    """The text of a completion, plain or conversational (then its last message)."""
    if isinstance(completion, str):
        return completion
    content: Any = completion[-1].get("content") if completion else None
    if not isinstance(content, str):
        raise ValueError(
            f"a completion must be a string or a list of messages whose last has a string under "
            f"'content'; got {completion!r:.200}"
        )
    return content


def _columns(score: Grader) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """(columns without a default, all columns it accepts; None: whatever there is)."""
    parameters = list(inspect.signature(score).parameters.values())
    if not parameters:
        raise ValueError(
            f"a grader is called as score(completion, **columns), but {score!r} takes no argument"
        )
    by_name = [p for p in parameters[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    required = tuple(p.name for p in by_name if p.default is p.empty)
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return required, None if takes_all else tuple(p.name for p in by_name)


def _pick(
    name: str,
    columns: dict[str, Any],
    required: tuple[str, ...],
    accepted: tuple[str, ...] | None,
    rows: int,
) -> dict[str, Sequence[Any]]:
    """The columns that the grader takes, each with one value a row."""
    present = [column for column in columns if column not in TRAINER_EXTRAS]
    missing = [column for column in required if column not in columns]
    if missing:
        raise ValueError(
            f"reward {name!r} needs the column {' and '.join(map(repr, missing))}; "
            f"the data set has {', '.join(sorted(present)) or 'no columns'}"
        )
    picked: dict[str, Sequence[Any]] = {}
    for column in columns if accepted is None else accepted:
        if column not in columns or (accepted is None and column in TRAINER_EXTRAS):
            continue
        value = columns[column]
        one_a_row = isinstance(value, list | tuple)  # else one value for the whole batch
        values: Sequence[Any] = cast(Sequence[Any], value) if one_a_row else [value] * rows
        if len(values) != rows:
            raise ValueError(
                f"reward {name!r}: column {column!r} has {len(values)} values for {rows} "
                f"completions"
            )
        picked[column] = values
    return picked
