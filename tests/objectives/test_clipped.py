"""Hand-computed values for every branch of the clipped surrogate, and its exact gradients."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from estimators import Estimate
from rl.objectives import OBJECTIVES, Clipped, ObjectiveOutput, Totals

BOTH_LEVELS = pytest.mark.parametrize("level", ["token", "sequence"])
AGGREGATIONS = ["token_mean", "sequence_mean", "constant"]


def estimate(logp: Any, mask: Any = None) -> Estimate:
    token_logp = torch.as_tensor(logp, dtype=torch.float64)
    everywhere = torch.ones_like(token_logp, dtype=torch.bool)
    return Estimate(
        token_logp=token_logp, token_mask=everywhere if mask is None else torch.tensor(mask)
    )


def ratios(*rows: list[float]) -> Estimate:
    return estimate(torch.tensor(rows, dtype=torch.float64).log())


def like(new: Estimate) -> Estimate:
    return replace(new, token_logp=torch.zeros_like(new.token_logp))


def apply(
    objective: Clipped,
    new: Estimate,
    advantages: list[float],
    *,
    ref: Estimate | None = None,
    scored: Tensor | None = None,
    totals: Totals | None = None,
) -> ObjectiveOutput:
    """With old log-probs of 0, so that `new` holds log-ratios."""
    scored = torch.ones_like(new.token_mask) if scored is None else scored
    totals = totals or Totals(
        tokens=float(scored.sum()), sequences=len(scored), length=scored.shape[1]
    )
    advantage = torch.tensor(advantages, dtype=torch.float64)
    return objective(new, like(new), ref, advantage, scored, totals)


# ratio, advantage -> -min(r A, clip(r, 0.8, 1.3) A), clipped below, clipped above
BRANCHES = [
    (1.5, 1.0, -1.3, 0, 1),  # good and already likelier: the gain is capped
    (0.5, 1.0, -0.5, 0, 0),  # good but less likely: not capped, pull it up
    (0.5, -1.0, 0.8, 1, 0),  # bad and already unlikelier: capped
    (1.5, -1.0, 1.5, 0, 0),  # bad but likelier: not capped, push it down
    (1.25, 2.0, -2.5, 0, 0),  # inside, above 1; outside if epsilon_high were epsilon
    (0.9, -2.0, 1.8, 0, 0),  # inside, below 1
    (1.5, 0.0, 0.0, 0, 0),
]


@BOTH_LEVELS
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize(("ratio", "advantage", "loss", "low", "high"), BRANCHES)
def test_every_branch(ratio, advantage, loss, low, high, level, aggregation) -> None:
    objective = Clipped(level=level, epsilon=0.2, epsilon_high=0.3, aggregation=aggregation)
    out = apply(objective, ratios([ratio]), [advantage])
    assert out.loss.item() == pytest.approx(loss, abs=1e-9)
    values = {name: (total / count).item() for name, (total, count) in out.metrics.items()}
    expected = {"ratio/mean": ratio, "clip_ratio/low": low, "clip_ratio/high": high}
    assert values == pytest.approx(expected, abs=1e-9)


@BOTH_LEVELS
def test_the_upper_bound_is_epsilon_unless_given(level: Any) -> None:
    out = apply(Clipped(level=level, epsilon=0.2), ratios([1.25]), [2.0])
    assert out.loss.item() == pytest.approx(-2.4, abs=1e-9)


def test_a_sequence_ratio_is_the_geometric_mean_over_scored_tokens() -> None:
    """Ratios 4, 1/2, (1), [8]: the third is not masked by this plan, the fourth not scored."""
    logs = torch.tensor([[4.0, 0.5, 1.0, 1.0]], dtype=torch.float64).log()
    new = estimate(logs, [[True, True, False, False]])
    scored = torch.tensor([[True, True, True, False]])
    objective = Clipped(level="sequence", epsilon=0.9, epsilon_high=9.0)
    out = apply(objective, new, [3.0], scored=scored)
    assert out.loss.item() == pytest.approx(-3 * 2 ** (1 / 3), abs=1e-9)
    total, count = out.metrics["ratio/mean"]
    assert count.item() == 3
    assert total.item() == pytest.approx(3 * 2 ** (1 / 3), abs=1e-9)


# two rows, 1 and 3 scored tokens of 4: token losses are -ratio * advantage, far from the clip
ROWS = ratios([1.1, 1.0, 1.0, 1.0], [0.9, 1.2, 1.05, 1.0])
SCORED = torch.tensor([[True, False, False, False], [True, True, True, False]])


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("token_mean", -(1.1 * 2 + (0.9 + 1.2 + 1.05) * -1) / 4),
        ("sequence_mean", -(1.1 * 2 + (0.9 + 1.2 + 1.05) / 3 * -1) / 2),
        ("constant", -(1.1 * 2 + (0.9 + 1.2 + 1.05) * -1) / (2 * 4)),
    ],
)
def test_aggregations_by_hand(aggregation: Any, expected: float) -> None:
    new = replace(ROWS, token_mask=SCORED)
    out = apply(Clipped(epsilon=0.5, aggregation=aggregation), new, [2.0, -1.0], scored=SCORED)
    assert out.loss.item() == pytest.approx(expected, abs=1e-9)


def test_token_means_divide_by_scored_tokens_not_by_masked_ones() -> None:
    """The plan masked one of two scored tokens: half the loss, so that its mean is right."""
    new = estimate([[0.0, 0.0]], [[True, False]])
    assert apply(Clipped(), new, [1.0]).loss.item() == pytest.approx(-0.5, abs=1e-12)


@BOTH_LEVELS
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("kl", ["k1", "k2", "k3"])
def test_shares_of_micro_batches_add_up_to_the_loss_of_the_step(level, aggregation, kl) -> None:
    g = torch.Generator().manual_seed(0)
    logp = torch.randn(6, 4, generator=g, dtype=torch.float64) / 3
    scored = torch.rand(6, 4, generator=g) < 0.7
    scored[:, 0] = True
    new, ref = estimate(logp, (scored & (logp > -0.3)).tolist()), estimate(-logp / 2)
    objective = Clipped(level=level, aggregation=aggregation, kl=kl, beta=0.1)
    totals = Totals(tokens=float(scored.sum()), sequences=6, length=4)
    advantages = [1.0, -1.0, 0.5, 0.0, 2.0, -2.0]
    whole = apply(objective, new, advantages, ref=ref, scored=scored, totals=totals)
    for rows in ([[0, 1, 2], [3, 4, 5]], [[5], [3, 0], [1, 4, 2]]):
        parts = [
            apply(
                objective,
                new.rows(torch.tensor(index)),
                [advantages[i] for i in index],
                ref=ref.rows(torch.tensor(index)),
                scored=scored[index],
                totals=totals,
            )
            for index in rows
        ]
        loss = torch.stack([part.loss for part in parts]).sum()
        torch.testing.assert_close(loss, whole.loss, rtol=0, atol=1e-12)
        for name, (total, count) in whole.metrics.items():
            sums = [part.metrics[name] for part in parts]
            assert sum(c for _, c in sums) == count
            torch.testing.assert_close(sum(t for t, _ in sums), total, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("level", "aggregation", "share"),
    [
        # per token: 1 / all 4 scored tokens; 1 / 2 rows / own tokens; 1 / 2 rows / length 4
        ("token", "token_mean", [1 / 4, 1 / 4]),
        ("token", "sequence_mean", [1 / 2, 1 / 6]),
        ("token", "constant", [1 / 8, 1 / 8]),
        ("sequence", "token_mean", [1 / 4, 1 / 4]),
        ("sequence", "sequence_mean", [1 / 2, 1 / 6]),
        ("sequence", "constant", [1 / 8, 1 / 8]),
    ],
)
def test_gradient_at_ratio_one_is_minus_the_advantage(level, aggregation, share) -> None:
    logp = torch.full((2, 4), -0.7, dtype=torch.float64, requires_grad=True)
    new = Estimate(token_logp=logp * SCORED, token_mask=SCORED)
    objective = Clipped(level=level, aggregation=aggregation)
    totals = Totals(tokens=4.0, sequences=2, length=4)
    advantages = torch.tensor([2.0, -3.0], dtype=torch.float64)
    objective(new, new.detach(), None, advantages, SCORED, totals).loss.backward()
    expected = -advantages[:, None] * torch.tensor(share, dtype=torch.float64)[:, None] * SCORED
    torch.testing.assert_close(logp.grad, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("ratio", "advantage", "slope"), [(1.5, 1.0, 0.0), (0.5, -1.0, 0.0)])
def test_clipped_tokens_have_no_gradient_and_the_others_do(ratio, advantage, slope) -> None:
    log_ratio = torch.tensor([[ratio]], dtype=torch.float64).log().requires_grad_()
    for sign, expected in ((1, slope), (-1, ratio * advantage)):
        new = Estimate(token_logp=log_ratio, token_mask=torch.tensor([[True]]))
        loss = apply(Clipped(epsilon=0.2), new, [sign * advantage]).loss
        (found,) = torch.autograd.grad(loss, log_ratio)
        assert found.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("kl", "value"), [("k1", 0.5), ("k2", 0.125), ("k3", 0.106530659712633)])
def test_kl_is_added_per_scored_token_of_the_plan(kl: Any, value: float) -> None:
    """log policy - log reference is 0.5 at the first token; the second is not in the plan."""
    new = estimate([[0.0, 0.0]], [[True, False]])
    out = apply(Clipped(beta=0.04, kl=kl), new, [0.0], ref=estimate([[-0.5, -0.9]]))
    assert out.loss.item() == pytest.approx(0.04 * value / 2, abs=1e-9)
    total, count = out.metrics["kl"]
    assert (total.item(), count.item()) == (pytest.approx(value, abs=1e-9), 1)


def test_a_kl_weight_needs_a_reference() -> None:
    with pytest.raises(ValueError, match=r"beta is 0.04, which needs an estimate of the reference"):
        apply(Clipped(beta=0.04), ratios([1.0]), [1.0])


def test_without_a_kl_weight_a_reference_changes_nothing() -> None:
    out = apply(Clipped(), ratios([1.1]), [1.0], ref=estimate([[-5.0]]))
    assert out.loss.item() == pytest.approx(-1.1, abs=1e-12)
    assert "kl" not in out.metrics


def test_metrics_carry_no_gradient() -> None:
    logp = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    new = Estimate(token_logp=logp, token_mask=torch.ones(1, 2, dtype=torch.bool))
    out = apply(Clipped(beta=0.1), new, [1.0], ref=estimate([[0.1, 0.2]]))
    assert not any(total.requires_grad for total, _ in out.metrics.values())
    assert out.loss.requires_grad


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, r"epsilon is 0.0; it must be in \(0, 1\]"),
        ({"epsilon": 1.5}, r"epsilon is 1.5; it must be in \(0, 1\]"),
        ({"epsilon_high": 0.0}, "epsilon_high is 0.0; it must be positive or null"),
        ({"beta": -0.1}, "beta is -0.1; use 0 for no KL term, or a positive weight"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Clipped(**settings)


def test_the_registry() -> None:
    assert {"clipped": Clipped} == OBJECTIVES
