"""Numbers worked out by hand for what tells whether an estimate can be trusted."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from estimators import Estimate, MaskPlan
from rl.diagnostics import agreement, duplicates, entropies, fingerprints, ratios
from rl.metrics import Metrics, Sums
from tests.tiny_models import sequences


def told(*parts: dict[str, Sums]) -> dict[str, float]:
    """As logged, after several micro-batches or ranks."""
    metrics = Metrics()
    for part in parts:
        for name, sums in part.items():
            metrics.add_sums(name, sums)
    return metrics.take(lambda x: x)


def estimate(token_logp: list[list[float]], view_logp: list[list[float]] | None = None) -> Estimate:
    logp = torch.tensor(token_logp)
    views = None if view_logp is None else torch.tensor(view_logp)
    return Estimate(token_logp=logp, token_mask=torch.ones_like(logp).bool(), view_logp=views)


def masked(hidden: list[list[list[int]]], weight: float = 1.0) -> MaskPlan:
    completion = torch.tensor(hidden).bool()
    B, M, _ = completion.shape
    return MaskPlan(
        prompt=torch.zeros(B, M, 2).bool(), completion=completion, weight=weight * completion
    )


def test_gap_and_correlation_are_per_scored_token() -> None:
    """Rows of 4 and 2 scored tokens: x = (-1, -3), then (-2); y = (-2, -3), then (-4)."""
    scored = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool()
    recorded = torch.tensor([[-2.0, -2.0, -2.0, -2.0], [-3.0, -3.0, -9.0, -9.0]])
    seqs = replace(sequences([[1, 1, 1, 1], [1, 0, 1, 1]]), rollout_logp=recorded)
    new = estimate([[-1.0, -1.0, -1.0, -1.0], [-6.0, 0.0, 0.0, 0.0]])
    first = agreement(new, seqs, scored)
    assert told(first)["logp/gap"] == pytest.approx(0.5)
    assert told(first)["logp/correlation"] == pytest.approx(1.0)

    other = replace(sequences([[1, 1, 1, 1]]), rollout_logp=torch.full((1, 4), -4.0))
    second = agreement(estimate([[-2.0] * 4]), other, torch.ones(1, 4).bool())
    both = told(first, second)
    assert both["logp/gap"] == pytest.approx((1 + 0 + 2) / 3)
    # x = -1, -3, -2 and y = -2, -3, -4: covariance 1/3, variances 2/3 each
    assert both["logp/correlation"] == pytest.approx(0.5)


def test_agreement_needs_a_record_and_correlation_needs_variation() -> None:
    scored = torch.ones(2, 1).bool()
    seqs = sequences([[1], [1]])
    assert agreement(estimate([[-1.0], [-2.0]]), seqs, scored) == {}
    seqs = replace(seqs, rollout_logp=torch.tensor([[-1.0], [-1.0]]))
    assert set(told(agreement(estimate([[-1.0], [-2.0]]), seqs, scored))) == {"logp/gap"}


def test_effective_sample_size() -> None:
    """Ratios 1 and 3: (1 + 3)^2 / (2 (1 + 9)) = 0.8; alike: 1; one with all the weight: 1 / N."""
    plan, scored = masked([[[1]], [[1]]]), torch.ones(2, 1).bool()

    def ess(*log_ratios: float) -> float:
        new, old = estimate([[x] for x in log_ratios]), estimate([[0.0] for _ in log_ratios])
        return told(ratios(new, old, plan, scored))["ratio/ess"]

    assert ess(0.0, math.log(3)) == pytest.approx(0.8)
    assert ess(-50.0, -50.0) == pytest.approx(1.0)
    assert ess(1000.0, -1000.0) == pytest.approx(0.5)


def test_log_ratios_by_masking_level() -> None:
    """Views that mask 1, 2 and 4 of 4 scored tokens, and one that masks nothing."""
    plan = masked(
        [[[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]], [[0, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]]],
        weight=0.5,
    )
    old = estimate([[0.0] * 4] * 2, [[0.0] * 3] * 2)
    new = estimate([[0.0] * 4] * 2, [[1.0, 2.0, -4.0], [0.0, 3.0, 2.0]])
    found = told(ratios(new, old, plan, torch.ones(2, 4).bool()))
    # per unit of weight: 1 / 0.5 | 2 / 1 and 3 / 1 | -4 / 2 and 2 / 2
    assert found["ratio/level_25/mean"] == pytest.approx(2.0)
    assert found["ratio/level_25/std"] == pytest.approx(0.0)
    assert found["ratio/level_50/mean"] == pytest.approx(2.5)
    assert found["ratio/level_50/std"] == pytest.approx(0.5)
    assert "ratio/level_75/mean" not in found
    assert found["ratio/level_100/mean"] == pytest.approx(-0.5)
    assert found["ratio/level_100/std"] == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("hidden", "length", "level"),
    [
        (1, 4, 25), (2, 4, 50), (3, 4, 75), (4, 4, 100),
        (1, 2, 50), (1, 3, 50), (2, 3, 75), (5, 16, 50),
    ],
)  # fmt: skip
def test_a_level_holds_up_to_its_share(hidden: int, length: int, level: int) -> None:
    """Of the scored tokens: what is hidden after EOS is not among them."""
    row = [1] * hidden + [0] * (length - hidden)
    plan = MaskPlan(
        prompt=torch.zeros(1, 1, 2).bool(),
        completion=torch.tensor([[[*row, 1, 1]]]).bool(),
        weight=torch.tensor([[[*row, 0, 0]]]).double(),
    )
    scored = torch.tensor([[1] * length + [0, 0]]).bool()
    one = estimate([[0.0] * (length + 2)], [[0.0]])
    levels = [n for n in told(ratios(one, one, plan, scored)) if n.endswith("mean")]
    assert levels == [f"ratio/level_{level}/mean"]


def test_entropy_by_quarter_of_the_steps_of_each_completion() -> None:
    """8 steps and 2 steps; not what was given, nor what follows EOS."""
    seqs = replace(
        sequences(
            [[1, 1, 1, 1, 1], [1, 1, 0, 1, 1]],
            step_map=[[0, 1, 2, 5, 7], [0, -1, 1, 1, 1]],
        ),
        entropy=torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 100.0, 7.0, 100.0, 100.0]]),
    )
    found = told(entropies(seqs))
    assert found["entropy"] == pytest.approx(28 / 7)
    assert found["entropy/step_25"] == pytest.approx((1 + 2 + 6) / 3)
    assert found["entropy/step_50"] == pytest.approx(3.0)
    assert found["entropy/step_75"] == pytest.approx((4 + 7) / 2)
    assert found["entropy/step_100"] == pytest.approx(5.0)


def test_entropy_needs_a_record() -> None:
    assert entropies(sequences([[1, 1]], step_map=[[0, 1]])) == {}


def test_duplicates_are_told_within_their_group_only() -> None:
    prints = fingerprints([[1, 2], [1, 2], [3], [1, 2], [], [1, 2], [2, 1]])
    groups = torch.tensor([5, 5, 5, 7, 7, 7, 7])
    assert duplicates(groups, prints).tolist() == [1, 1, 0, 1, 0, 1, 0]


def test_nothing_depends_on_how_rows_are_cut() -> None:
    g = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=g)

    plan = masked((torch.rand(6, 2, 4, generator=g) < 0.5).int().tolist())
    scored = torch.rand(6, 4, generator=g) < 0.8
    new = Estimate(token_logp=draw(6, 4), token_mask=scored, view_logp=draw(6, 2))
    old = Estimate(token_logp=draw(6, 4), token_mask=scored, view_logp=draw(6, 2))
    seqs = replace(
        sequences([[1, 1, 1, 0]] * 6, step_map=[[0, 1, 2, 3]] * 6),
        rollout_logp=draw(6, 4), entropy=draw(6, 4).abs(),
    )  # fmt: skip

    def everything(rows: slice) -> dict[str, Sums]:
        return {
            **agreement(new.rows(rows), seqs.rows(rows), scored[rows]),
            **ratios(new.rows(rows), old.rows(rows), plan.rows(rows), scored[rows]),
            **entropies(seqs.rows(rows)),
        }

    whole = told(everything(slice(0, 6)))
    assert len(whole) >= 10
    assert told(everything(slice(0, 1)), everything(slice(1, 6))) == pytest.approx(whole)
