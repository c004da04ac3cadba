"""reasoning-gym's tasks: right is 1, everything else 0.

Where this package has a grader for what a task asks, it decides: Countdown and the like, Sudoku,
knights and knaves, numbers (by exact value), short words. The rest is left to reasoning-gym's own
scorer, in the sandbox, and only its full score counts: as published, `17` earns half for a gold of
7, two people guessed at random 0.58, a rubbish expression 0.05, and model text is run by `eval`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from rewards.base import with_batch
from rewards.countdown import countdown_reached
from rewards.declared import declared_or_whole
from rewards.extraction import Mode, reads_answer
from rewards.knights_knaves import knights_knaves
from rewards.quantities import as_number
from rewards.reasoning_gym_scorers import own_scores
from rewards.sudoku import sudoku_solved
from rewards.zebra import zebra

FULL = 0.999  # of reasoning-gym's score; less is partial credit
LONGEST_NUMBER = 100  # characters
NUMBERS = frozenset(
    """aiw basic_arithmetic binary_alternation chain_sum count_bits count_primes decimal_arithmetic
    decimal_chain_sum gcd gsm_symbolic largest_island lcm leg_counting letter_counting maze
    number_sequence products rectangle_count rotten_oranges simple_equations
    simple_geometry""".split()  # noqa: SIM905 - a list would be a column of quotes
)
WORDS = frozenset(
    """acre course_schedule family_relationships game_of_life_halting isomorphic_strings
    mahjong_puzzle needle_haystack ransom_note syllogism zebra_puzzles""".split()  # noqa: SIM905
)


def grade_reasoning_gym(
    completions: Sequence[str],
    metadata: Sequence[Any],
    answer: Sequence[str | None] | None = None,
    question: Sequence[str | None] | None = None,
    *,
    style: str = "auto",
    mode: Mode = "strict",
) -> list[float | None]:
    """1.0 or 0.0 for each completion; those left to reasoning-gym share sandboxes."""
    count = len(completions)
    golds, questions = answer or [None] * count, question or [None] * count
    known = [_metadata(value) for value in metadata]
    scores = [
        _ours(text, row, gold, style, mode)
        for text, row, gold in zip(completions, known, golds, strict=True)
    ]
    left = [i for i, score in enumerate(scores) if score is None]
    items = [
        (
            known[i]["source_dataset"],
            declared_or_whole(completions[i], style, mode),
            {"question": questions[i], "answer": golds[i], "metadata": known[i]},
        )
        for i in left
    ]
    for i, score in zip(left, own_scores(items), strict=True):
        scores[i] = float(score >= FULL)
    return scores


@reads_answer
@with_batch(grade_reasoning_gym)
def reasoning_gym(
    completion: str,
    metadata: Any,
    answer: str | None = None,
    question: str | None = None,
    *,
    style: str = "auto",
    mode: Mode = "strict",
) -> float | None:
    """1.0 or 0.0. metadata: of reasoning-gym's entry, as JSON; `source_dataset` in it chooses how
    to grade. answer, question: of the entry; `answer` is needed where there is one right answer."""
    return grade_reasoning_gym(
        [completion], [metadata], [answer], [question], style=style, mode=mode
    )[0]


def _ours(
    text: str, row: Mapping[str, Any], gold: str | None, style: str, mode: Mode
) -> float | None:
    """The score by a grader of this package; None if it has none for the data set."""
    dataset = row["source_dataset"]
    if dataset in ("countdown", "puzzle24"):
        target = row["target"] if dataset == "countdown" else 24
        return countdown_reached(text, row["numbers"], target, style=style, mode=mode)
    if dataset in ("sudoku", "mini_sudoku"):
        return sudoku_solved(text, row["puzzle"], style=style, mode=mode)
    if dataset == "knights_knaves":
        words = row.get("knight_knave_terms")
        told = row["statements"], words
        return knights_knaves(text, row["names"], None, *told, style=style, mode=mode)
    if dataset in WORDS:
        return zebra(text, _gold(dataset, gold), style=style, mode=mode)
    if dataset in NUMBERS:
        said = declared_or_whole(text, style, mode).strip().removesuffix(".")
        number = as_number(said) if len(said) <= LONGEST_NUMBER else None
        return float(number is not None and number == as_number(_gold(dataset, gold)))
    return None


def _gold(dataset: str, gold: str | None) -> str:
    if gold is None:
        raise ValueError(f"column 'answer' is empty, and {dataset!r} has one right answer")
    return str(gold)


def _metadata(value: Any) -> dict[str, Any]:
    try:
        read = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        read = None
    if not isinstance(read, Mapping) or not isinstance(
        cast("Mapping[str, Any]", read).get("source_dataset"), str
    ):
        raise ValueError(
            f"column 'metadata' must be the metadata of a reasoning-gym entry, a JSON object with "
            f"source_dataset; got {value!r:.200}"
        )
    return dict(cast("Mapping[str, Any]", read))
