"""GDSD's regression by hand."""

import math
from typing import Any

import pytest
import torch

from rl.objectives import Squared

from .cases import case, estimate, gradients, tensor, values

# sequence differences 1.2 and -2.4; lengths 3 and 4 of 4
SCORED = torch.tensor([[True, True, True, False], [True, True, True, True]])
NEW = estimate([[0.7, 0.5, 0.0, 0.0], [-0.6, -0.6, -0.6, -0.6]], SCORED)


@pytest.mark.parametrize(
    ("settings", "losses", "slopes"),
    [
        # (d - A / 2)^2 with A = 1, -1
        ({}, [(0.3 - 0.5) ** 2, (-0.6 + 0.5) ** 2], [-0.4 / 4, -0.2 / 4]),
        ({"normalize_ratio": "scored"}, [(0.4 - 0.5) ** 2, 0.01], [-0.2 / 3, -0.2 / 4]),
        # held at log 1.2 and log 0.8
        ({"stop": 0.2}, [(math.log(1.2) - 0.5) ** 2, (math.log(0.8) + 0.5) ** 2], [0, 0]),
        # d is inside log 1.5, and would not be if the sum were held: stop after the division
        ({"stop": 0.5}, [(0.3 - 0.5) ** 2, (-0.6 + 0.5) ** 2], [-0.4 / 4, -0.2 / 4]),
    ],
)
def test_values_and_gradients(settings: Any, losses: list[float], slopes: list[float]) -> None:
    objective, c = Squared(psi=0.5, **settings), case(NEW, [1.0, -1.0], scored=SCORED)
    out = c.apply(objective)
    assert out.loss.item() == pytest.approx(sum(losses) / 2, abs=1e-12)
    (token,) = gradients(objective, c)
    expected = tensor(slopes)[:, None] / 2 * SCORED
    torch.testing.assert_close(token, expected, rtol=0, atol=1e-12)


def test_metrics() -> None:
    out = case(NEW, [1.0, -1.0]).apply(Squared(stop=0.2))
    mean = (math.exp(0.3) + math.exp(-0.6)) / 2
    expected = {"ratio/mean": mean, "clip_ratio/low": 0.5, "clip_ratio/high": 0.5}
    assert values(out) == pytest.approx(expected, abs=1e-12)
    inside = case(NEW, [1.0, -1.0]).apply(Squared(stop=0.9))
    assert values(inside)["clip_ratio/low"] == values(inside)["clip_ratio/high"] == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"psi": 0.0}, "psi is 0.0; it must be positive"),
        ({"stop": 1.0}, "stop is 1.0; it must be between 0 and 1, or null for none"),
        ({"stop": 0.0}, "stop is 0.0; it must be between 0 and 1"),
    ],
)
def test_settings_out_of_range_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Squared(**settings)
