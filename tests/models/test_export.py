"""rl.export: both layouts read back to equal logits, and refusals that say what to do."""

import json
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from rl.export import export, main
from rl.models import MODELS
from rl.models.loading import family_of, load, save_native
from rl.models.lora import LoraSpec, apply_lora
from rl.models.source import ModelSource
from rl.models.tiny_checkpoint import make_tiny_checkpoint
from tests.models.folders import edit_config, from_folder, logits

OWN_LAYOUT = [name for name, spec in MODELS.items() if spec.hub_type]


def adapter(base: Path, folder: Path, name: str) -> torch.Tensor:
    """Save an adapter of `base` that changes it; returns its logits."""
    loaded = from_folder(base, name, training=True)
    model = apply_lora(loaded.model, loaded.spec, LoraSpec(r=2, alpha=4))
    with torch.no_grad():
        for weight_name, weight in model.named_parameters():
            if "lora_B" in weight_name:
                weight.fill_(0.1)
    save_native(model, loaded.tokenizer, folder)
    return logits(from_folder(folder, name))


@pytest.mark.parametrize("name", MODELS)
def test_hub_to_native_and_back(name: str, tmp_path: Path) -> None:
    """The last folder has the keys, the shapes and the config fields of the first."""
    hub = make_tiny_checkpoint(name, tmp_path / "hub", seed=1)
    native = export(str(hub), tmp_path / "native", layout="native", family=name)
    back = export(str(native), tmp_path / "back", layout="hub")
    first, last = (load_file(f / "model.safetensors") for f in (hub, back))
    assert set(first) == set(last)
    assert all(torch.equal(first[key], last[key]) for key in first)
    config, again = (json.loads((f / "config.json").read_text()) for f in (hub, back))
    if name in OWN_LAYOUT:
        assert config.items() <= again.items()
        assert set(again) - set(config) <= {"torch_dtype", "mask_token_id", "block_size"}
        assert family_of(str(back)) == name
    plain = json.loads((native / "config.json").read_text())
    assert plain["model_type"] == MODELS[name].native_type
    expected = logits(from_folder(hub, name))
    for folder in (native, back):  # experts round by where they lie in memory
        found = logits(from_folder(folder, name))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("layout", ["hub", "native"])
@pytest.mark.parametrize("name", ["llada", "llada_moe", "dream", "bert"])
def test_an_adapter_is_merged_into_its_base(name: str, layout: str, tmp_path: Path) -> None:
    base = make_tiny_checkpoint(name, tmp_path / "base", seed=1)
    expected = adapter(base, tmp_path / "adapter", name)
    folder = export(str(tmp_path / "adapter"), tmp_path / "out", layout=layout, merge=True)
    torch.testing.assert_close(logits(from_folder(folder, name)), expected, rtol=0, atol=1e-5)
    assert not torch.allclose(logits(from_folder(base, name)), expected, atol=1e-3)


def test_an_adapter_without_merge_and_merge_without_an_adapter(llada: Path, tmp_path: Path) -> None:
    adapter(llada, tmp_path / "adapter", "llada")
    with pytest.raises(ValueError, match="holds a LoRA adapter; add --merge"):
        export(str(tmp_path / "adapter"), tmp_path / "out", layout="hub")
    with pytest.raises(ValueError, match="--merge needs a LoRA adapter"):
        export(str(llada), tmp_path / "out", layout="hub", merge=True)


def test_a_folder_with_something_in_it_is_not_overwritten(llada: Path) -> None:
    with pytest.raises(ValueError, match="not an empty folder"):
        export(str(llada), llada, layout="hub")


def test_several_families_of_one_class_have_to_be_told_apart(tmp_path: Path) -> None:
    folder = make_tiny_checkpoint("open_dcoder", tmp_path / "made")
    edit_config(folder, denoiser_family=None)
    several = "several families read; name one of dream, open_dcoder, .* with --family"
    with pytest.raises(ValueError, match=several):
        export(str(folder), tmp_path / "out", layout="native")
    export(str(folder), tmp_path / "out", layout="native", family="open_dcoder")


def test_a_native_checkpoint_that_does_not_know_its_hub_layout(llada: Path, tmp_path: Path) -> None:
    native = export(str(llada), tmp_path / "native", layout="native")
    edit_config(native, hub_fields=None)
    with pytest.raises(ValueError, match=r"nobody recorded the config\.json of llada's own"):
        export(str(native), tmp_path / "out", layout="hub")


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_weights_keep_their_dtype_unless_another_is_asked_for(
    dtype: str | None, llada: Path, tmp_path: Path
) -> None:
    loaded = load(ModelSource(name="llada", path=str(llada), dtype="bfloat16"), training=False)
    save_native(loaded.model, loaded.tokenizer, tmp_path / "half")
    out = export(str(tmp_path / "half"), tmp_path / "out", layout="hub", dtype=dtype)
    expected = dtype or "bfloat16"
    weights = load_file(out / "model.safetensors").values()
    assert {str(weight.dtype) for weight in weights} == {f"torch.{expected}"}
    assert json.loads((out / "config.json").read_text())["torch_dtype"] == expected


def test_the_command(llada: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    argv = ["rl.export", str(llada), "--out", str(tmp_path / "out"), "--layout", "native"]
    monkeypatch.setattr(sys, "argv", argv)
    main()
    assert capsys.readouterr().out.strip() == f"native layout: {tmp_path / 'out'}"
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "not an empty folder" in capsys.readouterr().err
