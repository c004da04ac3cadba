"""What goes wrong without an error in a family, and what is refused instead."""

from pathlib import Path

import pytest
import torch

from rl.models.loading import load, save_native
from rl.models.source import ModelSource
from rl.models.tiny_checkpoint import make_tiny_checkpoint
from tests.models.folders import edit_config, edit_weights, from_folder


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return make_tiny_checkpoint(request.param, tmp_path / "made", seed=1)


def family(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("made", [name], indirect=True)


# ------------------------------------------------------------------ LLaDA2's experts and window


@family("llada2")
def test_an_unused_window_is_not_obeyed(made: Path, tmp_path: Path):
    """A native cache would drop what is further away."""
    loaded = from_folder(made, "llada2")
    assert loaded.model.config.hub_fields["sliding_window"] == 4096
    assert loaded.model.config.sliding_window is None
    save_native(loaded.model, loaded.tokenizer, tmp_path / "native")
    edit_config(tmp_path / "native", sliding_window=4096)
    assert from_folder(tmp_path / "native", "llada2").model.config.sliding_window is None


@family("dream")
def test_a_window_that_is_used_is_refused(made: Path):
    edit_config(made, use_sliding_window=True)
    with pytest.raises(ValueError, match="use_sliding_window: True; Qwen2ForCausalLM can only be"):
        from_folder(made, "dream")


@family("llada2")
def test_the_routers_bias_stays_in_float32(made: Path):
    bias = "model.layers.1.mlp.gate.expert_bias"
    exact = torch.linspace(0, 1, 8) + 1e-4
    edit_weights(made, lambda w: w.update({bias: exact}))
    read = load(ModelSource(name="llada2", path=str(made), dtype="bfloat16"), training=False)
    new = load(ModelSource(name="llada2", config={}, dtype="bfloat16"), training=False)
    for loaded in (read, new):
        kinds = {n: w.dtype for n, w in loaded.model.state_dict().items()}
        kept = {n for n, dtype in kinds.items() if dtype == torch.float32}
        gate = "model.layers.1.mlp.gate."
        assert kept == {f"{gate}e_score_correction_bias", f"{gate}weight"}
    assert torch.equal(read.model.state_dict()[f"{gate}e_score_correction_bias"], exact)


@family("llada2")
def test_one_expert_that_is_missing_is_named(made: Path):
    edit_weights(made, lambda w: w.pop("model.layers.1.mlp.experts.3.down_proj.weight"))
    with pytest.raises(ValueError, match=r"model\.layers\.1\.mlp\.experts\.down_proj"):
        from_folder(made, "llada2")


# ------------------------------------------------------------------ families of one class


@family("llada_moe")
def test_both_lladas_have_one_model_type_but_not_one_class(made: Path, llada: Path):
    with pytest.raises(ValueError, match=r"'llada' \(LLaDAMoEModelLM\).*reads 'llada' \(LLaDAMod"):
        from_folder(made, "llada")
    with pytest.raises(ValueError, match=r"'llada' \(LLaDAModelLM\).*reads 'llada' \(LLaDAMoE"):
        from_folder(llada, "llada_moe")


@family("dream")
def test_a_saved_model_knows_its_family(made: Path, tmp_path: Path):
    """Read as one without shift it would be wrong at every token."""
    loaded = from_folder(made, "dream")
    save_native(loaded.model, loaded.tokenizer, tmp_path / "saved")
    with pytest.raises(ValueError, match="denoiser_family 'dream'; the a2d_qwen2 family reads"):
        from_folder(tmp_path / "saved", "a2d_qwen2")


# ------------------------------------------------------------------ blocks


@family("sdar")
def test_the_size_of_a_block(made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """The recipe's, else config.json's, else the published one; saved with the weights."""
    edit_config(made, block_size=8)
    assert from_folder(made, "sdar").block_size == 8
    given = load(ModelSource(name="sdar", path=str(made), block_size=16), training=False)
    assert given.block_size == 16
    save_native(given.model, given.tokenizer, tmp_path / "saved")
    assert from_folder(tmp_path / "saved", "sdar").block_size == 16
    edit_config(made, block_size=None)
    with caplog.at_level("INFO"):
        assert from_folder(made, "sdar").block_size == 4
    assert "has no block size; taking the published 4" in caplog.text


def test_a_size_of_blocks_where_there_are_none(llada: Path):
    source = ModelSource(name="llada", path=str(llada), block_size=4)
    with pytest.raises(ValueError, match="but every token of llada sees every other"):
        load(source, training=False)
    with pytest.raises(ValueError, match=r"model\.block_size is 0"):
        load(ModelSource(name="sdar", config={}, block_size=0), training=False)


# ------------------------------------------------------------------ chat template


@family("a2d_qwen3")
def test_the_template_is_rendered_as_in_training(made: Path, tmp_path: Path):
    """Without thinking; once, however often it is saved and read."""
    loaded = from_folder(made, "a2d_qwen3")
    save_native(loaded.model, loaded.tokenizer, tmp_path / "saved")
    again = from_folder(tmp_path / "saved", "a2d_qwen3")
    message = [{"role": "user", "content": "1+1="}]
    for tokenizer in (loaded.tokenizer, again.tokenizer):
        text = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
        assert text == (
            "<|im_start|>user\n1+1=<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
        )
    assert again.tokenizer.chat_template == loaded.tokenizer.chat_template
