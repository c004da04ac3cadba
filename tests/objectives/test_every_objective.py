"""What holds for every objective in every setting."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from estimators import Estimate
from rl.objectives import (
    OBJECTIVES,
    Clipped,
    Kto,
    LinearBound,
    Objective,
    PolicyGradient,
    Preference,
    SelfNormalized,
    Squared,
    Weighted,
)

from .cases import (
    EVERY,
    Case,
    case,
    estimate,
    gradients,
    leaves,
    on_policy,
    random_case,
    rebuild,
    tensor,
    totals_of,
)

AGGREGATIONS: list[Any] = ["token_mean", "sequence_mean", "constant", "sequence_sum"]
EACH = pytest.mark.parametrize("name", EVERY)
DETACHED = [name for name in EVERY if "cispo" in name or "self_normalized" in name]
BY_SEQUENCE = [n for n, o in EVERY.items() if isinstance(o, Weighted | LinearBound | Squared | Kto)]
BY_SEQUENCE += [n for n in EVERY if n.startswith("preference")]
BY_SEQUENCE += [n for n, o in EVERY.items() if isinstance(o, Clipped) and o.level == "sequence"]


def test_the_registry() -> None:
    assert {
        "clipped": Clipped,
        "policy_gradient": PolicyGradient,
        "weighted": Weighted,
        "linear_bound": LinearBound,
        "self_normalized": SelfNormalized,
        "squared": Squared,
        "preference": Preference,
        "kto": Kto,
    } == OBJECTIVES
    assert {type(objective) for objective in EVERY.values()} == set(OBJECTIVES.values())


def close(a: Any, b: Any) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@EACH
@pytest.mark.parametrize("choice", [False, True])
def test_shares_of_micro_batches_add_up_in_any_order(name: str, choice: bool) -> None:
    objective, c = EVERY[name], random_case(importance=True, choice=choice)
    statistic = c.statistic(objective)
    whole = c.apply(objective, totals_of(c.scored, statistic))
    assert whole.loss.abs() > 1e-6
    cuts = [[[0, 1, 2], [3, 4, 5]], [[5, 3, 4], [2, 0, 1]], [[4, 1, 2, 0, 5, 3]]]
    if not objective.whole_groups:
        cuts += [[[5], [3, 0], [1, 4, 2]]]
    for cut in cuts:
        pieces = [c.rows(index) for index in cut]
        if objective.has_statistic:
            assert sum(p.statistic(objective) for p in pieces) == pytest.approx(statistic)
        parts = [piece.apply(objective, totals_of(c.scored, statistic)) for piece in pieces]
        close(torch.stack([part.loss for part in parts]).sum(), whole.loss)
        for metric, (total, count) in whole.metrics.items():
            sums = [part.metrics[metric] for part in parts]
            close(sum(n for _, n in sums), count)
            close(sum(t for t, _ in sums), total)


@pytest.mark.parametrize("name", [name for name in EVERY if name not in DETACHED])
@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_gradients_are_those_of_the_value(name: str, noise: float) -> None:
    """By finite differences, inside and outside the clips; the statistic has no gradient."""
    objective = EVERY[name]
    c = random_case(3, importance=True, choice=True, noise=noise)
    totals = totals_of(c.scored, c.statistic(objective))
    choice = c.new.choice_logp
    assert choice is not None

    def loss(step: Sequence[Tensor]) -> Tensor:
        moved = rebuild(c.new, c.new.token_logp + step[0], choice + step[1])
        return replace(c, new=moved).apply(objective, totals).loss

    slopes = gradients(objective, c)
    g = torch.Generator().manual_seed(0)
    for _ in range(3):
        way = [torch.randn(x.shape, generator=g, dtype=x.dtype) for x in slopes]
        up, down = loss([1e-6 * x for x in way]), loss([-1e-6 * x for x in way])
        expected = torch.stack([(a * b).sum() for a, b in zip(slopes, way, strict=True)]).sum()
        torch.testing.assert_close((up - down) / 2e-6, expected, rtol=1e-6, atol=1e-8)


FIRST_ORDER = [name for name in EVERY if EVERY[name].linear_when != "never"]
FIRST_ORDER = [n for n in FIRST_ORDER if "squared" not in n and "KL" not in n and n != "distill"]
FIRST_ORDER = [n for n in FIRST_ORDER if "upper" not in n and "mixture" not in n]


@pytest.mark.parametrize("name", FIRST_ORDER)
@pytest.mark.parametrize(
    ("aggregation", "importance"),
    [("token_mean", False), ("sequence_mean", True), ("constant", True), ("sequence_sum", True)],
)
def test_on_policy_they_are_all_the_policy_gradient(name, aggregation, importance) -> None:
    """- A x importance, times the row's share; so the ratio is 1, and has its gradient."""
    objective = replace(EVERY[name], aggregation=aggregation)
    c = on_policy(random_case(importance=importance, choice=True))
    n = c.scored.sum(-1, keepdim=True).double()
    share = {
        "token_mean": torch.full_like(n, 1 / c.scored.sum().item()),
        "sequence_mean": 1 / (6 * n),
        "constant": torch.full_like(n, 1 / (6 * 5)),
        "sequence_sum": torch.full_like(n, 1 / 6),
    }[aggregation]
    weight = torch.ones(6, 3, dtype=torch.float64) if c.new.importance is None else c.new.importance
    token, choice = gradients(objective, c)
    close(token, -c.advantages[:, None] * share * c.new.token_weight * c.new.token_mask)
    close(choice, -c.advantages[:, None] * share * weight)


@pytest.mark.parametrize("name", ["squared", "squared stop"])
def test_on_policy_a_regression_is_a_small_policy_gradient(name: str) -> None:
    """d/d log p of (d/c - psi A)^2 at d = 0 is -2 psi A / c."""
    c = on_policy(random_case(importance=True))
    size = 5 if name == "squared" else c.scored.sum(-1, keepdim=True)
    (token,) = gradients(EVERY[name], c)
    expected = -2 * 0.5 * c.advantages[:, None] / size * c.new.token_weight * c.new.token_mask
    close(token, expected / 6)


@EACH
@pytest.mark.parametrize("difference", [-500.0, 30.0, 500.0])
def test_extreme_log_ratios_give_finite_gradients(name: str, difference: float) -> None:
    """In float32, where exp(89) is infinite and 0 * inf in a backward pass would be NaN."""
    c = random_case(2)
    c = replace(c, new=rebuild(c.new, c.new.token_logp + difference), ref=c.old)
    c = as_float32(c)
    moved, tensors = leaves(c)
    out = moved.apply(EVERY[name])
    assert out.loss.isfinite()
    grads = torch.autograd.grad(out.loss, tensors, allow_unused=True)
    assert all(grad.isfinite().all() for grad in grads if grad is not None)
    assert all((total / count).isfinite() for total, count in out.metrics.values() if count)


def as_float32(c: Case) -> Case:
    def cast(x: Estimate) -> Estimate:
        return replace(
            x,
            token_logp=x.token_logp.float(),
            view_logp=x.view_logp.float(),
            upper_logp=x.upper_logp.float(),
        )

    return replace(
        c, new=cast(c.new), old=cast(c.old), ref=cast(c.ref), advantages=c.advantages.float()
    )


def garbage(x: Estimate) -> Estimate:
    return rebuild(x, torch.linspace(-9, -3, 30, dtype=torch.float64).view(6, 5))


@EACH
def test_only_what_is_declared_is_used(name: str) -> None:
    objective, c = EVERY[name], random_case()
    loss = c.apply(objective).loss
    other_old = replace(c, old=garbage(c.old)).apply(objective).loss
    other_ref = replace(c, ref=garbage(c.ref)).apply(objective).loss
    if not objective.reweighs:  # which happened before
        assert (other_old != loss) == objective.uses_old
        assert (other_ref != loss) == objective.uses_reference
    if not objective.whole_groups:
        assert replace(c, groups=None).apply(objective).loss == loss
    if objective.uses_reference and not objective.reweighs:
        with pytest.raises(ValueError, match="needs an estimate of the reference policy"):
            replace(c, ref=None).apply(objective)


@pytest.mark.parametrize("name", [n for n in EVERY if n != "preference extremes"])
def test_rows_with_advantage_0_are_silent_where_it_says_so(name: str) -> None:
    """Row 4; its group has better and worse completions."""
    objective = replace(EVERY[name], beta=0.0, distill=0.0)
    (token,) = gradients(objective, random_case())
    assert token.abs().max() > 1e-6
    assert (token[4] == 0).all() == objective.zero_is_silent


@EACH
def test_advantages_per_token_equal_rows_or_are_refused(name: str) -> None:
    objective, c = EVERY[name], random_case(importance=True)
    per_token = replace(c, advantages=c.advantages[:, None].expand(6, 5).contiguous())
    if name in BY_SEQUENCE:
        with pytest.raises(ValueError, match="these advantages are per token, but this objective"):
            per_token.apply(objective)
    else:
        close(per_token.apply(objective).loss, c.apply(objective).loss)


def test_advantages_per_token_weigh_their_own_token() -> None:
    c = case(estimate([[0.0, 0.0, 0.0]], [[True, True, False]]), [[2.0, -3.0, 7.0]])
    for objective in (Clipped(), PolicyGradient(), SelfNormalized()):
        (token,) = gradients(replace(objective, aggregation="sequence_sum"), c)
        close(token, tensor([[-2.0, 3.0, 0.0]]))


@pytest.mark.parametrize(
    "objective",
    [Clipped(), Clipped(epsilon_choice=0.1), PolicyGradient(), SelfNormalized()],
    ids=["clipped", "clipped apart", "policy_gradient", "self_normalized"],
)
def test_a_choice_has_the_mean_advantage_of_its_tokens(objective: Objective) -> None:
    new = estimate([[0.0, 0.0, 0.0]], view=[[0, 0, 1]], choice=[[-0.5, -0.25]])
    c = case(new, [[2.0, -3.0, 7.0]], old=new)
    token, choice = gradients(replace(objective, aggregation="sequence_sum"), c)
    close(token, tensor([[-2.0, 3.0, -7.0]]))
    close(choice, tensor([[0.5, -7.0]]))


@EACH
def test_metrics_carry_no_gradient(name: str) -> None:
    c, _ = leaves(random_case())
    out = c.apply(EVERY[name])
    assert out.loss.requires_grad
    assert not any(t.requires_grad or n.requires_grad for t, n in out.metrics.values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beta": -0.1}, "beta is -0.1; use 0 for no KL term, or a positive weight"),
        ({"beta": float("nan")}, "beta is nan; use 0"),
        ({"distill": -1.0}, "distill is -1.0; use 0 for none, or a positive weight"),
    ],
)
@pytest.mark.parametrize("kind", OBJECTIVES.values(), ids=OBJECTIVES)
def test_shared_settings_out_of_range_are_refused(kind, settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**settings)
