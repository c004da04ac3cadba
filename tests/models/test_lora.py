"""LoRA: the modules that a preset hits, private initial weights, and adapters that reload."""

import json
import logging
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from torch import Tensor

from rl.models import MODELS
from rl.models.loading import LoadedModel, load, save_native
from rl.models.lora import LoraSpec, apply_lora
from rl.models.source import ModelSource
from rl.models.tiny_checkpoint import make_tiny_checkpoint


def base(folder: Path, name: str = "llada", **more: object) -> LoadedModel:
    return load(ModelSource(name=name, path=str(folder), **more), training=True)


def adapted(
    loaded: LoadedModel, *, zero3: bool = False, seed: int = 0, **lora: object
) -> PeftModel:
    spec = LoraSpec(**({"r": 4, "alpha": 8} | lora))
    return apply_lora(loaded.model, loaded.spec, spec, zero3=zero3, seed=seed)


def hit(model: PeftModel) -> list[str]:
    """The modules with an adapter, without PEFT's prefix."""
    names = [n.split(".lora_A")[0] for n, _ in model.named_parameters() if "lora_A" in n]
    return sorted(name.removeprefix("base_model.model.") for name in names)


def logits(model: torch.nn.Module) -> Tensor:
    ids = torch.arange(7, 31).view(2, 12)
    with torch.no_grad():
        return model(
            input_ids=ids, attention_mask=torch.ones(2, 1, 12, 12, dtype=torch.bool)
        ).logits


def in_layers(pattern: str, names: tuple[str, ...]) -> list[str]:
    return sorted(pattern.format(i=i) + name for i in (0, 1) for name in names)


ATTENTION = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
SELF = ("attention.self.query", "attention.self.key", "attention.self.value")
HITS = [
    ("llada", "paper", "model.layers.{i}.", (*ATTENTION, "mlp.up_proj")),
    (
        *("llada", "full", "model.layers.{i}."),
        (*ATTENTION, "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
    ),
    (
        "llada",
        ["o_proj", "mlp.down_proj"],
        "model.layers.{i}.",
        ("self_attn.o_proj", "mlp.down_proj"),
    ),
    ("bert", "paper", "bert.encoder.layer.{i}.", (*SELF, "intermediate.dense")),
    (
        *("bert", "full", "bert.encoder.layer.{i}."),
        (*SELF, "attention.output.dense", "intermediate.dense", "output.dense"),
    ),
]


@pytest.mark.parametrize(("name", "targets", "layer", "modules"), HITS)
def test_targets_hit_these_modules_and_train_only_their_adapters(
    name: str,
    targets: object,
    layer: str,
    modules: tuple[str, ...],
    caplog: pytest.LogCaptureFixture,
):
    loaded = load(ModelSource(name=name, config={}), training=True)
    shapes = {n: m.weight.shape for n, m in loaded.model.named_modules() if hasattr(m, "weight")}
    with caplog.at_level(logging.INFO):
        model = adapted(loaded, targets=targets)
    expected = in_layers(layer, modules)
    assert hit(model) == expected
    assert all("lora_" in n for n, p in model.named_parameters() if p.requires_grad)
    count = sum(4 * (shapes[n][0] + shapes[n][1]) for n in expected)
    assert f"{count:,} of" in caplog.text


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_full_preset_is_every_linear_module_of_a_block(name: str):
    loaded = load(ModelSource(name=name, config={}), training=True)
    blocks = [
        n
        for n, m in loaded.model.named_modules()
        if isinstance(m, torch.nn.Linear) and (".layers." in n or ".layer." in n)
    ]
    assert hit(adapted(loaded, targets="full")) == sorted(blocks)


def test_an_unmatched_target_is_named_before_weights_are_read(llada: Path):
    (llada / "model.safetensors").unlink()
    lora = {"r": 4, "alpha": 8, "targets": ["q_proj", "attn_out"]}
    with pytest.raises(ValueError, match="'attn_out' matches no linear module") as error:
        base(llada, lora=lora)
    leaves = "down_proj, gate_proj, k_proj, lm_head, o_proj, q_proj, up_proj, v_proj"
    assert leaves in str(error.value)


def test_an_unmatched_target_is_refused_when_applied_too(llada: Path):
    with pytest.raises(ValueError, match="'proj' matches no"):  # q_proj ends in it, but is not it
        adapted(base(llada), targets=["proj"])


def test_an_unknown_preset_lists_the_presets(llada: Path):
    with pytest.raises(ValueError, match=r"'all'; llada has the presets paper \(q_proj k_proj"):
        base(llada, lora={"r": 4, "alpha": 8, "targets": "all"})


@pytest.mark.parametrize("wrong", [{"r": 0}, {"alpha": 0}, {"dropout": 1.0}, {"targets": []}])
def test_impossible_values_are_refused(wrong: dict):
    with pytest.raises(ValueError, match=r"model\.lora"):
        LoraSpec(**({"r": 4, "alpha": 8} | wrong))


def test_adapters_depend_on_the_seed_and_on_nothing_else(llada: Path):
    def weights(state: int, seed: int) -> dict[str, Tensor]:
        loaded = base(llada)
        torch.manual_seed(state)
        before = torch.get_rng_state()
        model = adapted(loaded, seed=seed)
        assert torch.equal(torch.get_rng_state(), before)
        return {n: p for n, p in model.named_parameters() if "lora_A" in n}

    first, again, other = weights(5, 3), weights(6, 3), weights(5, 4)
    assert all(torch.equal(first[n], again[n]) for n in first)
    assert not any(torch.equal(first[n], other[n]) for n in first)


def test_the_adapted_model_starts_as_the_base(llada: Path):
    loaded = base(llada)
    before = logits(loaded.model)
    assert torch.equal(logits(adapted(loaded)), before)


@pytest.mark.parametrize(("zero3", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_adapters_of_bfloat16_weights_are_float32_except_under_zero3(
    llada: Path, zero3: bool, dtype: torch.dtype
):
    model = adapted(base(llada, dtype="bfloat16"), zero3=zero3)
    assert {p.dtype for n, p in model.named_parameters() if "lora_" in n} == {dtype}


def test_dropout_is_said_to_change_the_ratio(llada: Path, caplog: pytest.LogCaptureFixture):
    adapted(base(llada), dropout=0.05)
    assert "the ratio is not 1" in caplog.text


# ------------------------------------------------------------------ saved adapters


@pytest.fixture
def trained(llada: Path, tmp_path: Path) -> tuple[Path, Tensor]:
    """A folder with an adapter that changes the logits, and these logits."""
    loaded = base(llada)
    model = adapted(loaded)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.fill_(0.1)
    save_native(model, loaded.tokenizer, tmp_path / "adapter")
    assert not torch.allclose(logits(model), logits(base(llada).model), atol=1e-3)
    return tmp_path / "adapter", logits(model)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_checkpoint_of_the_trainer_is_the_adapter_alone(name: str, tmp_path: Path):
    """Whatever the words of its base's config.json, or the number of its embedding rows."""
    loaded = base(make_tiny_checkpoint(name, tmp_path / "base"), name)
    model = adapted(loaded)
    model.save_pretrained(str(tmp_path / "adapter"))
    stored = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    assert len(stored) == 2 * len(hit(model))
    assert all("lora_" in key for key in stored)
    load(ModelSource(name=name, path=str(tmp_path / "adapter")), training=True)


@pytest.mark.parametrize("training", [True, False])
def test_an_adapter_folder_finds_its_base(trained: tuple[Path, Tensor], training: bool):
    folder, expected = trained
    assert not (folder / "model.safetensors").exists()
    loaded = load(ModelSource(name="llada", path=str(folder)), training=training)
    assert torch.equal(logits(loaded.model), expected)
    trains = {n for n, p in loaded.model.named_parameters() if p.requires_grad}
    assert bool(trains) is training
    assert all("lora_" in n for n in trains)


def test_an_adapter_on_a_base_that_is_given(trained: tuple[Path, Tensor], llada: Path):
    folder, expected = trained
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_model_name_or_path": None}))
    with pytest.raises(ValueError, match="does not say which model"):
        base(folder)
    assert torch.equal(logits(base(llada, adapter=str(folder)).model), expected)


@pytest.mark.parametrize("fault", ["missing", "unused"])
def test_an_adapter_with_a_gap_is_refused(trained: tuple[Path, Tensor], fault: str):
    folder, _ = trained
    file = folder / "adapter_model.safetensors"
    weights = load_file(file)
    key = next(k for k in weights if "layers.1" in k and "up_proj.lora_B" in k)
    if fault == "missing":
        del weights[key]
    else:
        weights[key.replace("up_proj", "gate_proj")] = weights[key].clone()
    save_file(weights, file)
    module = "up_proj" if fault == "missing" else "gate_proj"
    with pytest.raises(ValueError, match=rf"{fault}: \['base_model.*{module}\.lora_B"):
        base(folder)


def test_continuing_an_adapter_and_adding_one_exclude_each_other(trained: tuple[Path, Tensor]):
    folder, _ = trained
    with pytest.raises(ValueError, match="drop `lora` to continue"):
        base(folder, lora={"r": 4, "alpha": 8})
