"""The `model:` section: faults found before a file is opened, and models made from nothing."""

import pytest
import torch

from rl.models import MODELS
from rl.models.loading import load
from rl.models.source import ModelSource


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"name": "lada", "path": "x"}, "unknown model family 'lada'; did you mean 'llada'"),
        ({"name": "bert"}, "give exactly one"),
        ({"name": "bert", "path": "x", "config": {}}, "give exactly one"),
        ({"name": "bert", "config": {}, "dtype": "fp8"}, "'fp8'; allowed: float32, bfloat16"),
        ({"name": "bert", "config": {}, "adapter": "nowhere"}, "holds no adapter_config"),
        ({"name": "bert", "config": {}, "load_in_4bit": True}, "random weights are not quantized"),
        ({"name": "llada", "path": "x", "load_in_4bit": True}, "`model.lora` to train"),
    ],
)
def test_faults_of_the_section_are_found_before_a_file_is_opened(section: dict, message: str):
    with pytest.raises(ValueError, match=message):
        load(ModelSource(**section), training=True)


def test_4bit_without_bitsandbytes_or_cuda_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    source = ModelSource(name="llada", path="x", load_in_4bit=True, lora={"r": 4, "alpha": 8})
    with pytest.raises(ValueError, match=r"package bitsandbytes.*CUDA device.*load_in_4bit: false"):
        load(source, training=True)


# ------------------------------------------------------------------ new models


@pytest.mark.parametrize("name", sorted(MODELS))
def test_new_models_depend_on_the_seed_and_on_nothing_else(name: str):
    source = ModelSource(name=name, config={})
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = load(source, training=True, seed=3).model.state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    again = load(source, training=True, seed=3).model.state_dict()
    other = load(source, training=True, seed=4).model.state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


def test_config_fields_of_a_new_model():
    config = {"hidden_size": 32, "num_attention_heads": 2, "max_position_embeddings": 48}
    loaded = load(ModelSource(name="bert", config=config), training=True)
    assert loaded.model.config.hidden_size == 32
    assert (loaded.max_length, loaded.vocab_size) == (48, len(loaded.tokenizer))


def test_an_unknown_config_field_is_refused():
    with pytest.raises(ValueError, match="unknown field 'hiden_size'; did you mean 'hidden_size'"):
        load(ModelSource(name="bert", config={"hiden_size": 8}), training=True)
