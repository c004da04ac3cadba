"""Gold completions as tensors: padding, what is too long, and rows that cannot be trained on."""

import logging

import pytest
from torch import Tensor

from rl.models.loading import LoadedModel, load
from rl.models.source import ModelSource
from rl.sft_data import SftConfig, tokenize_rows
from tests.tiny_models import SMALL_BERT


@pytest.fixture(scope="module")
def fresh() -> LoadedModel:
    return load(ModelSource(name="bert", config=SMALL_BERT), training=True, seed=0)


def row(name: str, completion: str | None, prompt: str = "q") -> dict:
    return {"id": name, "prompt": prompt, "completion": completion}


def texts(loaded: LoadedModel, ids: Tensor) -> list[str]:
    return loaded.tokenizer.batch_decode(ids)


def test_completions_are_padded_with_eos(fresh: LoadedModel) -> None:
    data = tokenize_rows(fresh, [row("a", "xy"), row("b", "xyz")], SftConfig())
    assert texts(fresh, data.completion_ids) == ["xy<eos><eos>", "xyz<eos>"]
    assert data.completion_mask.tolist() == [[True, True, True, False], [True] * 4]
    assert data.supervised.all()
    wide = tokenize_rows(fresh, [row("a", "xy")], SftConfig(pad_to=5, supervise_padding=False))
    assert texts(fresh, wide.completion_ids) == ["xy<eos><eos><eos>"]
    assert wide.supervised.tolist() == [[True, True, True, False, False]]


def test_batches_are_left_padded_and_keep_their_keys(fresh: LoadedModel) -> None:
    data = tokenize_rows(fresh, [row("a", "x", "pq"), row("b", "y", "p")], SftConfig())
    batch = data.collate([1, 0])
    assert batch["prompt_mask"].tolist() == [[False, True], [True, True]]
    assert texts(fresh, batch["prompt_ids"]) == ["<pad>p", "pq"]
    assert texts(fresh, batch["completion_ids"]) == ["y<eos>", "x<eos>"]
    assert batch["key"].tolist() == data.key.tolist()[::-1]
    assert len(set(data.key.tolist())) == 2


def test_too_long_completions(fresh: LoadedModel, caplog: pytest.LogCaptureFixture) -> None:
    rows = [row("short", "x"), row("long", "wxyz"), row("exact", "wxy")]
    with pytest.raises(ValueError, match=r"row 'long': its completion has 4 tokens.*pad_to = 3"):
        tokenize_rows(fresh, rows, SftConfig(pad_to=3))
    with caplog.at_level(logging.INFO, logger="rl"):
        cut = tokenize_rows(fresh, rows, SftConfig(pad_to=3, too_long="truncate"))
        left = tokenize_rows(fresh, rows, SftConfig(pad_to=3, too_long="drop"))
    assert texts(fresh, cut.completion_ids) == ["x<eos><eos>", "wxy", "wxy"]
    assert texts(fresh, left.completion_ids) == ["x<eos><eos>", "wxy"]
    assert "1 of 3 completions are cut off" in caplog.text
    assert "1 of 3 rows do not fit and are left out" in caplog.text


def test_prompts_that_exceed_the_model(fresh: LoadedModel) -> None:
    rows = [row("big", "x", "p" * 61), row("fits", "x", "p" * 60)]
    with pytest.raises(ValueError, match=r"row 'big': a prompt of 61 tokens and a canvas of 4"):
        tokenize_rows(fresh, rows, SftConfig(pad_to=4, too_long="truncate"))
    assert len(tokenize_rows(fresh, rows, SftConfig(pad_to=4, too_long="drop"))) == 1
    with pytest.raises(ValueError, match="none of the 1 rows fits"):
        tokenize_rows(fresh, rows[:1], SftConfig(pad_to=4, too_long="drop"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no training rows"),
        ([row("a", None)], "row 'a' has no gold completion"),
        ([row("a", "fine"), row("b", "caf\N{LATIN SMALL LETTER E WITH ACUTE}")], "row 'b'.*<unk>"),
        ([row("a", "x<mask>")], "token 1 of its completion is '<mask>'"),
    ],
)
def test_rows_that_cannot_be_trained_on(fresh: LoadedModel, rows: list[dict], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tokenize_rows(fresh, rows, SftConfig())


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"t_min": 1.0}, "t_min is 1.0"), ({"pad_to": 0}, "pad_to is 0"), ({"train_size": 0}, "is 0")],
)
def test_wrong_settings(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SftConfig(**settings)
