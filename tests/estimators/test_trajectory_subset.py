"""Sampled steps: unbiased for the trajectory by enumeration over the draws, for every law."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from estimators import Decoding, Sequences, Trajectory, TrajectorySubset
from rl.samplers import SAMPLERS
from tests.estimators.every_draw import Case, Scripted, assert_same, expectation
from tests.tiny_models import MASK, TinyDenoiser, random_rows, sequences

# Five tokens in three steps: {1, 4}, {0}, {2, 3}
IDS, STEPS = [1, 2, 1, 1, 2], [1, 0, 2, 2, 0]
LOGP = [-0.5, -1.0, -2.0, -1.0, -0.2]
ENTROPY = [0.9, 0.3, 0.2, 0.4, 0.1]
# by step, worked out from the lines above
LAWS = {
    "uniform": [1 / 3, 1 / 3, 1 / 3],
    "entropy": [0.2 / 1.4, 0.9 / 1.4, 0.3 / 1.4],
    "uncertainty": [
        math.exp(x) / (math.exp(0.6) + math.exp(0.5) + math.exp(1.5)) for x in (0.6, 0.5, 1.5)
    ],
}


def one() -> Sequences:
    seqs = sequences([IDS], step_map=[STEPS])
    logp, entropy = torch.tensor([[LOGP], [ENTROPY]], dtype=torch.float64)
    return replace(seqs, rollout_logp=logp, entropy=entropy)


def whole(model: TinyDenoiser, seqs: Sequences) -> torch.Tensor:
    est = Trajectory(segments=None)
    return est(model, seqs, est.plan(seqs, random_rows(0))).sequence_logp[0]


def draws(p: Sequence[float], m: int) -> list[Case]:
    """Every way to draw one step from each of m equal parts of the cumulative distribution."""
    edges = list(itertools.accumulate(p, initial=0.0))
    parts: list[list[tuple[float, float]]] = []
    for j in range(m):
        inside = sorted({j / m, (j + 1) / m, *(e for e in edges if j / m < e < (j + 1) / m)})
        parts.append([((b - a) * m, (a + b) / 2 * m - j) for a, b in itertools.pairwise(inside)])
    return [
        (math.prod(chance for chance, _ in case), [u for _, u in case])
        for case in itertools.product(*parts)
    ]


@pytest.mark.parametrize("baseline", ["none", "one_step"])
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("by", LAWS)
def test_the_mean_over_all_draws_is_the_whole_trajectory(by, m, baseline) -> None:
    """Value and gradient."""
    model = TinyDenoiser()
    est = TrajectorySubset(m=m, by=by, baseline=baseline)
    found = expectation(est, model, one(), draws(LAWS[by], m))
    assert_same(model, found, whole(model, one()))


def test_m_of_two_by_hand() -> None:
    """Parts of 1.5 steps: 0.2 of the first is step 0, 0.9 of the second is step 2."""
    est = TrajectorySubset(m=2)
    plan = est.plan(one(), Scripted(torch.tensor([[0.2, 0.9]])))
    assert plan.weight.tolist() == [[[0, 1, 0, 0, 1], [0, 0, 1, 1, 0]]]
    assert plan.importance is not None
    assert plan.importance.tolist() == [[1.5, 1.5]]
    assert plan.completion.int().tolist() == [[[1, 1, 1, 1, 1], [0, 0, 1, 1, 0]]]


def test_a_step_drawn_twice_is_one_view_with_twice_the_importance() -> None:
    """0.9 of the first part and 0.1 of the second both are step 1."""
    model, est = TinyDenoiser(), TrajectorySubset(m=2)
    plan = est.plan(one(), Scripted(torch.tensor([[0.9, 0.1]])))
    assert plan.importance is not None
    assert plan.importance.tolist() == [[3.0, 0.0]]
    est(model, one(), plan)
    assert model.seen[0][:, 2:].tolist() == [[MASK, 2, MASK, MASK, 2]]
    uncorrected = replace(est, importance=False)
    plan = uncorrected.plan(one(), Scripted(torch.tensor([[0.9, 0.1]])))
    assert plan.importance is None
    assert plan.weight[0].tolist() == [[1, 0, 0, 0, 0], [0] * 5]


@pytest.mark.parametrize("baseline", ["none", "one_step"])
def test_as_many_draws_as_steps_are_every_step(baseline) -> None:
    """Whatever is drawn; rows with fewer steps than m included."""
    model = TinyDenoiser()
    seqs = sequences([IDS, IDS], step_map=[STEPS, [0, 0, 1, 1, 1]])
    est, every = TrajectorySubset(m=7, baseline=baseline), Trajectory(segments=None)
    for seed in range(5):
        found = est(model, seqs, est.plan(seqs, random_rows(seed, seed + 50)))
        expected = every(model, seqs, every.plan(seqs, random_rows(0, 0)))
        torch.testing.assert_close(found.token_logp, expected.token_logp, rtol=0, atol=1e-12)
        assert found.token_weight.tolist() == [[1] * 5] * 2


def test_the_one_step_view_is_the_control_variate() -> None:
    """Step 1 drawn from three: its token weighs 3 there and -2 in the first view, others 1."""
    est = TrajectorySubset(m=1, baseline="one_step")
    plan = est.plan(one(), Scripted(torch.tensor([[0.5]])))
    assert plan.weight.tolist() == [[[-2, 1, 1, 1, 1], [3, 0, 0, 0, 0]]]
    assert plan.completion.int().tolist() == [[[1, 1, 1, 1, 1], [1, 0, 1, 1, 0]]]
    assert plan.importance is None


@pytest.mark.parametrize(
    ("by", "m", "steps"),
    [("highest_entropy", 1, [1]), ("highest_entropy", 2, [1, 2]), ("first", 2, [0, 1]),
     ("last", 2, [2, 1]), ("last", 9, [2, 1, 0])],
)  # fmt: skip
def test_chosen_steps(by, m: int, steps: list[int]) -> None:
    plan = TrajectorySubset(m=m, by=by, importance=False).plan(one(), random_rows(0))
    found = [[STEPS[i] for i in view.nonzero()[:, 0]] for view in plan.weight[0]]
    assert [set(step) for step in found] == [{step} for step in steps]
    assert plan.importance is None


def test_steps_without_scored_tokens_are_never_chosen() -> None:
    """EOS is the second token; only steps 0 and 1 wrote before it."""
    seqs = sequences([[1, 0, 2, 1, 2]], step_map=[[1, 0, 2, 3, 4]])
    last = TrajectorySubset(m=2, by="last", importance=False, after_eos="mask")
    assert last.plan(seqs, random_rows(0)).weight[0].tolist() == [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]]
    for seed in range(20):
        plan = TrajectorySubset(m=1, after_eos="mask").plan(seqs, random_rows(seed))
        assert plan.importance is not None
        assert plan.importance.tolist() == [[2.0]]


def test_entropy_after_eos_does_not_count_if_that_is_not_scored() -> None:
    """EOS is the second token; the third, of step 1, is very uncertain."""
    seqs = sequences([[1, 0, 2]], step_map=[[0, 1, 1]])
    seqs = replace(seqs, entropy=torch.tensor([[0.5, 0.4, 9.0]]))
    est = TrajectorySubset(m=1, by="highest_entropy", importance=False)
    written = replace(est, after_eos="mask").plan(seqs, random_rows(0))
    assert written.weight.tolist() == [[[1, 0, 0]]]
    assert est.plan(seqs, random_rows(0)).weight.tolist() == [[[0, 1, 1]]]


def test_given_text_is_shown_and_never_drawn() -> None:
    """Tokens of step -1, and a decode that starts at step 3."""
    seqs = sequences([IDS], step_map=[[-1, 3, 4, -1, 4]])
    for seed in range(20):
        est = TrajectorySubset(m=1, baseline="one_step")
        plan = est.plan(seqs, random_rows(seed))
        assert plan.completion[0, 0].int().tolist() == [0, 1, 1, 0, 1]
        assert not plan.completion[0, :, [0, 3]].any()
        assert plan.weight.sum(1).tolist() == [[0, 1, 1, 0, 1]]


def test_a_subset_of_merged_steps() -> None:
    """Steps 0-1 and 2 in two segments; each is drawn half of the time, and weighs 2."""
    est, every = TrajectorySubset(m=1, segments=2), Trajectory(segments=2)
    model = TinyDenoiser()
    expected = every(model, one(), every.plan(one(), random_rows(0))).sequence_logp[0]
    assert_same(model, expectation(est, model, one(), draws([0.5, 0.5], 1)), expected)


def test_step_means_of_a_subset_have_the_mean_of_all_step_means() -> None:
    model = TinyDenoiser()
    est, every = TrajectorySubset(m=2, step_mean=True), Trajectory(segments=None, step_mean=True)
    expected = every(model, one(), every.plan(one(), random_rows(0))).sequence_logp[0]
    found = expectation(est, model, one(), draws(LAWS["uniform"], 2))
    assert_same(model, found, expected)


@pytest.mark.parametrize("rule", SAMPLERS)
def test_it_is_unbiased_where_the_trajectory_is_exact(rule: str) -> None:
    decoding = Decoding(rule=rule)
    for selection in (0.0, 1.0):
        est = TrajectorySubset(selection=selection)
        exact = Trajectory(segments=None, selection=selection).exact_for(decoding)
        assert est.unbiased_for(decoding) == exact
        assert not est.exact_for(decoding)
        biased = [
            replace(est, importance=False),
            replace(est, by="first", importance=False),
            replace(est, segments=4),
            replace(est, step_mean=True),
        ]
        assert not any(other.unbiased_for(decoding) for other in biased)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"m": 0}, "m is 0; use at least 1 step"),
        ({"by": "last"}, "by last draws nothing"),
        ({"by": "highest_entropy"}, "set importance to false, or by to one of uniform"),
        ({"baseline": "one_step", "step_mean": True}, "needs importance true and step_mean false"),
        ({"baseline": "one_step", "importance": False}, "needs importance true"),
        ({"segments": 0}, "segments is 0"),
        ({"selection": -1.0}, "use 0 for the tokens alone, 1 for the whole step"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrajectorySubset(**settings)


@pytest.mark.parametrize(
    ("by", "record"), [("entropy", "entropy"), ("uncertainty", "rollout_logp")]
)
def test_a_missing_record_is_explained(by, record: str) -> None:
    with pytest.raises(ValueError, match=rf"needs Sequences\.{record}, what the sampler did"):
        TrajectorySubset(by=by).plan(replace(one(), **{record: None}), random_rows(0))
