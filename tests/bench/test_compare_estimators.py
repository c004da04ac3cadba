"""The command line: your own estimator, a real checkpoint, mistakes, and what is written."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

from estimators import ESTIMATORS, Elbo, Estimator
from rl.models.tiny_checkpoint import make_tiny_checkpoint
from scripts.bench import settings
from scripts.bench.arguments import build
from scripts.bench.checkpoint import family_of
from scripts.bench.measure import Contender
from scripts.bench.reference import COSINES, TOLERANCE, differences

SCRIPT = Path(__file__).parents[2] / "scripts" / "compare_estimators.py"
MINE = """
from dataclasses import dataclass
from estimators import Elbo

@dataclass(frozen=True, kw_only=True)
class Mine(Elbo):
    power: float = 1.0

def not_one() -> int:
    return 3
"""


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", [SCRIPT.name, *arguments])
    runpy.run_path(str(SCRIPT), run_name="__main__")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return "mine.py:Mine"


def test_an_estimator_is_written_as_in_a_recipe(mine: str) -> None:
    assert build("estimator", "elbo", ESTIMATORS, Estimator) == Elbo()
    four = build("estimator", "{name: elbo, samples: 4}", ESTIMATORS, Estimator)
    assert four == Elbo(samples=4)
    own = build("estimator", f'{{name: "{mine}", power: 2}}', ESTIMATORS, Estimator)
    assert (type(own).__name__, vars(own)["power"]) == ("Mine", 2.0)
    assert settings.family(own) == "yours"
    assert settings.family(four) == "random masks"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("elbow", "unknown estimator 'elbow'; did you mean 'elbo'?"),
        ("{name: elbo, sample: 4}", "estimator.sample: unknown key; did you mean 'samples'?"),
        ("{name: elbo, samples: 0}", "estimator: samples is 0; an ELBO needs at least 1"),
        ("{name: [", "estimator '{name: [' is not YAML"),
        ("3", "estimator '3': expected a name, my_file.py:MyClass or '{name: ..., ...}'"),
        ("mine.py:not_one", "makes a int, which is not derived from estimators.base.Estimator"),
        ("mine.py:MINE", "mine.py has no 'MINE'"),
    ],
)
def test_a_mistake_is_told(text: str, sentence: str, mine: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        build("estimator", text, ESTIMATORS, Estimator)


def test_every_estimator_is_in_the_comparison() -> None:
    """But the one that needs another kind of model, and the one that needs other rollouts."""
    compared = {
        type(entry.estimator if isinstance(entry, Contender) else entry)
        for entry in settings.ESTIMATORS_COMPARED.values()
    }
    missing = {name for name, cls in ESTIMATORS.items() if cls not in compared}
    assert missing == {"any_order", "predicted_x0"}
    assert set(settings.NOISE_COMPARED) <= set(settings.ESTIMATORS_COMPARED)
    assert set(settings.QUICK_ESTIMATORS) <= set(settings.ESTIMATORS_COMPARED)
    assert set(settings.QUICK_SAMPLERS) <= set(settings.SAMPLERS_COMPARED)


@pytest.mark.slow
def test_the_tiny_comparison_is_printed_written_and_drawn(
    mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--estimator", mine, "--estimator", "trajectory", "--sampler"]
    sampler = "{name: low_confidence, steps: 4}"
    run(
        monkeypatch, *arguments, sampler, "--quick", "--json", "new/out.json", "--plot", "new/o.png"
    )
    printed = capsys.readouterr().out
    assert f"rollouts by {sampler}, 4 forwards each" in printed
    assert "Markov chain, 64 tokens" in printed
    assert (tmp_path / "new/o.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads((tmp_path / "new/out.json").read_text())
    assert set(told) == {"model", "seed", "settings", "rows", "chain"}
    assert told["settings"][mine].startswith("Mine(")
    first = told["rows"][0]
    wanted = {"estimator", "sampler", "cosine", "relvar", "forwards", "bias_nats", "std_nats"}
    assert wanted <= set(first)
    assert first["cosine_512_total"] == pytest.approx(
        first["cosine"] / (1 + first["relvar"] * (1 + 4) / 512) ** 0.5
    )
    assert first["cosine_128_forwards"] == pytest.approx(
        first["cosine"] / (1 + first["relvar"] / 128) ** 0.5
    )


@pytest.mark.slow
def test_a_checkpoint_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every step scored at the rollout's temperature is what the sampler recorded."""
    folder = str(make_tiny_checkpoint("llada", tmp_path / "llada"))
    assert family_of(folder) == "llada"
    monkeypatch.chdir(tmp_path)
    sizes = ["--prompts", "2", "--generations", "2", "--length", "8", "--plans", "3"]
    which = ["--estimator", "{name: trajectory, segments: null}", "--estimator", "mean_field"]
    sampler = ["--sampler", "{name: low_confidence, steps: 4, temperature: 0.7}"]
    run(monkeypatch, "--model", folder, *sizes, *which, *sampler, "--json", "out.json")
    assert "countdown: rollouts by {name: low_confidence" in capsys.readouterr().out
    every, step = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert every["gap_nats"] == pytest.approx(0, abs=1e-4)  # fp32, in batches of another size
    assert every["correlation"] == pytest.approx(1, abs=1e-4)
    assert every["std_nats"] == pytest.approx(0, abs=1e-4)
    assert (every["rollout_forwards"], every["forwards"]) == (4, 3.5)  # the first is shared by two
    assert step["std_nats"] > 1e-3
    assert step["forwards"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--estimator", "elbow"], "unknown estimator 'elbow'"),
        (["--sampler", "{name: random, steps: 3}"], "steps is 3, so that steps commit unequal"),
        (["--model", "nowhere"], "no config.json can be read at 'nowhere'"),
        (["--model", "x", "--plans", "1"], "plans is 1; a spread needs at least 2"),
        (["--model", "x", "--plot", "a.png"], "--plot draws cosines with the true gradient"),
    ],
)
def test_mistakes_end_with_a_sentence(
    arguments: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, *arguments)
    assert ended.value.code == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_cosines_are_those_of_the_independent_enumeration() -> None:
    """Seed 0, some rows; `compare_estimators.py --check` does all rows of three seeds."""
    assert [*COSINES] == ["0", "1", "2"]
    some = ("mean_field", "elbo, pair (ESPO)", "coupled (coupled-GRPO)", "trajectory")
    found = differences(0, some, ("confidence_first", "low_confidence, 2 a step"))
    assert len(found) == 8
    assert {pair: gap for pair, gap in found.items() if abs(gap) > TOLERANCE} == {}
