"""A resumed run equals one that was never interrupted, or says why it cannot be."""

from pathlib import Path

import pytest

from estimators import Elbo, Estimator, MeanField, Sandwich, TrajectorySubset
from rl.objectives import Clipped

from .conftest import Make, assert_close, steps, weights


@pytest.mark.parametrize(
    "estimator",
    [
        MeanField(),
        Elbo(samples=2, coupled=True),
        Sandwich(samples=2, block_length=4),
        TrajectorySubset(m=2, selection=1.0),
    ],
    ids=["one view", "several", "two bounds", "weighed steps and their choices"],
)
def test_resume_in_the_middle_of_a_window_is_bitwise_exact(
    estimator: Estimator, make: Make, tmp_path: Path
) -> None:
    """3 passes over a rollout; the checkpoint falls after the first of the second window."""
    config = {"num_iterations": 3, "max_steps": 8, "optim": "adamw_torch", "learning_rate": 1e-3}
    parts = {"objective": Clipped(beta=0.1), "estimator": estimator}
    folder = str(tmp_path / "a")
    uninterrupted = make(
        **config, **parts, output_dir=folder, save_strategy="steps", save_steps=4.0,
        save_only_model=False,
    )  # fmt: skip
    uninterrupted.train()
    assert (tmp_path / "a/checkpoint-4/rollouts_rank_0.safetensors").exists()
    resumed = make(**config, **parts, output_dir=str(tmp_path / "b"))
    resumed.train(resume_from_checkpoint=str(tmp_path / "a/checkpoint-4"))
    assert_close(weights(uninterrupted), weights(resumed), 0.0)
    tail = steps(uninterrupted)[4:]
    assert [e["loss"] for e in steps(resumed)[-4:]] == [e["loss"] for e in tail]


def test_resume_in_a_later_epoch_visits_the_same_prompts(make: Make, tmp_path: Path) -> None:
    config = {"max_steps": 30, "optim": "adamw_torch", "learning_rate": 1e-3}  # 12 steps an epoch
    whole = make(**config, output_dir=str(tmp_path / "a"), save_strategy="steps", save_steps=20.0)
    whole.train()
    resumed = make(**config, output_dir=str(tmp_path / "b"))
    resumed.train(resume_from_checkpoint=str(tmp_path / "a/checkpoint-20"))
    assert_close(weights(whole), weights(resumed), 0.0)


def test_resume_without_the_rollouts_in_use_is_refused(make: Make, tmp_path: Path) -> None:
    """As after a change in the number of processes: some have no file of their own."""
    config = {"num_iterations": 3, "max_steps": 4}
    make(**config, save_strategy="steps", save_steps=2.0).train()
    (tmp_path / "run/checkpoint-2/rollouts_rank_0.safetensors").unlink()
    with pytest.raises(ValueError, match="Resume with as many processes as before"):
        make(**config).train(resume_from_checkpoint=str(tmp_path / "run/checkpoint-2"))


def test_resume_without_a_checkpoint_does_not_start_anew(make: Make, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(ValueError, match="checkpoint"):
        make().train(resume_from_checkpoint=True)


def test_training_again_starts_with_a_rollout_of_its_own(make: Make) -> None:
    """The first call ends in the middle of a window."""
    trainer = make(num_iterations=3, max_steps=2)
    for _ in range(2):
        trainer.train()
        first, second = steps(trainer)[-2:]
        assert first["ratio/mean"] == pytest.approx(1.0, abs=1e-6)
        assert "time/rollout" in first
        assert "time/rollout" not in second
