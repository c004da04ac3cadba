"""What an objective may ask of the trainer: old, reference, whole groups, a sum of the step."""

from typing import Any

import pytest
import torch

from estimators import Elbo
from rl.objectives import (
    Clipped,
    Kto,
    Objective,
    PolicyGradient,
    Preference,
    SelfNormalized,
    Squared,
    Weighted,
)

from .conftest import Make, assert_close, graded, steps, weights

HOOKS: dict[str, Objective] = {
    "the sum of a step's weights": SelfNormalized(),
    "weights within groups": Weighted(alpha=1.0),
    "pairs within groups": Preference(),
    "rows without an advantage": Squared(),
    "labels": Kto(),
    "likelihood of all rows": PolicyGradient(distill=0.5),
}


def sparse(completions: list[str], **_: Any) -> list[float]:
    """Every other group has equal rewards."""
    return [v if i // 4 % 2 else 1.0 for i, v in enumerate(graded(completions))]


@pytest.mark.parametrize("name", HOOKS)
def test_micro_batches_do_not_change_the_update(make: Make, name: str) -> None:
    """Nor which rows are left out, nor the second pass, in which new is not old."""
    config = {
        "objective": HOOKS[name], "reward": sparse, "num_iterations": 2, "max_steps": 2,
        "learning_rate": 0.05, "estimator": Elbo(samples=2),
    }  # fmt: skip
    whole = make(**config, skip_zero_advantage=False)
    whole.train()
    cut = make(**config, per_device_train_batch_size=4, gradient_accumulation_steps=4)
    cut.train()
    for a, b in zip(steps(whole), steps(cut), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=1e-4)
    assert_close(weights(whole), weights(cut))


def test_a_step_statistic_is_of_the_policy_at_the_start_of_the_step(make: Make) -> None:
    """The first step's ratios are 1, so that their sum is the number of rows."""
    trainer = make(
        objective=SelfNormalized(), estimator=Elbo(samples=2), num_iterations=2, max_steps=2,
        per_device_train_batch_size=4, gradient_accumulation_steps=4,
    )  # fmt: skip
    seen: list[float] = []
    compute = trainer.compute_loss

    def watch(model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(inputs.totals.statistic)
        return compute(model, inputs, *args, **kwargs)

    trainer.compute_loss = watch  # pyright: ignore[reportAttributeAccessIssue]
    trainer.train()
    assert seen[:4] == [pytest.approx(16.0, abs=1e-4)] * 4
    assert len(set(seen[4:])) == 1
    assert seen[4] != pytest.approx(16.0, abs=1e-4)


def test_weights_of_old_and_reference_replace_the_advantages(make: Make) -> None:
    """At the start, old is the reference: w = softmax(A / alpha) - 1/G, which sums to 0."""
    trainer = make(objective=Weighted(alpha=0.5), max_steps=1)
    plain = make(max_steps=1)
    found, expected = (
        t.roller([row for row in t.rows[:4] for _ in range(4)], t.model, t.state).advantages
        for t in (trainer, plain)
    )
    tilted = (expected.view(4, 4) / 0.5).softmax(-1) - 0.25
    assert torch.allclose(found.view(4, 4), tilted, atol=1e-6)


@pytest.mark.parametrize(
    ("objective", "passes", "old", "ref"),
    [
        (Clipped(), 1, 0, 0),
        (Clipped(), 2, 2, 0),
        (Clipped(beta=0.1), 1, 0, 1),
        (Clipped(beta=0.1, kl_to="old"), 2, 2, 0),
        (PolicyGradient(), 2, 0, 0),
        (PolicyGradient(beta=0.1, kl_to="old"), 2, 2, 0),
        (Preference(), 2, 0, 2),
        (Weighted(), 1, 1, 1),
        (SelfNormalized(), 1, 1, 0),
    ],
)
def test_old_and_reference_are_scored_only_where_they_are_used(
    make: Make, objective: Objective, passes: int, old: int, ref: int
) -> None:
    trainer = make(objective=objective, num_iterations=passes)
    window = [row for row in trainer.rows[:4] for _ in range(4)]
    experience = trainer.roller(window, trainer.model, trainer.state)
    assert (len(experience.old), len(experience.ref)) == (old, ref)


def test_every_pass_knows_which_of_how_many_it_is(make: Make) -> None:
    seen: list[tuple[int, int, float]] = []

    class Watching(Elbo):
        def plan(self, seqs: Any, random: Any) -> Any:
            seen.append((random.pass_index, random.passes, float(random.per_rollout()[0])))
            return super().plan(seqs, random)

    make(estimator=Watching(), num_iterations=3, max_steps=3).train()
    make(estimator=Watching(), num_iterations=3, max_steps=3, fresh_masks=False).train()
    assert [(k, n) for k, n, _ in seen] == [(0, 3), (1, 3), (2, 3), (0, 1)]
    assert len({shared for _, _, shared in seen}) == 1, "one number for all passes"
