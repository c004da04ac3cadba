"""Token ids: certain or refused; and the built-in tokenizers."""

import dataclasses
from pathlib import Path

import pytest

from rl.models import MODELS
from rl.models.llada import LLADA
from rl.models.loading import load, save_native
from rl.models.source import ModelSource
from rl.models.tokenizers_tiny import char_tokenizer
from tests.models.folders import edit_config, from_folder

ANSWER = "7 <= (x + 1)*2, y=#3:\n4/5.-A>z"


def test_llada_ids(llada: Path):
    """pad is eos, so it stays allowed; everything beyond the tokenizer's 103 tokens is not."""
    loaded = from_folder(llada)
    assert loaded.tokenizer.mask_token is None
    token = loaded.tokenizer.get_vocab()
    mask, eos, eot = token["<|mdm_mask|>"], token["<|endoftext|>"], token["<|eot_id|>"]
    assert (loaded.mask_id, loaded.pad_id, loaded.stop_ids) == (mask, eos, (eos, eot))
    assert loaded.vocab_size == 128
    assert set(loaded.forbidden_ids) == {
        mask,
        token["<|startoftext|>"],
        token["<unk>"],
        *range(103, 128),
    }


def test_bert_ids(bert: Path):
    """pad is not eos, so it is forbidden."""
    loaded = from_folder(bert, "bert")
    assert (loaded.pad_id, loaded.stop_ids, loaded.mask_id) == (0, (1,), 2)
    assert loaded.forbidden_ids == (0, 2, 3, 4)


def test_config_and_tokenizer_that_disagree_on_the_mask_are_refused(llada: Path):
    edit_config(llada, mask_token_id=77)
    with pytest.raises(ValueError, match=r"not certain.*tokenizer says 5 .*says 77,.*says nothing"):
        from_folder(llada)


@pytest.mark.parametrize(("mask_id", "agrees"), [(5, True), (6, False)])
def test_the_published_mask_id_counts_at_the_published_vocabulary_size(
    llada: Path, mask_id: int, agrees: bool
):
    spec = dataclasses.replace(LLADA, vocab_size=128, mask_id=mask_id)
    source = ModelSource(name=spec, path=str(llada))
    if agrees:
        assert load(source, training=False).mask_id == 5
    else:
        with pytest.raises(ValueError, match=r"says 5 .*says 5, the published value says 6"):
            load(source, training=False)


def test_a_native_config_is_cross_checked_too(llada: Path, tmp_path: Path):
    loaded = from_folder(llada)
    save_native(loaded.model, loaded.tokenizer, tmp_path / "saved")
    edit_config(tmp_path / "saved", mask_token_id=6)
    with pytest.raises(ValueError, match="says 6"):
        from_folder(tmp_path / "saved")


def test_a_tokenizer_without_mask_token_is_refused(llada: Path):
    char_tokenizer().save_pretrained(llada)
    with pytest.raises(ValueError, match=r"no mask token of the llada family: tried <\|mdm_mask"):
        from_folder(llada)


def test_a_tokenizer_larger_than_the_model_is_refused(llada: Path):
    edit_config(llada, embedding_size=100)
    with pytest.raises(ValueError, match="ids up to 102, but the model has 100 embedding rows"):
        from_folder(llada)


def test_the_real_llada_numbers():
    assert (LLADA.mask_id, LLADA.vocab_size) == (126336, 126464)


# ------------------------------------------------------------------ built-in tokenizers


@pytest.mark.parametrize("name", sorted(MODELS))
def test_built_in_tokenizers_have_one_id_per_character_and_lose_nothing(name: str):
    tokenizer = MODELS[name].tiny_tokenizer()
    ids = tokenizer(ANSWER, add_special_tokens=False).input_ids
    assert len(ids) == len(ANSWER)
    assert tokenizer.unk_token_id not in ids
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    assert tokenizer.decode([*ids, *end], skip_special_tokens=True) == ANSWER
    byte_level = type(tokenizer).__name__ == "Qwen2Tokenizer"  # its class has no unknown token
    assert tokenizer("é").input_ids == ([] if byte_level else [tokenizer.unk_token_id])
    assert tokenizer(["a", "aa"], padding=True).attention_mask == [[0, 1], [1, 1]]


def test_chat_templates():
    messages = [{"role": "user", "content": "1+1="}, {"role": "assistant", "content": "2"}]
    plain = MODELS["bert"].tiny_tokenizer()
    assert plain.apply_chat_template(messages, tokenize=False) == "1+1=\n2\n"
    llada = MODELS["llada"].tiny_tokenizer()
    text = llada.apply_chat_template(messages[:1], tokenize=False, add_generation_prompt=True)
    assert text == (
        "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\n1+1=<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )
    ids = llada(text, add_special_tokens=False).input_ids
    assert [ids[0], *ids[-4:]] == [0, *llada("t").input_ids, 3, *llada("\n\n").input_ids]
