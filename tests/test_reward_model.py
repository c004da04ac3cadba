"""A reward model gives what a direct forward gives, whatever else is in the batch."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    Qwen2Config,
    Qwen2ForSequenceClassification,
)
from transformers.integrations import deepspeed

from rl.models.tokenizers_tiny import char_tokenizer
from rl.reward_model import RewardModel

PROMPTS = ["1+1=", "what is 2+3?", "x", "1+1="]
COMPLETIONS = ["2", "it is five, or so I think", "", "3"]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """bert: three classes, no template. qwen: one score, a template. headless: no head."""
    torch.manual_seed(0)
    tokenizer = char_tokenizer()
    sizes: dict[str, Any] = {
        **SIZES, "vocab_size": len(tokenizer), "intermediate_size": 64,
        "max_position_embeddings": 64, "initializer_range": 0.5,
    }  # fmt: skip
    bert = BertConfig(
        **sizes, num_labels=3, id2label={0: "bad", 1: "fair", 2: "good"}, pad_token_id=0
    )
    qwen = Qwen2Config(**sizes, num_labels=1, num_key_value_heads=2)
    models = {
        "bert": BertForSequenceClassification(bert),
        "qwen": Qwen2ForSequenceClassification(qwen),
        "headless": BertForMaskedLM(bert),
    }
    folder = tmp_path_factory.mktemp("judges")
    for name, model in models.items():
        own = char_tokenizer()
        if name == "bert":
            own.chat_template = None
        model.save_pretrained(folder / name)
        own.save_pretrained(folder / name)
    return {name: folder / name for name in models}


def direct(folder: Path, texts: list[list[int]]) -> torch.Tensor:
    """Logits of one text at a time, without padding."""
    kind = (
        BertForSequenceClassification if folder.name == "bert" else Qwen2ForSequenceClassification
    )
    model = kind.from_pretrained(folder).eval()
    with torch.no_grad():
        return torch.cat([model(torch.tensor([ids])).logits for ids in texts])


def pairs(folder: Path, prompts: list[str], completions: list[str]) -> list[list[int]]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return [tokenizer(p, c)["input_ids"] for p, c in zip(prompts, completions, strict=True)]


def chats(folder: Path, prompts: list[str], completions: list[str]) -> list[list[int]]:
    """The tiny template puts each message on a line of its own."""
    tokenizer = AutoTokenizer.from_pretrained(folder)  # not always of the class that was saved
    texts = [f"{p}\n{c}\n" for p, c in zip(prompts, completions, strict=True)]
    return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_scores_are_those_of_a_direct_forward(folders: dict[str, Path], batch_size: int) -> None:
    model = RewardModel(path=str(folders["bert"]), label="good", batch_size=batch_size)
    expected = direct(folders["bert"], pairs(folders["bert"], PROMPTS, COMPLETIONS))[:, 2]
    assert model(PROMPTS, COMPLETIONS) == pytest.approx(expected.tolist(), abs=1e-5)
    assert len(set(expected.tolist())) == 4
    model = RewardModel(path=str(folders["qwen"]), batch_size=batch_size)
    expected = direct(folders["qwen"], chats(folders["qwen"], PROMPTS, COMPLETIONS))[:, 0]
    assert model(PROMPTS, COMPLETIONS) == pytest.approx(expected.tolist(), abs=1e-5)
    assert len(set(expected.tolist())) == 4


@pytest.mark.parametrize("name", ["bert", "qwen"])
def test_order_and_company_do_not_matter(folders: dict[str, Path], name: str) -> None:
    model = RewardModel(path=str(folders[name]), label=0, batch_size=2)
    together = model(PROMPTS, COMPLETIONS)
    backwards = model(PROMPTS[::-1], COMPLETIONS[::-1])[::-1]
    alone = [model([p], [c])[0] for p, c in zip(PROMPTS, COMPLETIONS, strict=True)]
    assert backwards == pytest.approx(together, abs=1e-5)
    assert alone == pytest.approx(together, abs=1e-5)


def test_messages_are_written_as_the_template_says(folders: dict[str, Path]) -> None:
    model = RewardModel(path=str(folders["qwen"]))
    prompts = [[{"role": "user", "content": p}] for p in PROMPTS]
    completions = [[{"role": "assistant", "content": c}] for c in COMPLETIONS]
    assert model(prompts, completions) == pytest.approx(model(PROMPTS, COMPLETIONS), abs=1e-6)


def test_probabilities(folders: dict[str, Path]) -> None:
    logits = direct(folders["bert"], pairs(folders["bert"], PROMPTS, COMPLETIONS))
    model = RewardModel(path=str(folders["bert"]), label=1, probability=True)
    assert model(PROMPTS, COMPLETIONS) == pytest.approx(logits.softmax(-1)[:, 1].tolist(), abs=1e-5)
    logits = direct(folders["qwen"], chats(folders["qwen"], PROMPTS, COMPLETIONS))
    model = RewardModel(path=str(folders["qwen"]), probability=True)
    assert model(PROMPTS, COMPLETIONS) == pytest.approx(logits.sigmoid()[:, 0].tolist(), abs=1e-5)


def test_what_is_too_long_loses_its_beginning_and_that_is_told(
    folders: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    told: list[tuple[str, float]] = []
    model = RewardModel(path=str(folders["qwen"]), max_length=8)
    prompts, completions = ["a long question", "x"], ["1234", "y"]
    found = model(prompts, completions, log_metric=lambda *pair: told.append(pair))
    expected = direct(
        folders["qwen"], [ids[-8:] for ids in chats(folders["qwen"], prompts, completions)]
    )
    assert found == pytest.approx(expected[:, 0].tolist(), abs=1e-5)
    assert told == [("reward_model/truncated", 0.5)]
    assert "1 of 2 texts are longer than 8 tokens" in caplog.text
    caplog.clear()
    model(prompts, completions)
    assert not caplog.records


def test_the_models_own_limit_holds(folders: dict[str, Path]) -> None:
    model = RewardModel(path=str(folders["bert"]), label=0)
    (score,) = model(["x" * 100], ["y" * 100])
    expected = direct(folders["bert"], [pairs(folders["bert"], ["x" * 100], ["y" * 100])[0][-64:]])
    assert score == pytest.approx(expected[0, 0].item(), abs=1e-5)


def test_it_is_frozen_and_draws_nothing(folders: dict[str, Path]) -> None:
    state = torch.get_rng_state()
    model = RewardModel(path=str(folders["bert"]), label=0)
    model(PROMPTS, COMPLETIONS)
    assert torch.equal(torch.get_rng_state(), state)
    assert not model._model.training
    assert not any(p.requires_grad for p in model._model.parameters())


def test_it_is_whole_where_the_trainer_partitions_its_own(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Config:
        config: dict[str, Any] = {"zero_optimization": {"stage": 3}}  # noqa: RUF012

        def is_zero3(self) -> bool:
            return True

    expected = direct(folders["bert"], pairs(folders["bert"], PROMPTS, COMPLETIONS))[:, 2].tolist()
    config = Config()
    monkeypatch.setattr(deepspeed, "_hf_deepspeed_config_weak_ref", lambda: config)
    assert deepspeed.is_deepspeed_zero3_enabled()
    model = RewardModel(path=str(folders["bert"]), label=2)
    assert model(PROMPTS, COMPLETIONS) == pytest.approx(expected, abs=1e-5)
    assert deepspeed.is_deepspeed_zero3_enabled()


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"label": None}, r"label is None; .* has 0 \(bad\), 1 \(fair\), 2 \(good\)"),
        ({"label": 3}, "label is 3"),
        ({"label": "great"}, "label is 'great'"),
        ({"path": "headless"}, "has no weights for .*classifier.bias, classifier.weight, so its"),
        ({"path": "nowhere"}, "reward_model: no tokenizer can be read at"),
    ],
    ids=str,
)
def test_what_cannot_be_scored_with(
    folders: dict[str, Path], settings: dict[str, Any], what: str
) -> None:
    settings = {"path": "bert", "label": 0} | settings
    settings["path"] = str(folders["bert"].parent / settings["path"])
    with pytest.raises(ValueError, match=what):
        RewardModel(**settings)(PROMPTS, COMPLETIONS)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"batch_size": 0}, "batch_size is 0; use 1 or more"),
        ({"max_length": 0}, "max_length is 0"),
        ({"device": "tpuu"}, "device is 'tpuu'; use auto, cpu, cuda or cuda:N"),
    ],
    ids=str,
)
def test_settings_that_cannot_be(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        RewardModel(path="x", **settings)
