"""The logits of the families' own code, on every way to the model."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "check_models.py"))
WAYS = {"plain", "peft", "native", "hub", "merged"}


@pytest.mark.parametrize("name", ["llada", "llada_moe", "llada2", "dream", "sdar"])
def test_logits_are_the_recorded_ones(name: str, shared_fixtures: Path, tmp_path: Path) -> None:
    fixtures = shared_fixtures / "hub_layout"
    _, expected = SCRIPT["recorded"](name, fixtures)
    assert expected.abs().max() > 0.1  # 1e-5 is not the size of the logits themselves
    worst = SCRIPT["check_family"](name, fixtures, tmp_path)
    assert set(worst) == WAYS
    assert max(worst.values()) <= 1e-5, worst


@pytest.mark.parametrize("name", ["llada", "llada_moe", "llada2", "dream", "sdar"])
def test_tiny_checkpoints_have_the_names_and_shapes_of_the_hubs_own_code(
    name: str, shared_fixtures: Path, tmp_path: Path
) -> None:
    reference = load_file(SCRIPT["weights_file"](name, shared_fixtures / "hub_layout"))
    weights = load_file(SCRIPT["make_tiny_checkpoint"](name, tmp_path / name) / "model.safetensors")
    assert {k: v.shape for k, v in weights.items()} == {k: v.shape for k, v in reference.items()}


def test_the_script_fails_where_logits_differ(
    shared_fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """Here the recorded logits are those of another model."""
    hub, fixtures = shared_fixtures / "hub_layout", tmp_path / "fixtures"
    fixtures.mkdir()
    for source, target in (("dream", "dream"), ("sdar.expected", "dream.expected")):
        data = (hub / f"{source}.safetensors").read_bytes()
        (fixtures / f"{target}.safetensors").write_bytes(data)
    argv = ["check_models.py", "--fixtures", str(fixtures), "--json", str(tmp_path / "out.json")]
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(SystemExit, match="more than 1e-05 apart: dream"):
        SCRIPT["main"]()
    assert capsys.readouterr().out.startswith("dream ")
    worst = json.loads((tmp_path / "out.json").read_text())["dream"]
    assert worst["plain"] > 0.1
    assert worst["merged"] <= 1e-5
