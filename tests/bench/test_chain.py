"""The Markov chain: its predictions are exact, and exact estimators have no noise on it."""

import itertools

import pytest
import torch

from estimators import Elbo, LeftToRight, MeanField, Trajectory, TrajectorySubset
from scripts.bench.chain import ChainDenoiser, V, bench_chain, make_chain, measure_noise

SHORT = 4


def predictions(denoiser: ChainDenoiser, shown: list[int]) -> torch.Tensor:
    """log p(v | visible) of every masked position, in order."""
    ids = torch.tensor([[7, *shown]])
    index = (ids[0] == V).nonzero()[:, 0]
    attention = torch.ones_like(ids, dtype=torch.bool)
    (logits,) = denoiser(ids, attention, index, lambda logits, entries, row: (logits,))
    return logits.log_softmax(-1)


def test_predictions_are_conditionals_of_the_joint() -> None:
    """For every mask of a completion, by summing over all 6^4 completions."""
    chain = make_chain(SHORT, completions=1, sharpness=1.5)
    step = chain.denoiser.theta.softmax(-1)
    joint = torch.ones(V, V, V, V, dtype=torch.float64)
    for place in range(SHORT):
        before = step[:1] if place == 0 else step
        shape = [1] * SHORT
        shape[place] = V
        if place:
            shape[place - 1] = V
        joint = joint * before.reshape(shape)
    assert joint.sum().item() == pytest.approx(1, abs=1e-12)
    o = chain.completion[0].tolist()
    for masked in itertools.product([False, True], repeat=SHORT):
        if not any(masked):
            continue
        found = predictions(
            chain.denoiser, [V if m else token for m, token in zip(masked, o, strict=True)]
        )
        places = [place for place in range(SHORT) if masked[place]]
        visible = joint[tuple(slice(None) if m else t for m, t in zip(masked, o, strict=True))]
        for row, number in zip(found, range(len(places)), strict=True):
            others = [axis for axis in range(len(places)) if axis != number]
            marginal = visible.sum(others) if others else visible
            torch.testing.assert_close(row.exp(), marginal / marginal.sum(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("estimator", [Trajectory(segments=None), LeftToRight()])
def test_the_chain_rule_is_exact_in_value_and_gradient(estimator) -> None:
    row = measure_noise("exact", estimator, make_chain(24, completions=4))
    assert row.forwards == 24
    assert abs(row.bias_per_token) < 1e-12
    assert row.std_per_token == 0
    assert row.relvar < 1e-20
    assert row.cosine == pytest.approx(1, abs=1e-12)
    assert row.shared == 0
    assert row.independent == 0


def test_noise_is_measured_and_bias_is_not_noise() -> None:
    """One step has bias alone; an ELBO, which equals log q(o) here, has noise alone."""
    chain = make_chain(24, completions=8)
    step = measure_noise("mean_field", MeanField(), chain)
    assert step.bias_per_token < -0.1
    assert step.std_per_token == 0
    assert step.cosine < 0.9
    elbo = measure_noise("elbo", Elbo(), chain, plans=200)
    more = measure_noise("elbo, 4", Elbo(samples=4), chain, plans=200)
    assert abs(elbo.bias_per_token) < 4 * elbo.std_per_token / (8 * 200) ** 0.5
    assert more.std_per_token == pytest.approx(elbo.std_per_token / 2, rel=0.2)
    assert more.relvar == pytest.approx(elbo.relvar / 4, rel=0.4)
    assert elbo.shared < elbo.independent / 10


def test_the_change_of_the_policy_is_the_same_for_all() -> None:
    compared = {"a": Elbo(), "b": TrajectorySubset(m=2)}
    rows = bench_chain(compared, (8, 12), plans=3)
    assert [(row.estimator, row.length) for row in rows] == [
        ("a", 8),
        ("b", 8),
        ("a", 12),
        ("b", 12),
    ]
    assert rows[0].true_change == rows[1].true_change > 0


def test_the_jacobian_is_the_slope_of_the_table() -> None:
    """Central differences for two of the parameters, over all powers."""
    theta = make_chain(SHORT, sharpness=1.5).denoiser.theta
    jacobian = ChainDenoiser(theta, 12).jacobian
    for parameter in ((0, 3), (4, 4)):
        step = torch.zeros_like(theta)
        step[parameter] = 1e-6
        up, down = ChainDenoiser(theta + step, 12).table, ChainDenoiser(theta - step, 12).table
        slope = jacobian[:, parameter[0] * V + parameter[1]]
        torch.testing.assert_close(slope, (up - down) / 2e-6, rtol=0, atol=1e-8)
