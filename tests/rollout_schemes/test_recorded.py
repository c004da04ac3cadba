"""Completions from a data set: their tokens, their labels, and what does not fit."""

import logging
import re
from typing import Any

import pytest
import torch

from rl.models.loading import LoadedModel
from rl.rollout_schemes import Recorded
from rl.sft_data import SftConfig, tokenize_rows

from .conftest import LENGTH, NewWindow


def pair(key: str, chosen: str, rejected: str) -> dict[str, Any]:
    return {
        "id": key,
        "prompt": key,
        "recorded": [
            {"prompt": key, "completion": chosen, "reward": 1.0},
            {"prompt": key, "completion": rejected, "reward": 0.0},
        ],
    }


def twice(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in rows for _ in range(2)]


def test_generations_are_the_recorded_completions(window: NewWindow, loaded: LoadedModel) -> None:
    rows = twice(pair("ab", "12", "345"), pair("abcd", "6" * 12, "7"))
    rollouts = Recorded()(window(rows, group=2))
    assert rollouts.completions.texts == ["12", "345", "6" * 12, "7"]
    assert rollouts.advantages.tolist() == [1.0, -1.0, 1.0, -1.0]
    assert rollouts.rewards.tolist() == [1.0, 0.0, 1.0, 0.0]
    sequences = rollouts.completions.sequences
    assert sequences.completion_mask.sum(-1).tolist() == [3, 4, 12, 2]  # with the EOS, if any
    gold = [
        {**row, "completion": text}
        for row, text in zip(rows, rollouts.completions.texts, strict=True)
    ]
    trained = tokenize_rows(loaded, gold, SftConfig(pad_to=LENGTH))
    assert torch.equal(sequences.completion_ids, trained.completion_ids)
    assert sequences.prompt_mask.sum(-1).tolist() == [2, 2, 4, 4]
    assert sequences.step_map is None


def test_each_example_has_a_prompt_of_its_own(window: NewWindow) -> None:
    row = {
        "id": "0+1",
        "prompt": "ab",
        "recorded": [
            {"prompt": "ab", "completion": "1", "reward": 0.0},
            {"prompt": "abcd", "completion": "2", "reward": 1.0},
        ],
    }
    rollouts = Recorded()(window(twice(row), group=2))
    assert rollouts.completions.sequences.prompt_mask.sum(-1).tolist() == [2, 4]
    assert [row["prompt"] for row in rollouts.rows] == ["ab", "abcd"]
    assert rollouts.advantages.tolist() == [-1.0, 1.0]
    assert Recorded().prompts(row) == ["ab", "abcd"]


def test_rows_must_have_as_many_completions_as_are_asked_for() -> None:
    rows = [pair("a", "1", "2")]
    Recorded().check_rows(rows, num_generations=2)
    with pytest.raises(ValueError, match="row 'a' has 2 recorded completions and trainer"):
        Recorded().check_rows(rows, num_generations=4)
    message = "row 'b' has no recorded completions (its columns: id, prompt); use task preference_p"
    with pytest.raises(ValueError, match=re.escape(message)):
        Recorded().check_rows([{"id": "b", "prompt": "x"}], num_generations=2)


def test_long_completions_are_refused_unless_the_recipe_says_what_to_do(
    loaded: LoadedModel, caplog: pytest.LogCaptureFixture, window: NewWindow
) -> None:
    rows = [pair("a", "1", "2"), pair("b", "3", "4" * 13), pair("c", "5", "6" * 12)]
    message = (
        "row 'b': a completion has 13 tokens, more than trainer.max_completion_length 12 (1 of 3"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        Recorded().fitting(rows, loaded, length=LENGTH)
    with caplog.at_level(logging.INFO, logger="rl"):
        dropped = Recorded(too_long="drop").fitting(rows, loaded, length=LENGTH)
        cut = Recorded(too_long="truncate").fitting(rows, loaded, length=LENGTH)
    assert [row["id"] for row in dropped] == ["a", "c"]
    assert cut == rows
    assert "1 of 3 rows, with a completion of more than 12 tokens, are left out" in caplog.text
    assert "are cut off" in caplog.text
    written = Recorded(too_long="truncate")(window(twice(rows[1]), group=2)).completions
    assert written.texts == ["3", "4" * 12]


def test_tokens_that_a_model_cannot_write_are_refused(loaded: LoadedModel) -> None:
    with pytest.raises(ValueError, match="row 'a': token 1 of its completion is '<unk>'"):
        Recorded().fitting([pair("a", "1", "2é")], loaded, length=LENGTH)
