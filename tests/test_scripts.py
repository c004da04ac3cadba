"""The scripts that the README sends a reader to."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from estimators import ESTIMATORS
from rl.models import MODELS
from rl.models.loading import load
from rl.models.source import ModelSource
from rl.recipe import load_recipe
from rl.recipe_checks import check_recipe

ROOT = Path(__file__).parents[1]


def run(monkeypatch: pytest.MonkeyPatch, script: str, *arguments: str) -> None:
    """As `python scripts/SCRIPT ARGUMENTS`, without the seconds that its imports take."""
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    runpy.run_path(str(ROOT / "scripts" / script), run_name="__main__")


@pytest.mark.slow
def test_the_minimal_loop_learns() -> None:
    main = runpy.run_path(str(ROOT / "scripts/minimal_loop.py"))["main"]
    rewards = main("mean_field", steps=100)
    assert len(rewards) == 100
    assert rewards[0] < 0.2  # chance is 1/8
    assert sum(rewards[-10:]) / 10 > 0.6


@pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if name != "any_order"])
def test_the_minimal_loop_takes_every_estimator(estimator: str, capsys) -> None:
    main = runpy.run_path(str(ROOT / "scripts/minimal_loop.py"))["main"]
    assert len(main(estimator, steps=2)) == 2
    assert [line.split()[:3] for line in capsys.readouterr().out.splitlines()] == [
        [estimator, "step", "0"],
        [estimator, "step", "1"],
    ]


@pytest.mark.slow
def test_the_minimal_loop_runs_as_a_script_from_anywhere(tmp_path: Path) -> None:
    """Without an installation: nothing of ours is on the path."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, str(ROOT / "scripts/minimal_loop.py"), "--steps", "2"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.parametrize("family", MODELS)
def test_a_tiny_checkpoint_of_every_family_can_be_read(
    family: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    folder = tmp_path / family
    run(monkeypatch, "make_tiny_checkpoint.py", "--family", family, str(folder))
    assert capsys.readouterr().out.strip().splitlines()[-1] == str(folder)
    loaded = load(ModelSource(name=family, path=str(folder)), training=False)
    assert loaded.spec is MODELS[family]
    assert loaded.mask_id in loaded.tokenizer.get_vocab().values()


def test_a_tiny_checkpoint_is_not_written_over_something_else(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "make_tiny_checkpoint.py", "--family", "bert", str(tmp_path))
    assert ended.value.code == 2
    assert capsys.readouterr().err.strip() == (
        f"error: {tmp_path} exists and is not an empty folder; name a new one."
    )


def test_the_methods_of_the_learning_curves_fit_their_recipe() -> None:
    script = runpy.run_path(str(ROOT / "scripts/learning_curves.py"))
    methods = yaml.safe_load(script["METHODS"].read_text())
    assert len(methods) == 5
    for overrides in methods.values():
        check_recipe(load_recipe(ROOT / "recipes/tiny_cpu.yaml", overrides), files=False)


def test_intervals_of_the_learning_curves() -> None:
    """Student's t: 4.303 with two degrees of freedom."""
    script = runpy.run_path(str(ROOT / "scripts/learning_curves.py"))
    mean, half = script["mean_and_half_width"]([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert half == pytest.approx(4.303 / 3**0.5, abs=2e-3)
