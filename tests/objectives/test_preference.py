"""DPO within groups: which pairs, their values, and their gradients."""

import math
from typing import Any

import pytest
import torch

from rl.objectives import Preference

from .cases import case, estimate, gradients, tensor, values


def loss_of(margin: float, smoothing: float = 0.0) -> float:
    def nll(x: float) -> float:
        return math.log1p(math.exp(-x))

    return (1 - smoothing) * nll(margin) + smoothing * nll(-margin)


# log-ratios to the reference; two groups, their rows mixed
X = [3.0, 1.0, -2.0, 0.5, 4.0]
GROUPS = torch.tensor([7, 3, 7, 3, 7])
NEW = estimate([[x - 1, 1.0] for x in X])


def step(advantages: list[float], **settings: Any) -> Any:
    return case(NEW, advantages, groups=GROUPS).apply(Preference(beta_dpo=0.5, **settings))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_all_pairs(smoothing: float) -> None:
    """Group 7: A = 1, 0, -1 for x = 3, 4, -2; group 3: A = -1, 1 for x = 1, 0.5."""
    out = step([1.0, -1.0, -1.0, 1.0, 0.0], smoothing=smoothing)
    first = [loss_of(0.5 * d, smoothing) for d in (3 - 4, 3 + 2, 4 + 2)]
    second = loss_of(0.5 * (0.5 - 1), smoothing)
    assert out.loss.item() == pytest.approx((3 * sum(first) / 3 + 2 * second) / 5, abs=1e-12)
    margin = 0.5 * (-1 + 5 + 6 - 0.5) / 4
    expected = {"preference/accuracy": 2 / 4, "preference/margin": margin}
    assert values(out) == pytest.approx(expected, abs=1e-12)


def test_extremes() -> None:
    out = step([1.0, -1.0, -1.0, 1.0, 0.0], pairs="extremes")
    expected = (3 * loss_of(0.5 * 5) + 2 * loss_of(-0.25)) / 5
    assert out.loss.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("pairs", ["all", "extremes"])
def test_ties_are_no_pairs_and_equal_groups_no_loss(pairs: Any) -> None:
    """Group 7: rows 0 and 4 beat row 2; group 3 has equal advantages."""
    out = step([1.0, 0.3, -1.0, 0.3, 1.0], pairs=pairs)
    expected = 3 * (loss_of(0.5 * 5) + loss_of(0.5 * 6)) / 2 / 5
    assert out.loss.item() == pytest.approx(expected, abs=1e-12)


def test_a_step_without_pairs_has_no_loss_and_no_gradient() -> None:
    c = case(NEW, [0.0] * 5, groups=GROUPS)
    assert c.apply(Preference()).loss.item() == 0
    assert gradients(Preference(), c)[0].abs().max() == 0


def test_recorded_pairs_make_plain_dpo() -> None:
    """-log sigmoid(beta [(new - ref)_w - (new - ref)_l]), the mean over two pairs."""
    new, ref = (
        estimate([[-5.0], [-6.0], [-7.0], [-3.0]]),
        estimate([[-5.5], [-5.0], [-8.0], [-4.5]]),
    )
    c = case(new, [1.0, -1.0, -1.0, 1.0], ref=ref, groups=torch.tensor([0, 0, 1, 1]))
    objective = Preference(beta_dpo=0.1)
    expected = (loss_of(0.1 * (0.5 + 1)) + loss_of(0.1 * (1.5 - 1))) / 2
    assert c.apply(objective).loss.item() == pytest.approx(expected, abs=1e-12)
    (token,) = gradients(objective, c)
    pull = [0.1 / (1 + math.exp(m)) / 2 for m in (0.15, 0.05)]
    slopes = tensor([[-pull[0]], [pull[0]], [pull[1]], [-pull[1]]])
    torch.testing.assert_close(token, slopes, rtol=0, atol=1e-12)


def test_groups_must_be_known() -> None:
    with pytest.raises(ValueError, match="between the completions of a group; got no groups"):
        case(NEW, [1.0] * 5, groups=None).apply(Preference())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beta_dpo": 0.0}, "beta_dpo is 0.0; it must be positive"),
        ({"smoothing": 0.5}, "smoothing is 0.5; it is the share of wrong preferences, from 0 to"),
        ({"smoothing": -0.1}, "smoothing is -0.1; it is the share"),
    ],
)
def test_settings_out_of_range_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Preference(**settings)
