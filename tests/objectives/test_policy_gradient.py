"""The ratio-free policy gradient, SPG's sign rule, and wd1's weights."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from rl.advantages import GroupAdvantage
from rl.objectives import PolicyGradient, SelfNormalized

from .cases import case, estimate, gradients, tensor

LOWER, UPPER = [[-2.0, -4.0], [-3.0, -6.0]], [[-1.0, -3.5], [-2.0, -4.0]]


@pytest.mark.parametrize(
    ("settings", "loss", "slopes"),
    [
        # A = 2 in the first row, -3 in the second; sums -6 and, by the rule, -9, -6, -8.1
        ({}, -2 * -6 + 3 * -9, [-2, 3, 0]),
        ({"negative": "upper"}, -2 * -6 + 3 * -6, [-2, 0, 3]),
        ({"negative": "mixture"}, -2 * -6 + 3 * -7.5, [-2, 1.5, 1.5]),
        ({"negative": "mixture", "mixture_weight": 0.3}, -2 * -6 + 3 * -8.1, [-2, 2.1, 0.9]),
    ],
)
@pytest.mark.parametrize("kind", [PolicyGradient, SelfNormalized])
def test_the_sign_rule(kind: Any, settings: Any, loss: float, slopes: list[float]) -> None:
    """slopes: of the first row's lower bound, and of the second's lower and upper bound."""
    objective = kind(aggregation="sequence_sum", **settings)
    lower, upper = (tensor(x).requires_grad_() for x in (LOWER, UPPER))
    new = replace(estimate(LOWER), token_logp=lower, upper_logp=upper)
    out = case(new, [2.0, -3.0], old=new.detach()).apply(objective)
    assert out.loss.item() == pytest.approx(loss / 2, abs=1e-12)
    by_lower, by_upper = torch.autograd.grad(out.loss, (lower, upper), materialize_grads=True)
    found = [by_lower[0], by_lower[1], by_upper[1], by_upper[0]]
    expected = [torch.full((2,), x / 2, dtype=torch.float64) for x in (*slopes, 0.0)]
    torch.testing.assert_close(torch.stack(found), torch.stack(expected), rtol=0, atol=1e-12)


def test_the_sign_rule_is_per_token_where_advantages_are() -> None:
    new = estimate([LOWER[0]], upper=[UPPER[0]])
    objective = PolicyGradient(negative="upper", aggregation="sequence_sum")
    out = case(new, [[1.0, -1.0]]).apply(objective)
    assert out.loss.item() == pytest.approx(2.0 - 3.5, abs=1e-12)


def test_an_upper_bound_must_be_there() -> None:
    for objective in (PolicyGradient(negative="upper"), SelfNormalized(negative="mixture")):
        with pytest.raises(ValueError, match="this estimator gives no upper bound; use the estim"):
            case(estimate(LOWER), [1.0, -1.0]).apply(objective)


@pytest.mark.parametrize("kind", [PolicyGradient, SelfNormalized])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mixture_weight": 0.3}, "mixture_weight is 0.3, but negative is 'lower'; it belongs to"),
        ({"negative": "mixture", "mixture_weight": 1.0}, "is 1.0; use a number between 0 and 1"),
        ({"negative": "mixture", "mixture_weight": 0.0}, "is 0.0; use a number between 0 and 1"),
    ],
)
def test_settings_out_of_range_are_refused(kind: Any, settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**settings)


def test_importance_and_masks_weigh_terms() -> None:
    new = estimate([[-1.0, -2.0, -4.0]], [[1, 0, 1]], view=[[0, 1, 1]],
                   importance=[[3.0, 5.0]], choice=[[-0.5, -0.25]])  # fmt: skip
    out = case(new, [2.0]).apply(PolicyGradient(aggregation="sequence_sum"))
    assert out.loss.item() == pytest.approx(2 * (3 * 1 + 5 * 4 + 3 * 0.5 + 5 * 0.25), abs=1e-12)


def test_wd1_is_a_weighted_likelihood_of_the_group() -> None:
    """-sum_j (softmax(A)_j - softmax(-A)_j) log p_j, for one prompt."""
    rewards = tensor([1.0, 0.0, 0.5])
    advantage = GroupAdvantage(scale="none", weighting="softmax")
    logp = tensor([[-1.0, -2.0], [-3.0, -4.0], [-0.5, -0.25]])
    c = case(estimate(logp), advantage(rewards, 3))
    centred = rewards - 0.5
    weights = centred.softmax(0) - (-centred).softmax(0)
    found = 3 * c.apply(PolicyGradient(aggregation="sequence_sum")).loss
    expected = -(weights * logp.sum(1)).sum()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    (token,) = gradients(PolicyGradient(aggregation="sequence_sum"), c)
    torch.testing.assert_close(3 * token, -weights[:, None].expand(3, 2), rtol=0, atol=1e-12)
