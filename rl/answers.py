"""What the answers of a step look like, whatever they earn.

    answer/STATUS          share of completions by how their answer was read: ok, no_answer,
                           template_echo, garbled, truncated
    answer/several_boxes   share with more than one box
    answer/constant        how far the prompts share one answer: 0 if no two do, 1 if all do

The status and text are those of the first reward that reads an answer, under its own settings.
"""

from collections.abc import Callable, Sequence
from typing import Any, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from estimators import stable_seed
from rewards.extraction import Extraction, Status, extraction_of

STATUSES: tuple[Status, ...] = get_args(Status)
NOTHING = 0  # the fingerprint of no answer


def answer_reader(functions: Sequence[Any]) -> tuple[int, Callable[[str], Extraction] | None]:
    """The place of the first reward that reads an answer, and how; (0, None) if none does."""
    readers = (extraction_of(getattr(each, "grader", each)) for each in functions)
    return next(((i, reader) for i, reader in enumerate(readers) if reader), (0, None))


def shares(answers: Sequence[Extraction]) -> dict[str, Float[Tensor, " B"]]:
    """The metrics of the file's head that are means over completions."""
    found = {
        f"answer/{status}": torch.tensor([float(each.status == status) for each in answers])
        for status in STATUSES
    }
    found["answer/several_boxes"] = torch.tensor([float(each.boxes > 1) for each in answers])
    return found


def fingerprint(answer: Extraction, completion: str) -> int:
    """Equal for equal answers. A text that declares none is one itself: a bare grid, say."""
    whole = completion if answer.status == "no_answer" else None
    text = whole if answer.text is None else answer.text
    return stable_seed("answer", text.strip()) if text and text.strip() else NOTHING


def sameness(prompts: Int[Tensor, " N"], answers: Int[Tensor, " N"]) -> float | None:
    """(s - 1/P) / (1 - 1/P), where s is the most that one answer has of the completions.

    P prompts count alike, however many completions each has. 0 where every prompt has an answer
    of its own, 1 where all completions of all prompts have the same; None for a single prompt.
    """
    _, prompt_N, size_P = prompts.unique(return_inverse=True, return_counts=True)
    if len(size_P) < 2:
        return None
    texts_T, answer_N = answers.unique(return_inverse=True)
    share_T = torch.zeros(len(texts_T), dtype=torch.float64)
    share_T.scatter_add_(0, answer_N, 1 / size_P[prompt_N].double())
    most = float(share_T.where(texts_T != NOTHING, 0.0).max()) / len(size_P)
    alone = 1 / len(size_P)
    return max(0.0, (most - alone) / (1 - alone))
