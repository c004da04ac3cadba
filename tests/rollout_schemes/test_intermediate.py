"""What a completion was on the way: its texts, its gains, and which of them are kept."""

import math

import pytest
import torch

from estimators import Estimator, MeanField, PredictedX0, RowRandom, stable_seed
from rl.advantages import GroupAdvantage
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel
from rl.rollout_schemes import Independent, Intermediate
from rl.samplers import LowConfidence, RandomOrder

from .conftest import LENGTH, NewWindow, on_rank, rows_of


def test_graded_steps_are_spread_up_to_the_last() -> None:
    assert Intermediate(kept=1).steps(4) == [0, 1, 2, 3]
    assert Intermediate(graded=2, kept=1).steps(5) == [1, 4]
    assert Intermediate(graded=3, kept=1).steps(12) == [3, 7, 11]


def test_an_advantage_is_the_gain_and_what_follows(window: NewWindow) -> None:
    w = window(rows_of("a", group=2), group=2)
    rewards = torch.tensor([[0.0, 1.0, 0.5], [0.5, 0.5, 0.0]])
    # first: gains 0, 1, -1/2; later 3/4, 1/2, 1/2. second: 1/2, 0, -1/2; later 1/4, 0, 0
    returns = torch.tensor([[0.75, 1.5, 0.0], [0.75, 0.0, -0.5]])
    credit = Intermediate(kept=1).credit(rewards, w)
    torch.testing.assert_close(credit, returns - returns.mean(0))
    scaled = Intermediate(kept=1).credit(
        rewards, window(rows_of("a", group=2), group=2, advantage=GroupAdvantage())
    )
    deviation = returns.std(0) + 1e-4
    torch.testing.assert_close(scaled, (returns - returns.mean(0)) / deviation)


def test_what_was_not_graded_teaches_nothing_and_hides_nothing_later(window: NewWindow) -> None:
    w = window(rows_of("a", group=2), group=2)
    rewards = torch.tensor([[0.0, math.nan, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    credit = Intermediate(kept=1).credit(rewards, w)
    assert credit[0].tolist() == [0.5, 0.0, 0.0, 0.5]  # two gains are unknown


def test_a_prompt_keeps_the_steps_with_the_largest_advantages(window: NewWindow) -> None:
    scheme = Intermediate(kept=2)
    w = window(rows_of("a", "b", group=2), group=2)
    advantages = torch.tensor(
        [
            [0.0, 3.0, -1.0, 2.0],
            [0.0, -3.0, 1.0, -2.0],
            [1.0, 1.0, 0.5, 0.0],
            [-1.0, -1.0, -0.5, 0.0],
        ]
    )
    assert scheme.select(advantages, w).tolist() == [[1, 3], [1, 3], [0, 1], [0, 1]]
    one = Intermediate(kept=1)  # a tie goes to the earlier step
    assert one.select(advantages, w).tolist() == [[1], [1], [0], [0]]
    # a group on two ranks: both keep what the whole group says
    shared = torch.tensor([[1.0, 0.0], [1.0, 5.0]])
    for rank in (0, 1):
        mine = on_rank(window(rows_of("a", group=1), group=2), rank, shared)
        assert one.select(shared[rank : rank + 1], mine).tolist() == [[1]]


def reward(row: dict, text: str) -> float:
    return sum(ord(c) % 7 for c in text) / 48


def test_texts_are_what_was_foreseen_from_what_was_visible(window: NewWindow) -> None:
    sampler = LowConfidence(steps=4, temperature=2.0)
    w = window(rows_of("ab", "abcd", group=2), group=2, reward=reward, sampler=sampler)
    rollouts = Intermediate(kept=4)(w)
    finished = Independent()(w)
    sequences, final = rollouts.completions.sequences, finished.completions.sequences
    assert len(rollouts.keys) == 16
    assert [key[4] for key in rollouts.keys] == [0, 1, 2, 3] * 4
    for i, key in enumerate(rollouts.keys):
        row, step = i // 4, key[4]
        visible = final.step_map[row] < step
        assert torch.equal(sequences.fixed[i], visible)
        assert torch.equal(sequences.completion_ids[i, visible], final.completion_ids[row, visible])
        now = final.step_map[row] == step  # these proposals were committed
        assert torch.equal(sequences.completion_ids[i, now], final.completion_ids[row, now])
        assert rollouts.rewards[i] == pytest.approx(reward({}, rollouts.completions.texts[i]))
        assert key[:4] == w.keys[row]
    last = torch.arange(3, 16, 4)
    assert torch.equal(sequences.completion_ids[last], final.completion_ids)
    assert torch.equal(rollouts.metrics["reward/finished"], finished.rewards)


def test_advantages_stand_beside_their_texts(window: NewWindow) -> None:
    w = window(
        rows_of("ab", group=2),
        group=2,
        reward=reward,
        sampler=RandomOrder(steps=4, temperature=2.0),
    )
    every = Intermediate(kept=4)(w)
    credit = Intermediate(kept=4).credit(every.rewards.view(2, 4), w)
    assert bool(credit.any())
    torch.testing.assert_close(every.advantages.view(2, 4), credit)
    kept = Intermediate(kept=2)(w)
    best = credit.abs().sum(0).topk(2).indices.sort().values
    torch.testing.assert_close(kept.advantages.view(2, 2), credit[:, best])
    assert [key[4] for key in kept.keys] == best.tolist() * 2


@pytest.mark.parametrize("estimator", [MeanField(after_eos="score"), PredictedX0()], ids=str)
def test_visible_tokens_are_shown_and_not_scored(window: NewWindow, estimator: Estimator) -> None:
    sequences = Intermediate(kept=4)(window(rows_of("ab", group=2), group=2)).completions.sequences
    plan = estimator.plan(sequences, RowRandom([0] * 8))
    assert torch.equal(plan.weight[:, 0] != 0, ~sequences.fixed)
    assert torch.equal(plan.completion[:, 0], ~sequences.fixed)


def test_proposals_bring_the_log_probs_that_they_were_drawn_with(
    window: NewWindow, loaded: LoadedModel
) -> None:
    """What the estimator says of them at once, from what was visible."""
    sampler = RandomOrder(steps=4, temperature=2.0)
    w = window(rows_of("ab", group=2), group=2, sampler=sampler)
    sequences = Intermediate(kept=4)(w).completions.sequences
    estimator, denoiser = PredictedX0(), ModelDenoiser.of(loaded)
    plan = estimator.plan(sequences, RowRandom([0] * 8))
    with denoiser.evaluating():
        found = estimator(denoiser, sequences, plan, sampler.decoding(LENGTH)).token_logp
    expected = sequences.rollout_logp.masked_fill(sequences.fixed, 0.0)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)


def test_finished_completions_are_those_of_independent_rollouts(window: NewWindow) -> None:
    """Grading on the way changes nothing in what is written."""
    seen: list[list[int]] = []
    w = window(rows_of("ab", group=2), group=2)
    original = w.write

    def spy(rows, seeds, **how):
        seen.append(seeds)
        return original(rows, seeds, **how)

    object.__setattr__(w, "write", spy)
    Intermediate(kept=1)(w)
    assert seen == [[stable_seed("rollout", *key) for key in w.keys]]


def test_settings() -> None:
    with pytest.raises(ValueError, match="kept is 0; use at least 1 step"):
        Intermediate(kept=0)
    with pytest.raises(ValueError, match="graded is 2 and kept is 3; only graded steps"):
        Intermediate(graded=2, kept=3)
    sampler = LowConfidence(steps=4)
    Intermediate(kept=4).validate(num_generations=2, length=LENGTH, sampler=sampler)
    with pytest.raises(ValueError, match=r"kept is 8, but sampler\.steps is 4; use at most 4"):
        Intermediate().validate(num_generations=2, length=LENGTH, sampler=sampler)
    with pytest.raises(ValueError, match="graded is 5, but sampler"):
        Intermediate(graded=5, kept=2).validate(num_generations=2, length=8, sampler=sampler)
