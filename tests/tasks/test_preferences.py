"""Pairs and labels as TRL's data sets write them, and what cannot be read."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from rl.tasks import PreferenceLabels, PreferencePairs

USER = {"role": "user", "content": "Name a bird."}
WREN = {"role": "assistant", "content": "A wren."}
FORK = {"role": "assistant", "content": "A fork."}
TEXT = {"prompt": "Name a bird:", "chosen": " wren", "rejected": " fork"}
CHAT = {"prompt": [USER], "chosen": [WREN], "rejected": [FORK]}
WHOLE = {"prompt": [USER], "chosen": [USER, WREN], "rejected": [USER, FORK]}
IMPLICIT = {"chosen": [USER, WREN], "rejected": [USER, FORK], "score_chosen": 8.0}


@pytest.mark.parametrize("record", [CHAT, WHOLE, IMPLICIT], ids=["chat", "whole", "implicit"])
def test_conversations(jsonl, record: dict[str, Any]) -> None:
    (row,) = PreferencePairs(path=jsonl(record)).rows("train")
    assert row["prompt"] == [USER]
    assert row["completion"] == "A wren."
    assert row["recorded"] == [
        {"prompt": [USER], "completion": "A wren.", "reward": 1.0},
        {"prompt": [USER], "completion": "A fork.", "reward": 0.0},
    ]


def test_texts_and_the_whole_file_is_trained_on(jsonl) -> None:
    task = PreferencePairs(path=jsonl(*[{**TEXT, "prompt": f"{i}:"} for i in range(40)]))
    rows = task.rows("train")
    assert [row["prompt"] for row in rows] == [f"{i}:" for i in range(40)]
    assert [x["completion"] for x in rows[0]["recorded"]] == [" wren", " fork"]
    assert task.rows("train", limit=3) == rows[:3]
    assert len({row["id"] for row in rows}) == 40


def test_a_csv_file_has_texts(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("prompt,chosen,rejected\nq:,yes,no\n")
    (row,) = PreferencePairs(path=str(tmp_path / "pairs.csv")).rows("train")
    assert [x["completion"] for x in row["recorded"]] == ["yes", "no"]


def label(text: str, good: Any) -> dict[str, Any]:
    return {"prompt": "Name a bird:", "completion": text, "label": good}


def test_labels_are_taken_two_at_a_time(jsonl, caplog: pytest.LogCaptureFixture) -> None:
    examples = [label("wren", True), label("fork", False), label("owl", True), label("tern", True)]
    task = PreferenceLabels(path=jsonl(*examples, label("cup", False)))
    with caplog.at_level(logging.INFO, logger="rl"):
        rows = task.rows("train")
    assert [row["id"] for row in rows] == ["train-0+train-1", "train-2+train-3"]
    recorded = [x for row in rows for x in row["recorded"]]
    assert [x["completion"] for x in recorded] == ["wren", "fork", "owl", "tern"]
    assert [x["reward"] for x in recorded] == [1.0, 0.0, 1.0, 1.0]
    assert "line 5 is left out: examples are taken two at a time" in caplog.text
    assert task.rows("train", limit=1) == rows[:1]


def test_labels_of_conversations(jsonl) -> None:
    other = {"role": "user", "content": "Name a tool."}
    first = {"prompt": [USER], "completion": [WREN], "label": True}
    second = {"completion": [other, FORK], "label": True}
    (row,) = PreferenceLabels(path=jsonl(first, second)).rows("train")
    assert [x["prompt"] for x in row["recorded"]] == [[USER], [other]]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({**TEXT, "chosen": ""}, "line 1: field 'chosen' is ''. A text is expected there"),
        ({"prompt": "q", "chosen": "a"}, "field 'rejected' is missing; it has 'prompt', 'chosen'"),
        (
            {"chosen": "a", "rejected": "b"},
            "field 'prompt' is missing, and 'chosen' and 'rejected'",
        ),
        (
            {**IMPLICIT, "rejected": [WREN, USER, FORK]},
            "are not conversations that begin with the same messages; it has 'chosen', 'rejected'",
        ),
        ({**CHAT, "prompt": [USER, WREN]}, "of which the last is not the assistant's"),
        ({**CHAT, "prompt": 3}, "field 'prompt' is 3. A text is expected there, or a list of"),
        ({**CHAT, "chosen": "A wren."}, "field 'chosen' is 'A wren.'. After a prompt of messages"),
        ({**CHAT, "chosen": [USER]}, "one message of the assistant is expected there"),
        ({**CHAT, "rejected": [WREN, FORK]}, "line 1: field 'rejected' is [{"),
        ({**CHAT, "rejected": [{"role": "assistant"}]}, "field 'rejected' is [{"),
    ],
)
def test_a_bad_pair_is_named(jsonl, record: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        PreferencePairs(path=jsonl(record)).rows("train")


def test_a_bad_label_is_named(jsonl) -> None:
    with pytest.raises(ValueError, match="line 2: field 'label' is 1; true or false is needed"):
        PreferenceLabels(path=jsonl(label("a", True), label("b", 1))).rows("train")


@pytest.mark.parametrize("task", [PreferencePairs, PreferenceLabels])
def test_a_path_that_is_not_there(task) -> None:
    with pytest.raises(ValueError, match=r"there is nothing at 'a\.jsonl'\. A folder with train"):
        task(path="a.jsonl").validate()
    task(path="owner/name").validate()


def test_rows_of_a_hub_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load_dataset(path: str, config: str | None, *, split: str) -> list[dict[str, Any]]:
        asked.append((path, config, split))
        return [IMPLICIT]

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    (row,) = PreferencePairs(path="owner/pairs", config="all").rows("train")
    assert row["completion"] == "A wren."
    assert asked == [("owner/pairs", "all", "train")]
