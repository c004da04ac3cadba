"""Which groups have nothing to compare, and what is logged where a scheme looks in between."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from rl.grading import Grading
from rl.metrics import Metrics
from rl.reward_calls import RewardCalls
from rl.rollout_schemes import Rollouts
from rl.rollouts import Completions
from tests.tiny_models import sequences

NAN = math.nan


def written(texts: list[str]) -> Completions:
    seqs = sequences([[ord(c) for c in text] for text in texts])
    return Completions(sequences=seqs, texts=texts, nfe=torch.ones(len(texts), dtype=torch.long))


def value(completions: list[str], **_: Any) -> list[float | None]:
    return [None if "?" in text else float(text[0]) for text in completions]


@pytest.fixture
def grading() -> Grading:
    AcceleratorState._reset_state(reset_partial_state=True)
    return Grading(RewardCalls(["value"], [value], [1.0]), Accelerator(cpu=True), Metrics())


def rollouts(
    completions: Completions, rewards: torch.Tensor, group: int, advantages: torch.Tensor | None
) -> Rollouts:
    count = len(completions.texts)
    rows = [{"id": str(i // group), "prompt": "p"} for i in range(count)]
    return Rollouts(
        rows=rows,
        keys=[(0, row["id"], 0, i % group) for i, row in enumerate(rows)],
        completions=completions,
        advantages=torch.arange(count).float() if advantages is None else advantages,
        rewards=rewards,
    )


def record(grading: Grading, texts: list[str], group: int) -> dict[str, float]:
    completions = written(texts)
    rewards = grading([{"prompt": "p"}] * len(texts), completions, None)
    grading.record(rollouts(completions, rewards, group, None), step=0)
    return grading.metrics.take(lambda x: x)


def test_groups_of_equal_rewards_and_duplicates(grading: Grading) -> None:
    """Equal rewards; different ones; one not graded, which leaves it open; none graded."""
    logged = record(grading, ["1a", "1b", "1a", "2a", "3?", "3a", "??", "??"], group=2)
    assert logged["reward/equal_groups"] == pytest.approx(1 / 4)
    assert logged["completions/duplicates"] == pytest.approx(2 / 8)
    assert logged["reward"] == pytest.approx((1 + 1 + 1 + 2 + 3) / 5)
    assert logged["rewards/value/not_graded"] == pytest.approx(3 / 8)


def test_the_log_has_the_rewards_by_name_where_the_graded_texts_are_learned_from(
    grading: Grading, tmp_path: Path
) -> None:
    grading.log_to(tmp_path)
    record(grading, ["1a", "2b"], group=2)
    other, rewards = written(["5x", "6y"]), torch.tensor([5.0, NAN])
    per_token = torch.tensor([[1.0, 2.0], [3.0, 3.0]])
    grading.record(rollouts(other, rewards, 2, per_token), step=0)
    grading.write_log(1)
    lines = (tmp_path / "step_000001_rank_0.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [(e["completion"], e["rewards"], e["advantage"]) for e in found] == [
        ("1a", {"value": 1.0}, 0.0),
        ("2b", {"value": 2.0}, 1.0),
        ("5x", {"total": 5.0}, 1.5),
        ("6y", {"total": None}, 3.0),
    ]


def test_a_reward_that_grades_nothing_beside_one_that_does_is_told(caplog) -> None:
    AcceleratorState._reset_state(reset_partial_state=True)

    def silent(completions: list[str], **_: Any) -> list[float | None]:
        return [1.0 if "3" in text else None for text in completions]

    calls = RewardCalls(["value", "silent"], [value, silent], [1.0, 1.0])
    grading = Grading(calls, Accelerator(cpu=True), Metrics())
    record(grading, ["3", "2"], group=2)
    assert "graded none" not in caplog.text
    for _ in range(2):
        record(grading, ["1", "2"], group=2)
    assert caplog.text.count("reward silent graded none of 2 completions") == 1
    assert "reward value graded none" not in caplog.text
