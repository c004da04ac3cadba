"""Loading: equal logits, every key accounted for, and errors that name the fault."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from rl.models import MODELS
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import load, save_native
from rl.models.source import ModelSource
from rl.models.tiny_checkpoint import make_tiny_checkpoint
from tests.models.folders import edit_config, edit_weights, from_folder, logits

# ------------------------------------------------------------------ every key accounted for


def test_a_missing_key_is_named_in_both_layouts(llada: Path):
    edit_weights(llada, lambda w: w.pop("model.transformer.blocks.1.ff_out.weight"))
    with pytest.raises(ValueError, match="1 missing") as error:
        from_folder(llada)
    assert "model.layers.1.mlp.down_proj.weight" in str(error.value)
    assert "model.transformer.blocks.1.ff_out.weight in the checkpoint" in str(error.value)


def test_an_unexpected_key_is_named(llada: Path):
    edit_weights(llada, lambda w: w.update({"model.transformer.blocks.0.bias": torch.ones(3)}))
    with pytest.raises(ValueError, match=r"1 in the checkpoint but not.*\n.*blocks\.0\.bias"):
        from_folder(llada)


def test_another_shape_is_named_with_both_shapes(llada: Path):
    edit_weights(llada, lambda w: w.update({"model.transformer.ln_f.weight": torch.ones(8)}))
    with pytest.raises(ValueError, match=r"model\.norm\.weight.*\(8,\).*\(64,\)"):
        from_folder(llada)


def test_a_long_list_of_keys_is_cut(llada: Path):
    edit_weights(llada, lambda w: [w.pop(k) for k in list(w) if ".blocks.1." in k])
    with pytest.raises(ValueError, match=r"9 missing(.*\n)+.*and 3 more"):
        from_folder(llada)


def test_weights_saved_under_hub_names_with_a_native_config_are_refused(llada: Path):
    """What save_pretrained does by default to a model loaded with a key mapping."""
    loaded = from_folder(llada)
    loaded.model.config.save_pretrained(llada)
    with pytest.raises(ValueError, match="21 missing"):
        from_folder(llada)


def test_the_pooler_of_a_pretraining_checkpoint_is_not_a_fault(bert: Path):
    edit_weights(bert, lambda w: w.update({"bert.pooler.dense.bias": torch.ones(64)}))
    from_folder(bert, "bert")


def test_pickled_weights_are_refused(llada: Path):
    (llada / "model.safetensors").unlink()
    torch.save({}, llada / "pytorch_model.bin")
    with pytest.raises(ValueError, match="no safetensors weights"):
        from_folder(llada)


# ------------------------------------------------------------------ tied output matrix


def test_a_tied_checkpoint_has_no_head_of_its_own(llada: Path, tmp_path: Path):
    edit_config(llada, weight_tying=True)
    edit_weights(llada, lambda w: w.pop("model.transformer.ff_out.weight"))
    loaded = from_folder(llada)
    assert loaded.model.lm_head.weight is loaded.model.model.embed_tokens.weight
    save_native(loaded.model, loaded.tokenizer, tmp_path / "saved")
    assert torch.equal(logits(loaded), logits(from_folder(tmp_path / "saved")))


def test_tied_by_config_but_not_by_weights_is_refused(llada: Path):
    edit_config(llada, weight_tying=True)
    with pytest.raises(ValueError, match="two different ones"):
        from_folder(llada)


# ------------------------------------------------------------------ saving


@pytest.mark.parametrize("name", ["llada", "bert"])
@pytest.mark.parametrize("by", ["save_native", "trainer"])
def test_saved_models_reload_with_equal_logits(
    name: str, by: str, tmp_path: Path, request: pytest.FixtureRequest
):
    loaded = from_folder(request.getfixturevalue(name), name)
    folder = tmp_path / "saved"
    if by == "save_native":
        save_native(loaded.model, loaded.tokenizer, folder)
    else:  # as transformers.Trainer does at a checkpoint
        loaded.model.save_pretrained(folder)
        loaded.tokenizer.save_pretrained(folder)

    again = from_folder(folder, name)
    assert torch.equal(logits(loaded), logits(again))
    ids = ("mask_id", "pad_id", "stop_ids", "forbidden_ids")
    assert [getattr(again, i) for i in ids] == [getattr(loaded, i) for i in ids]
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == [MODELS[name].native]
    assert config["mask_token_id"] == loaded.mask_id
    assert config["use_cache"] is False  # a denoiser fills no cache
    assert not any("transformer.blocks" in key for key in load_file(folder / "model.safetensors"))


def test_a_given_state_dict_is_what_is_saved(llada: Path, tmp_path: Path):
    loaded = from_folder(llada)
    gathered = {name: torch.zeros_like(w) for name, w in loaded.model.state_dict().items()}
    save_native(loaded.model, loaded.tokenizer, tmp_path / "saved", state_dict=gathered)
    assert not logits(from_folder(tmp_path / "saved")).any()


# ------------------------------------------------------------------ what config.json may say


def test_no_code_of_a_checkpoint_is_run(llada: Path):
    (llada / "evil.py").write_text("raise RuntimeError('ran')\nclass Config: ...\n")
    edit_config(llada, auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Config"})
    assert type(from_folder(llada).model).__name__ == "LlamaForCausalLM"


def test_another_model_type_is_refused(llada: Path):
    with pytest.raises(
        ValueError, match=r"model_type 'llada' \(LLaDAModelLM\); the bert family reads 'bert'"
    ):
        from_folder(llada, "bert")


def test_a_missing_config_field_is_named(llada: Path):
    """LLaDA-MoE has model_type llada as well, but other fields."""
    edit_config(llada, d_model=None)
    with pytest.raises(ValueError, match="no field 'd_model'"):
        from_folder(llada)


def test_a_variant_that_the_native_class_lacks_is_refused(llada: Path):
    edit_config(llada, include_qkv_bias=True)
    with pytest.raises(ValueError, match="include_qkv_bias: True; LlamaForCausalLM can only"):
        from_folder(llada)


def test_an_absent_folder(tmp_path: Path):
    with pytest.raises(ValueError, match=r"no config\.json can be read at"):
        from_folder(tmp_path / "absent")


def test_dropout_of_a_checkpoint_is_switched_off(bert: Path):
    edit_config(bert, hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5)
    loaded = from_folder(bert, "bert", training=True)
    assert loaded.model.training
    assert torch.equal(logits(loaded), logits(loaded))


def test_eos_is_trained_although_it_is_also_the_padding(llada: Path):
    """As padding_idx of the embedding it would get no gradient."""
    loaded = from_folder(llada, training=True)
    ids = torch.tensor([[9, 10, loaded.pad_id]])
    loaded.model(input_ids=ids).logits.logsumexp(-1).sum().backward()
    assert loaded.model.model.embed_tokens.weight.grad[loaded.pad_id].abs().sum() > 0


@pytest.mark.parametrize("training", [True, False])
def test_only_training_trains(llada: Path, training: bool):
    model = from_folder(llada, training=training).model
    assert model.training is training
    assert {p.requires_grad for p in model.parameters()} == {training}


def test_weights_have_the_dtype_asked_for(llada: Path):
    source = ModelSource(name="llada", path=str(llada), dtype="bfloat16")
    model = load(source, training=False).model
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}


# ------------------------------------------------------------------ padding is not an embedding's


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("reloaded", [False, True])
def test_no_embedding_row_is_kept_from_learning(name: str, reloaded: bool, tmp_path: Path):
    """RoBERTa's class makes position 1 its padding row; a denoiser counts positions from 0."""
    source = ModelSource(name=name, path=str(make_tiny_checkpoint(name, tmp_path / "hub", seed=0)))
    loaded = load(source, training=True)
    if reloaded:
        save_native(loaded.model, loaded.tokenizer, tmp_path / "native")
        loaded = load(ModelSource(name=name, path=str(tmp_path / "native")), training=True)
    tables = [m for m in loaded.model.modules() if isinstance(m, torch.nn.Embedding)]
    assert [table.padding_idx for table in tables] == [None] * len(tables)
    pad = torch.tensor([[loaded.pad_id, 7, 8]])
    index, every = torch.arange(3), torch.ones_like(pad, dtype=torch.bool)
    (top,) = ModelDenoiser.of(loaded)(pad, every, index, lambda x, _, row: (x.amax(-1)[row],))
    top.sum().backward()
    for table in tables:
        used = pad[0] if table is loaded.model.get_input_embeddings() else torch.arange(3)
        assert table.weight.grad is not None
        if len(table.weight) > 2:  # token types have one row in use
            assert table.weight.grad[used].any(1).all()
