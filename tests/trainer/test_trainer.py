"""The trainer on one process: what must not change a result, and what must come back."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from estimators import Elbo, MeanField, Trajectory
from rl.objectives import Clipped
from rl.reward_calls import RewardError

from .conftest import Make, assert_close, graded, steps, weights

ESTIMATORS = {
    "mean_field": MeanField(),
    "elbo": Elbo(samples=2, coupled=True),
    "trajectory": Trajectory(segments=2),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_ratio_is_one_before_the_first_update_and_not_after(make: Make, name: str) -> None:
    trainer = make(estimator=ESTIMATORS[name], num_iterations=2, max_steps=2)
    trainer.train()
    first, second = steps(trainer)
    assert first["ratio/mean"] == pytest.approx(1.0, abs=1e-6)
    assert first["clip_ratio/low"] == first["clip_ratio/high"] == 0.0
    assert abs(second["ratio/mean"] - 1.0) > 1e-4


@pytest.mark.parametrize("name", ESTIMATORS)
def test_micro_batches_do_not_change_the_update(make: Make, name: str) -> None:
    whole = make(estimator=ESTIMATORS[name], num_iterations=2)
    whole.train()
    cut = make(
        estimator=ESTIMATORS[name], num_iterations=2,
        per_device_train_batch_size=2, gradient_accumulation_steps=8,
    )  # fmt: skip
    cut.train()
    for a, b in zip(steps(whole), steps(cut), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-6)
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=1e-4)
    assert_close(weights(whole), weights(cut))


def test_batching_of_forwards_does_not_change_the_update(make: Make) -> None:
    whole = make(estimator=Elbo(samples=2))
    whole.train()
    cut = make(estimator=Elbo(samples=2), rollout_batch_size=3, scoring_batch_size=5)
    cut.train()
    assert_close(weights(whole), weights(cut))


def test_inner_iterations_are_passes_over_the_buffer(make: Make) -> None:
    """With accumulation, d1's index advances per micro-batch; ours per optimizer step."""
    trainer = make(
        num_iterations=3, per_device_train_batch_size=4, gradient_accumulation_steps=4, max_steps=6
    )
    seen: list[int] = []
    compute = trainer.compute_loss

    def watch(model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(inputs.iteration)
        assert inputs.totals.sequences == 16
        return compute(model, inputs, *args, **kwargs)

    trainer.compute_loss = watch  # pyright: ignore[reportAttributeAccessIssue]
    trainer.train()
    one_window = [0] * 4 + [1] * 4 + [2] * 4
    assert seen == one_window * 2


def test_several_optimizer_steps_per_rollout(make: Make) -> None:
    trainer = make(per_device_train_batch_size=4, steps_per_generation=4, max_steps=8)
    rollouts: list[int] = []
    roll = trainer.roller
    trainer.roller = lambda *a: rollouts.append(len(a[0])) or roll(*a)  # pyright: ignore
    trainer.train()
    assert rollouts == [16, 16]
    # the second step on a rollout is off-policy: its ratio is measured against the first policy
    assert steps(trainer)[0]["ratio/mean"] == pytest.approx(1.0, abs=1e-6)
    assert abs(steps(trainer)[1]["ratio/mean"] - 1.0) > 1e-5


def test_skipping_zero_advantages_is_exact_and_saves_forwards(make: Make) -> None:
    def sparse(prompts: list[str], completions: list[str], **_: Any) -> list[float]:
        """Only every other group has different rewards."""
        values = graded(completions)
        return [v if i // 4 % 2 else 1.0 for i, v in enumerate(values)]

    # one view per row, so that forwards can be counted
    one_view = MeanField(share_prompt_mask="row")
    run = {
        skip: make(estimator=one_view, reward=sparse, skip_zero_advantage=skip)
        for skip in (True, False)
    }
    rows: dict[bool, list[int]] = {True: [], False: []}
    for skip, trainer in run.items():
        run_model = trainer.scorer.run

        def count(
            model: Any, sequences: Any, plan: Any, skip: bool = skip, f: Any = run_model
        ) -> Any:
            rows[skip].append(len(sequences.completion_ids))
            return f(model, sequences, plan)

        trainer.scorer.run = count
        trainer.train()
    assert rows[False] == [16, 16, 16]
    assert rows[True] == [8, 8, 8]
    assert_close(weights(run[True]), weights(run[False]), 1e-6)


def test_nothing_to_learn_leaves_the_weights_alone(make: Make) -> None:
    trainer = make(reward=lambda completions, **_: [1.0] * len(completions))
    before = weights(trainer)
    trainer.train()
    assert_close(before, weights(trainer), 0.0)
    assert all(entry["grad_norm"] == 0 for entry in steps(trainer))
    assert steps(trainer)[0]["reward/equal_groups"] == 1.0


def test_a_row_that_stands_in_for_none_adds_no_kl(make: Make) -> None:
    """Micro-batches of one group each, of which half have nothing to learn."""

    def sparse(completions: list[str], **_: Any) -> list[float]:
        return [v if i // 4 % 2 else 1.0 for i, v in enumerate(graded(completions))]

    config = {"objective": Clipped(beta=0.5, kl="k2"), "reward": sparse, "num_iterations": 2}
    whole = make(**config)
    whole.train()
    cut = make(**config, per_device_train_batch_size=4, gradient_accumulation_steps=4)
    cut.train()
    for a, b in zip(steps(whole), steps(cut), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-6)
        assert a["kl"] == pytest.approx(b["kl"], rel=1e-4)
    assert_close(weights(whole), weights(cut))


def test_reference_is_the_model_before_training(make: Make) -> None:
    trainer = make(objective=Clipped(beta=0.5, kl="k2"), max_steps=3)
    before = weights(trainer)
    trainer.train()
    kl = [entry["kl"] for entry in steps(trainer)]
    assert kl[0] == 0.0
    assert kl[1] > 0
    with trainer.reference.active(trainer.model_wrapped, trainer.accelerator) as frozen:
        assert_close(before, dict(frozen.state_dict()), 0.0)


def test_same_seed_same_run_and_other_seed_another(make: Make) -> None:
    runs = []
    for seed in (0, 0, 1):
        trainer = make(seed=seed)
        torch.rand(17)  # the global random state does not matter
        trainer.train()
        runs.append(weights(trainer))
    assert_close(runs[0], runs[1], 0.0)
    assert max((runs[0][k] - runs[2][k]).abs().max() for k in runs[0]) > 1e-4


def test_a_reward_of_the_wrong_length_stops_with_its_name(make: Make) -> None:
    trainer = make(reward=lambda completions, **_: [1.0])
    with pytest.raises(RewardError, match="reward reward returned 1 values for 16 completions"):
        trainer.train()


def test_a_reward_that_raises_is_counted_and_the_run_goes_on(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    calls = 0

    def flaky(completions: list[str], **_: Any) -> list[float]:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise ZeroDivisionError("no luck")
        return graded(completions)

    trainer = make(reward=flaky)
    with caplog.at_level(logging.WARNING, logger="rl"):
        trainer.train()
    assert [e["rewards/reward/errors"] for e in steps(trainer)] == [0, 16, 0]
    assert steps(trainer)[1]["rewards/reward/not_graded"] == 1.0
    assert steps(trainer)[1]["grad_norm"] == 0
    assert "reward reward raised ZeroDivisionError: no luck" in caplog.text


def test_completions_are_logged_with_rewards_and_advantages(make: Make, tmp_path: Path) -> None:
    def talking(completions: list[str], log_extra: Any, log_metric: Any, **_: Any) -> list[float]:
        log_extra("length", [len(text) for text in completions])
        log_metric("longest", max(len(text) for text in completions))
        return graded(completions)

    trainer = make(reward=talking, max_steps=2)
    trainer.train()
    files = sorted((tmp_path / "run/completions").iterdir())
    assert [f.name for f in files] == ["step_000001_rank_0.jsonl", "step_000002_rank_0.jsonl"]
    entries = [json.loads(line) for line in files[0].read_text().splitlines()]
    assert len(entries) == 16
    assert {"id", "prompt", "completion", "rewards", "advantage", "length"} == set(entries[0])
    rewards = [entry["rewards"]["reward"] for entry in entries]
    assert rewards == pytest.approx(graded([entry["completion"] for entry in entries]))
    assert sum(entry["advantage"] for entry in entries[:4]) == pytest.approx(0, abs=1e-4)
    assert "longest" in steps(trainer)[0]


def test_phases_are_timed(make: Make) -> None:
    trainer = make(objective=Clipped(beta=0.1), max_steps=1)
    trainer.train()
    (entry,) = steps(trainer)
    for phase in ("rollout", "reward", "score", "backward"):
        assert entry[f"time/{phase}"] > 0
    assert entry["rollout/nfe"] == 4
