"""Hints where a whole group fails: where they stand, who gets them, and that nobody learns them."""

import logging
import math
import re
from typing import Any

import pytest
import torch

from estimators import Elbo, Estimator, MeanField, RowRandom, Trajectory
from rl.canvas import text_ids
from rl.models.loading import LoadedModel
from rl.rollout_schemes import Independent, Inpaint
from rl.samplers import RandomOrder

from .conftest import LENGTH, NewWindow, on_rank, rows_of

SOLUTION = "0123456789"


def test_a_group_fails_when_nothing_in_it_exceeds_the_threshold() -> None:
    rewards = torch.tensor([0.0, 0.0, 0.0, 1.0, math.nan, 0.0, math.nan, math.nan])
    failed = Inpaint().failed(rewards, 2)
    assert failed.tolist() == [True, True, False, False, True, True, False, False]
    assert Inpaint(threshold=1.0).failed(rewards, 2).tolist() == [True] * 6 + [False] * 2


def test_successes_replace_up_to_a_share_of_the_group_in_order() -> None:
    failed = torch.tensor([True] * 4 + [False] * 4)
    again = torch.tensor([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, math.nan])
    taken = Inpaint(share=0.5).accepted(again, failed, 4)
    assert taken.tolist() == [False, True, True, False] + [False] * 4
    taken = Inpaint(share=0.1).accepted(again, failed, 4)  # one at least
    assert taken.tolist() == [False, True] + [False] * 6


def test_chunks_stand_where_they_stand_in_the_solution() -> None:
    scheme = Inpaint(low=0.5, high=0.5, min_chunk=2, max_chunk=3)
    solution = list(range(10, 19))
    # sizes 2, 3, 2, 2 of 9 tokens; half of 4 chunks are shown: those of the lowest ranks, 1 and 3
    sizes, ranks = [0.1, 0.9, 0.4, 0.0], [0.7, 0.1, 0.5, 0.2]
    uniform = torch.tensor([0.3, *sizes, *[0.0] * 6, *ranks, *[0.0] * 6])
    assert scheme.hint(solution, 10, uniform) == [-1, -1, 12, 13, 14, -1, -1, 17, 18, -1]


def test_the_share_is_drawn_between_low_and_high() -> None:
    scheme = Inpaint(low=0.2, high=0.6, min_chunk=1, max_chunk=1)
    for eta, shown in ((0.0, 2), (0.5, 4), (0.999, 6)):
        uniform = torch.tensor([eta, *[0.5] * 20], dtype=torch.float64)
        assert sum(x >= 0 for x in scheme.hint([7] * 10, 10, uniform)) == shown


def test_what_is_too_short_for_a_chunk_or_beyond_the_canvas_is_no_hint() -> None:
    scheme = Inpaint(low=1.0, high=1.0, min_chunk=2, max_chunk=2)
    uniform = torch.tensor([0.5] * 9)
    assert scheme.hint([5, 6, 7], 4, uniform) == [5, 6, -1, -1]
    assert scheme.hint([5], 4, uniform) == [-1] * 4
    assert scheme.hint([1, 2, 3, 4, 5, 6], 4, uniform) == [1, 2, 3, 4]


def reward(row: dict[str, Any], text: str) -> float:
    """The easy prompt is always done; the others when two digits stand in their places."""
    if row["id"] == "easy":
        return 1.0 + len(text) / 100
    places = zip(text, SOLUTION, strict=False)
    return float(sum(a == b for a, b in places) >= 2)


@pytest.fixture
def run(window: NewWindow):
    """Hints of two tokens at least succeed; of the impossible prompt nothing does."""

    def hopeless(row: dict[str, Any], text: str) -> float:
        return 0.0 if row["id"] == "never" else reward(row, text)

    rows = rows_of("hard", "easy", "never", group=4, completion=SOLUTION)
    sampler = RandomOrder(steps=4, temperature=2.0)
    w = window(rows, group=4, reward=hopeless, sampler=sampler)
    return Independent()(w), Inpaint(min_chunk=2, max_chunk=3)(w)


def test_groups_that_succeed_or_cannot_be_helped_are_left_as_they_are(run) -> None:
    plain, inpainted = run
    assert plain.rewards[:4].tolist() == [0.0] * 4
    before, after = plain.completions.sequences, inpainted.completions.sequences
    for name in ("completion_ids", "step_map", "order_map", "rollout_logp", "entropy"):
        assert torch.equal(getattr(before, name)[2:], getattr(after, name)[2:])
    assert torch.equal(plain.rewards[2:], inpainted.rewards[2:])
    assert plain.completions.texts[2:] == inpainted.completions.texts[2:]
    assert inpainted.metrics["inpaint/failed"].tolist() == [1.0] * 4 + [0.0] * 4 + [1.0] * 4


def test_half_of_a_failed_group_is_replaced_by_what_hints_led_to(run, loaded: LoadedModel) -> None:
    plain, inpainted = run
    (solution,) = text_ids(loaded, [SOLUTION])
    assert inpainted.rewards[:4].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert inpainted.advantages[:4].tolist() == [0.5, 0.5, -0.5, -0.5]
    assert inpainted.metrics["inpaint/replaced"].tolist() == [1.0, 1.0] + [0.0] * 10
    sequences = inpainted.completions.sequences
    for i in (0, 1):
        fixed = sequences.fixed[i]
        assert 2 <= int(fixed.sum()) <= 7
        hints = torch.tensor([*solution, -1, -1])
        assert torch.equal(sequences.completion_ids[i, fixed], hints[fixed])
        assert not torch.equal(
            sequences.completion_ids[i, ~fixed],
            plain.completions.sequences.completion_ids[i, ~fixed],
        )
    assert not torch.equal(sequences.fixed[0], sequences.fixed[1])
    assert not sequences.fixed[2:].any()


@pytest.mark.parametrize(
    "estimator",
    [MeanField(after_eos="score"), Elbo(after_eos="score"), Trajectory()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_no_estimator_scores_a_hint(run, estimator: Estimator) -> None:
    _, inpainted = run
    sequences = inpainted.completions.sequences
    plan = estimator.plan(sequences, RowRandom(list(range(12))))
    hints = sequences.fixed[:, None].expand_as(plan.weight)
    assert bool(hints.any())
    assert not plan.weight[hints].any()
    assert not plan.completion[hints].any()


def test_ranks_write_equally_many_and_take_their_own(window: NewWindow) -> None:
    """A failed group of this rank, and none of the other: two rows are written on both."""
    written: list[tuple[int, int]] = []
    for rank, everyone in ((0, [0.0, 0.0, 1.0, 1.0]), (1, [0.0, 0.0, 1.0, 1.0])):
        rows = rows_of("a" if rank == 0 else "b", group=2, completion=SOLUTION)
        w = window(rows, group=2, reward=lambda row, text: float(row["id"] == "b"))
        w = on_rank(w, rank, torch.tensor(everyone))
        original = w.write

        def spy(some, seeds, *, rank=rank, original=original, **how):
            written.append((rank, len(some)))
            return original(some, seeds, **how)

        object.__setattr__(w, "write", spy)
        Inpaint()(w)
    assert written == [(0, 2), (0, 2), (1, 2), (1, 2)]


def test_without_a_failed_group_nothing_is_written_again(window: NewWindow) -> None:
    w = window(
        rows_of("a", group=2, completion=SOLUTION),
        group=2,
        reward=lambda row, text: len(text) + 1.0,
    )
    plain, inpainted = Independent()(w), Inpaint()(w)
    assert inpainted.completions.texts == plain.completions.texts
    assert torch.equal(inpainted.advantages, plain.advantages)
    assert not inpainted.metrics["inpaint/replaced"].any()


def test_a_task_without_solutions_is_refused() -> None:
    rows = rows_of("a", group=1, answer="3")
    with pytest.raises(ValueError, match=re.escape("row 'a' has no text in column 'completion'")):
        Inpaint().check_rows(rows, num_generations=1)
    with pytest.raises(ValueError, match=r"\(its columns: answer, id, prompt\); use a task whose"):
        Inpaint(column="solution").check_rows(rows, num_generations=1)
    Inpaint(column="answer").check_rows(rows, num_generations=1)


def test_solutions_meet_the_tokenizer_before_training(
    loaded: LoadedModel, caplog: pytest.LogCaptureFixture
) -> None:
    rows = rows_of("a", group=1, completion="x" * 13) + rows_of("b", group=1, completion="é")
    with pytest.raises(ValueError, match="row 'b': token 0 of its completion is '<unk>'"):
        Inpaint().fitting(rows, loaded, length=LENGTH)
    with caplog.at_level(logging.INFO, logger="rl"):
        assert Inpaint().fitting(rows[:1], loaded, length=LENGTH) == rows[:1]
    assert "1 of 1 solutions have more than 12 tokens" in caplog.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": 0.0}, "share is 0.0; use a share of the group"),
        ({"low": 0.7}, "low is 0.7 and high is 0.6"),
        ({"low": 0.0}, "0 < low <= high <= 1"),
        ({"min_chunk": 0}, "min_chunk is 0 and max_chunk is 10"),
        ({"max_chunk": 4}, "1 <= min_chunk <= max_chunk"),
    ],
)
def test_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Inpaint(**settings)
