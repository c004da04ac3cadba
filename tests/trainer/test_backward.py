"""joint, linear and replay give one gradient, for any estimator and objective."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from estimators import Coupled, Elbo, Estimator, MeanField, Sandwich, Trajectory
from rl.backward import check_mode, choose_mode
from rl.experience import Experience, MicroBatch
from rl.objectives import OBJECTIVES, Clipped, Objective, PolicyGradient
from rl.trainer import DiffusionGRPOTrainer

from .conftest import Make

FLAT = {"skip_zero_advantage": False, "num_iterations": 2}


def rolled(trainer: DiffusionGRPOTrainer, rows: list[dict[str, Any]], groups: int) -> Experience:
    group = trainer.shape.num_generations
    window = [row for row in rows[:groups] for _ in range(group)]
    return trainer.roller(window, trainer.model, trainer.state)


def move(trainer: DiffusionGRPOTrainer) -> None:
    """One update's worth, so that new is not old."""
    g = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter += 0.02 * torch.randn(parameter.shape, generator=g)


def gradient(
    trainer: DiffusionGRPOTrainer, batch: MicroBatch, mode: str
) -> tuple[float, Tensor, dict[str, float]]:
    """(loss, all gradients in a row, what was logged)."""
    trainer.args.backward = mode
    trainer.model.zero_grad()
    trainer.collected.take(lambda x: x)
    loss = trainer.updater.loss(trainer.model, batch)
    trainer.accelerator.backward(loss)
    parameters = trainer.model.parameters()
    flat = torch.cat([x.grad.flatten() for x in parameters if x.grad is not None])
    logged = trainer.collected.take(lambda x: x)
    del logged["forwards/update"]  # that of the mode
    return loss.item(), flat, logged


def assert_all_equal(
    trainer: DiffusionGRPOTrainer, experience: Experience, *, on_policy: bool
) -> list[str]:
    """Returns the modes that were compared with joint."""
    totals = trainer.updater.totals([(experience, 0)], trainer.model, on_policy=on_policy)
    batch = MicroBatch(experience=experience, iteration=0, on_policy=on_policy, totals=totals)
    loss, expected, logged = gradient(trainer, batch, "joint")
    assert expected.norm() > 1e-4, "nothing to compare"
    linear = trainer.estimator.linear and trainer.objective.linear(on_policy)
    modes = ["replay", "linear"] if linear else ["replay"]
    for mode in modes:
        other_loss, found, other_logged = gradient(trainer, batch, mode)
        assert other_loss == pytest.approx(loss, rel=1e-5, abs=1e-7), mode
        assert (found - expected).norm() <= 1e-6 * expected.norm(), mode
        assert other_logged == pytest.approx(logged, rel=1e-4, abs=1e-5), mode
    return modes


ESTIMATORS: dict[str, Estimator] = {
    "mean_field": MeanField(),
    "elbo": Elbo(samples=2, coupled=True),
    "coupled": Coupled(),
    "sandwich": Sandwich(samples=2, block_length=None),
    "trajectory": Trajectory(segments=3),
    "selection": Trajectory(segments=None, selection=1.0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("on_policy", [True, False])
def test_every_kind_of_estimator(
    make: Make, rows: list[dict[str, Any]], name: str, on_policy: bool
) -> None:
    trainer = make(estimator=ESTIMATORS[name], objective=Clipped(), **FLAT)
    experience = rolled(trainer, rows, 2)
    if not on_policy:
        move(trainer)
    modes = assert_all_equal(trainer, experience, on_policy=on_policy)
    assert ("linear" in modes) == (on_policy and name not in ("sandwich", "selection"))


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("on_policy", [True, False])
def test_every_objective(
    make: Make, rows: list[dict[str, Any]], name: str, on_policy: bool
) -> None:
    """Also what `Objective.linear` claims of it."""
    objective: Objective = replace(OBJECTIVES[name](), beta=0.1, kl="k1", distill=0.1)
    trainer = make(estimator=Elbo(samples=2), objective=objective, **FLAT)
    experience = rolled(trainer, rows, 2)
    if not on_policy:
        move(trainer)
    assert_all_equal(trainer, experience, on_policy=on_policy)


def test_the_upper_bound_of_a_non_linear_estimate(make: Make, rows: list[dict[str, Any]]) -> None:
    objective = PolicyGradient(negative="upper")
    trainer = make(estimator=ESTIMATORS["sandwich"], objective=objective, **FLAT)
    assert assert_all_equal(trainer, rolled(trainer, rows, 2), on_policy=True) == ["replay"]


def watched(trainer: DiffusionGRPOTrainer) -> list[tuple[int, bool]]:
    """(views, whether with gradients) of every run of the model, as they come."""
    runs: list[tuple[int, bool]] = []
    run: Callable[..., Any] = trainer.scorer.run

    def watch(model: Any, sequences: Any, plan: Any) -> Any:
        runs.append((plan.weight.shape[1], torch.is_grad_enabled()))
        return run(model, sequences, plan)

    trainer.scorer.run = watch
    return runs


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("joint", [(4, True)]),
        ("replay", [(4, False), *[(1, True)] * 4]),
        ("linear", [(1, True)] * 4),
    ],
)
def test_one_view_at_a_time(
    make: Make, rows: list[dict[str, Any]], mode: str, expected: list[tuple[int, bool]]
) -> None:
    trainer = make(estimator=Elbo(samples=4), **FLAT)
    experience = rolled(trainer, rows, 2)
    totals = trainer.updater.totals([(experience, 0)], trainer.model, on_policy=True)
    batch = MicroBatch(experience=experience, iteration=0, on_policy=True, totals=totals)
    runs = watched(trainer)
    gradient(trainer, batch, mode)
    assert runs == expected


def test_a_rank_with_fewer_views_runs_along(
    make: Make, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if another rank had 5 views."""
    trainer = make(estimator=Trajectory(segments=3), **FLAT)
    experience = rolled(trainer, rows, 2)
    monkeypatch.setattr("rl.backward.backwards_in_step", lambda accelerator, count: count + 2)
    runs = watched(trainer)
    assert_all_equal(trainer, experience, on_policy=True)
    assert runs.count((1, True)) == 2 * 5


@pytest.mark.parametrize("mode", ["joint", "replay", "linear"])
def test_rows_without_a_scored_token_have_no_gradient_but_take_part(
    make: Make, rows: list[dict[str, Any]], mode: str
) -> None:
    """Bernoulli masks can be empty; DDP waits for the gradient of every parameter."""
    trainer = make(estimator=Elbo(samples=2), **FLAT)
    experience = rolled(trainer, rows, 1)
    plans = tuple(replace(p, weight=torch.zeros_like(p.weight)) for p in experience.plans)
    experience = replace(experience, plans=plans)
    totals = trainer.updater.totals([(experience, 0)], trainer.model, on_policy=True)
    batch = MicroBatch(experience=experience, iteration=0, on_policy=True, totals=totals)
    loss, found, _ = gradient(trainer, batch, mode)
    assert loss == 0
    trained = sum(p.numel() for n, p in trainer.model.named_parameters() if p.grad is not None)
    assert len(found) == trained > 0
    assert found.norm() == 0


@pytest.mark.parametrize(
    ("wanted", "views", "linear", "dropout", "expected"),
    [
        ("joint", 9, True, False, "joint"),
        ("replay", 9, True, False, "replay"),
        ("linear", 1, True, False, "linear"),
        (None, 1, True, False, "joint"),
        (None, 2, True, False, "linear"),
        (None, 2, False, False, "replay"),
        (None, 2, False, True, "joint"),
        (None, 2, True, True, "linear"),
    ],
)
def test_the_mode_by_itself(
    wanted: Any, views: int, linear: bool, dropout: bool, expected: str
) -> None:
    assert choose_mode(wanted, views=views, linear=linear, dropout=dropout) == expected


def test_a_mode_that_is_not_exact_is_refused() -> None:
    with pytest.raises(ValueError, match="linear is not exact here"):
        check_mode("linear", linear=False, dropout=False)
    with pytest.raises(ValueError, match="dropout would make the two differ"):
        check_mode("replay", linear=True, dropout=True)
    check_mode("linear", linear=True, dropout=True)
    check_mode(None, linear=False, dropout=True)
