"""KTO: both labels, and each baseline, by hand."""

import math
from typing import Any

import pytest
import torch

from rl.objectives import Kto

from .cases import case, estimate, gradients, tensor, totals_of, values


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


# x = 0.5 * (2, -1, 3, 4): mean 1; the last row has no label
NEW = estimate([[1.5, 0.5], [-1.0, 0.0], [1.0, 2.0], [4.0, 0.0]])
LABELS = [0.2, -3.0, -1.0, 0.0]
DOWN = estimate([[-1.5, -0.5], [1.0, 0.0], [-1.0, -2.0], [-4.0, 0.0]])  # mean -1


@pytest.mark.parametrize(
    ("baseline", "z", "z_down"), [("kl", 1.0, 0.0), ("mean", 1.0, -1.0), ("zero", 0.0, 0.0)]
)
def test_every_branch(baseline: Any, z: float, z_down: float) -> None:
    objective = Kto(beta_kto=0.5, baseline=baseline, desirable=2.0, undesirable=0.7)
    for new, sign, base in ((NEW, 1, z), (DOWN, -1, z_down)):
        x = [sign * 1.0, sign * -0.5, sign * 1.5]
        c = case(new, LABELS)
        good = 2.0 * (1 - sigmoid(x[0] - base))
        bad = 0.7 * (2 - sigmoid(base - x[1]) - sigmoid(base - x[2]))
        assert c.apply(objective).loss.item() == pytest.approx((good + bad) / 4, abs=1e-12)
        (token,) = gradients(objective, c)  # as if the baseline were a constant
        slopes = [sigmoid(v - base) * sigmoid(base - v) for v in x]
        row = tensor([-2 * slopes[0], 0.7 * slopes[1], 0.7 * slopes[2], 0.0]) * 0.5 / 4
        torch.testing.assert_close(token, row[:, None].expand(4, 2), rtol=0, atol=1e-12)


def test_the_baseline_is_that_of_the_step() -> None:
    c = case(NEW, LABELS)
    assert c.statistic(Kto(beta_kto=0.5)) == pytest.approx(4.0, abs=1e-12)
    totals = totals_of(torch.ones(8, 2, dtype=torch.bool), statistic=16.0)  # mean x is 2
    found = c.rows([0]).apply(Kto(beta_kto=0.5), totals).loss.item()
    assert found == pytest.approx((1 - sigmoid(1 - 2)) / 8, abs=1e-12)


def test_accuracy_is_over_labelled_rows() -> None:
    """With z = 0: x = 1 is right, -0.5 is right, 1.5 is wrong."""
    out = case(NEW, LABELS).apply(Kto(beta_kto=0.5, baseline="zero"))
    assert values(out) == pytest.approx({"preference/accuracy": 2 / 3})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beta_kto": -1.0}, "beta_kto is -1.0; it must be positive"),
        ({"undesirable": -1.0}, "undesirable is -1.0; these weights cannot be negative"),
        ({"desirable": -1.0}, "desirable is -1.0 and undesirable is 1.0"),
    ],
)
def test_settings_out_of_range_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Kto(**settings)
