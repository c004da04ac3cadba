"""Tiny checkpoints have the real layout, depend on the seed only, and overwrite nothing."""

import json
import runpy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from rl.models import MODELS
from rl.models.loading import load
from rl.models.source import ModelSource
from rl.models.tiny_checkpoint import make_tiny_checkpoint

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_tiny_checkpoint.py"


def test_llada_config_is_in_the_hubs_words(llada: Path):
    config = json.loads((llada / "config.json").read_text())
    assert config["model_type"] == "llada"
    assert config["architectures"] == ["LLaDAModelLM"]
    hub_only = {"d_model", "n_layers", "n_heads", "n_kv_heads", "mlp_hidden_size", "embedding_size"}
    assert hub_only <= set(config)
    assert not {"hidden_size", "num_hidden_layers"} & set(config)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_family_has_one_that_loads_and_depends_on_the_seed(name: str, tmp_path: Path):
    first, again, other = (
        load_file(make_tiny_checkpoint(name, tmp_path / tag, seed) / "model.safetensors")
        for tag, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert any(not torch.equal(first[k], other[k]) for k in first)
    loaded = load(ModelSource(name=name, path=str(tmp_path / "a")), training=False)
    fresh = load(ModelSource(name=name, config={}), training=False, seed=1)
    for (key, weight), expected in zip(
        loaded.model.state_dict().items(), fresh.model.state_dict().values(), strict=True
    ):
        assert torch.equal(weight, expected), key


def test_a_folder_with_something_in_it_is_not_overwritten(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="not an empty folder"):
        make_tiny_checkpoint("llada", tmp_path)


def test_an_unknown_family_is_named(tmp_path: Path):
    with pytest.raises(ValueError, match="unknown model family 'gpt'"):
        make_tiny_checkpoint("gpt", tmp_path / "x")


def test_the_script_writes_a_checkpoint_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "made"
    argv = [str(SCRIPT), "--family", "llada", str(out), "--seed", "1"]
    monkeypatch.setattr("sys.argv", argv)
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert capsys.readouterr().out.strip() == str(out)
    assert load(ModelSource(name="llada", path=str(out)), training=False).vocab_size == 128
