"""A checkpoint and a task small enough to train for a few steps in a test."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rl.models.loading import LoadedModel, load, save_native
from rl.models.source import ModelSource

BERT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny_bert")
    loaded = load(ModelSource(name="bert", config=BERT), training=False)
    save_native(loaded.model, loaded.tokenizer, folder)
    return folder


@pytest.fixture
def new_model(tiny_bert: Path) -> Callable[[], LoadedModel]:
    """The same weights every time, in a model of their own."""
    return lambda: load(ModelSource(name="bert", path=str(tiny_bert)), training=True)


@pytest.fixture(scope="session")
def rows() -> list[dict[str, Any]]:
    """Prompts of two lengths, so that batches are padded."""
    rng = random.Random(0)
    return [
        {"id": str(i), "prompt": "f" + "".join(rng.choices("01234", k=rng.choice([4, 7]))) + "="}
        for i in range(48)
    ]


def graded(completions: list[str], **_: Any) -> list[float]:
    """A reward with many different values."""
    return [sum(ord(c) % 7 for c in text) / 48 for text in completions]
