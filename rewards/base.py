"""What a grader is, what a reward is, and how the first becomes the second.

A grader is a pure function of one text: `score(completion, **columns)`. It gives a number, None
("does not apply") or a dictionary of components, whose sum is the reward. Its parameters after the
first name the columns of the data set that it needs, see `rewards.columns`.
A reward is TRL's call, `f(prompts, completions, **columns) -> list` with such a value for each.
`per_completion` turns the first into the second, so that training and evaluation share one grader.

    reward = per_completion(score)
    reward(prompts, [a, b], answer=["3", "5"])      # [score(a, answer="3"), score(b, answer="5")]

A grader that is much faster on many texts at once carries a second function, see `with_batch`.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rewards.columns import TRAINER_EXTRAS, columns_of
from rewards.values import RAISED, Failed, RewardError, Value, raised

Grader = Callable[..., Value]
Batch = Callable[..., Sequence[Value | Failed]]
Reward = Callable[..., list[Value | Failed]]
G = TypeVar("G", bound=Grader)

__all__ = [
    "TRAINER_EXTRAS", "Batch", "Grader", "Reward", "per_completion", "required_columns",
    "text_of", "with_batch",
]  # fmt: skip


def per_completion(score: Grader, *, survives: bool = False) -> Reward:
    """Lift a grader of one text to TRL's call; a row whose required column is None scores None.

    survives: where a grading raises, that completion is `Failed` and the others have their score.
    """
    own = columns_of(score)
    batch: Batch | None = getattr(score, "batch", None)

    def reward(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[Value | Failed]:
        texts = [text_of(completion) for completion in completions]
        wanted, applies = own.rows({"prompt": prompts} | columns, len(texts))
        values: list[Value | Failed] = [None] * len(texts)
        scores: Sequence[Value | Failed] | None = None
        if batch is not None:
            some = {column: [rows[i] for i in applies] for column, rows in wanted.items()}
            scores = _unless_raised(batch, survives, [texts[i] for i in applies], some)
        if scores is None or isinstance(scores, Failed):
            each = [{column: rows[i] for column, rows in wanted.items()} for i in applies]
            scores = [
                _unless_raised(score, survives, texts[i], row)
                for i, row in zip(applies, each, strict=True)
            ]
        for i, value in zip(applies, scores, strict=True):
            values[i] = value
        return values

    reward.__name__ = reward.__qualname__ = own.name
    reward.__doc__ = score.__doc__
    setattr(reward, "grader", score)  # noqa: B010 - the trainer's monitor asks how it reads answers
    return reward


def _unless_raised(score: Callable[..., Any], survives: bool, text: Any, columns: Any) -> Any:
    try:
        return score(text, **columns)
    except RewardError:
        raise
    except RAISED as error:
        if not survives:
            raise
        return raised(error)


def with_batch(batch: Batch) -> Callable[[G], G]:
    """Decorate a grader with `batch(completions, column=[...], ...)`, which scores many at once."""

    def attach(score: G) -> G:
        setattr(score, "batch", batch)  # noqa: B010 - a function has no declared attributes
        return score

    return attach


def required_columns(score: Grader) -> tuple[str, ...]:
    """The columns that a data set must have for this grader."""
    return columns_of(score).required


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
