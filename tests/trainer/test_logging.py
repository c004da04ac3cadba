"""What a run tells of itself: every number is documented, and what is wrong is said."""

import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from estimators import Trajectory
from rl.objectives import OBJECTIVES, Clipped, ObjectiveOutput
from rl.rollout_schemes import Tree

from .conftest import Make, graded, steps

ROOT = Path(__file__).parents[2]
TRAINERS_OWN = {"loss", "grad_norm", "learning_rate", "epoch", "step"}


def documented() -> set[str]:
    """The names on the page; `x_25`, `_50` stands for `x_25` and `x_50`."""
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    names: set[str] = set()
    for name in re.findall(r"`([a-z_0-9/NAME]+)`", page):
        if name.startswith("_"):
            names |= {re.sub(r"_\d+", name, known) for known in names if re.search(r"_25", known)}
        names.add(name)
    return names


def undocumented(logged: set[str]) -> set[str]:
    as_written = {re.sub(r"^rewards/reward\b", "rewards/NAME", name) for name in logged}
    as_written = {name.removeprefix("choice_") for name in as_written}
    return as_written - documented() - TRAINERS_OWN


def test_every_step_tells_whether_the_estimate_can_be_trusted(make: Make) -> None:
    trainer = make(estimator=Trajectory(segments=None), max_steps=2)
    trainer.train()
    quarters = (25, 50, 75, 100)
    expected = {
        "logp/gap", "logp/correlation", "ratio/ess", "ratio/mean", "completions/duplicates",
        "entropy", *(f"entropy/step_{q}" for q in quarters),
        *(f"ratio/level_{q}/{what}" for q in quarters for what in ("mean", "std")),
    }  # fmt: skip
    for entry in steps(trainer):
        assert expected <= set(entry)
        assert undocumented(set(entry)) == set()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_logged_number_is_documented(make: Make, name: str) -> None:
    make_it = {"objective": OBJECTIVES[name](beta=0.1), "num_iterations": 2, "max_steps": 2}
    trainer = make(**make_it)
    trainer.train()
    logged = set().union(*steps(trainer))
    assert {"reward", "kl", "rewards/reward", "time/backward"} <= logged
    assert undocumented(logged) == set()


def test_the_numbers_of_rollout_schemes_are_documented() -> None:
    """Those that the schemes' own files name."""
    folder = ROOT / "rl" / "rollout_schemes"
    source = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    names = set(re.findall(r'"([a-z]+/[a-z_]+)":', source))
    assert names
    assert undocumented(names) == set()


def test_an_exact_estimate_has_no_gap_to_the_record(make: Make) -> None:
    """And the one-step value has one."""
    gaps = {}
    for segments in (None, 1):
        trainer = make(estimator=Trajectory(segments=segments), max_steps=1)
        trainer.train()
        (entry,) = steps(trainer)
        gaps[segments] = (entry["logp/gap"], entry["logp/correlation"])
    assert gaps[None] == (pytest.approx(0.0, abs=1e-5), pytest.approx(1.0, abs=1e-5))
    assert abs(gaps[1][0]) > 1e-3
    assert gaps[1][1] < 0.999


def test_the_gap_is_that_of_the_policy_that_wrote(make: Make) -> None:
    """So it is not told of later updates on the same rollout; the ratios are."""
    trainer = make(estimator=Trajectory(segments=None), num_iterations=2, max_steps=2)
    trainer.train()
    first, second = steps(trainer)
    assert first["ratio/ess"] == pytest.approx(1.0)
    assert first["ratio/level_100/std"] == pytest.approx(0.0, abs=1e-5)
    assert "logp/gap" not in second
    assert second["ratio/ess"] < 0.999
    assert second["ratio/level_100/std"] > 1e-3


def test_duplicates_are_told_and_warned_about_once(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = make(max_steps=3)
    with torch.no_grad():  # one token is certain: every completion is the same
        trainer.loaded.model.cls.predictions.bias[5] += 1000.0
    with caplog.at_level(logging.WARNING, logger="rl"):
        trainer.train()
    assert [entry["completions/duplicates"] for entry in steps(trainer)] == [1.0] * 3
    assert [entry["entropy"] for entry in steps(trainer)] == [pytest.approx(0.0, abs=1e-5)] * 3
    assert caplog.text.count("100 % of the completions of step 1 are equal") == 1
    assert caplog.text.count("raise sampler.temperature") == 1


def test_steps_without_any_grade_are_warned_about_once(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = make(reward=lambda completions, **_: [None] * len(completions))
    with caplog.at_level(logging.WARNING, logger="rl"):
        trainer.train()
    assert "reward" not in steps(trainer)[0]
    assert steps(trainer)[0]["reward/equal_groups"] == 0.0
    assert caplog.text.count("no completion of step 1 was graded") == 1
    assert caplog.text.count("was graded") == 1


@pytest.mark.parametrize("where", ["loss", "gradient norm"])
def test_a_diverged_run_stops_and_says_so(make: Make, where: str) -> None:
    def late() -> bool:
        return trainer.state.global_step == 2

    class Diverging(Clipped):
        def __call__(self, *arguments: Any) -> ObjectiveOutput:  # pyright: ignore
            out = super().__call__(*arguments)
            return replace(out, loss=out.loss * torch.nan) if late() and where == "loss" else out

    trainer = make(objective=Diverging(), max_steps=5)
    if where != "loss":
        parameter = next(trainer.loaded.model.parameters())
        parameter.register_hook(lambda g: g * torch.inf if late() else g)
    with pytest.raises(FloatingPointError, match=f"the {where} of optimizer step 3 is") as error:
        trainer.train()
    assert "lower trainer.learning_rate" in str(error.value)
    assert all(bool(p.isfinite().all()) for p in trainer.loaded.model.parameters())


def test_advantages_per_token_and_their_log(make: Make, tmp_path: Path) -> None:
    trainer = make(estimator=Trajectory(segments=2), scheme=Tree(branching=(2, 2)), max_steps=2)
    trainer.train()
    assert all(entry["grad_norm"] > 0 for entry in steps(trainer))
    assert (tmp_path / "run/completions/step_000001_rank_0.jsonl").exists()


def test_a_group_of_equal_rewards_is_told(make: Make) -> None:
    def half(completions: list[str], **_: Any) -> list[float]:
        return [v if i // 4 % 2 else 1.0 for i, v in enumerate(graded(completions))]

    trainer = make(reward=half, max_steps=1)
    trainer.train()
    assert steps(trainer)[0]["reward/equal_groups"] == 0.5
