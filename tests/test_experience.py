"""Cutting a rollout into micro-batches keeps everything about a row together."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from estimators import Estimate, MaskPlan
from rl.experience import Experience
from tests.tiny_models import sequences


def experience(advantages: list[float]) -> Experience:
    """Row i holds the number i everywhere; two passes."""
    B, L = len(advantages), 2
    row = torch.arange(B)

    def spread(x: Tensor, *shape: int) -> Tensor:
        return x.view(-1, *[1] * len(shape)).expand(B, *shape)

    def plan(k: int) -> MaskPlan:
        hidden = torch.ones(B, 1, L, dtype=torch.bool)
        weight = spread(row + 100.0 * (k + 1), 1, L)
        return MaskPlan(prompt=torch.zeros(B, 1, 2).bool(), completion=hidden, weight=weight)

    def estimate(k: int) -> Estimate:
        logp = spread(row + 10.0 * k, L)
        return Estimate(token_logp=logp, token_mask=torch.ones(B, L).bool())

    return Experience(
        sequences=sequences([[i, i] for i in range(B)]),
        plans=(plan(0), plan(1)),
        old=(estimate(0), estimate(1)),
        ref=(),
        scored=spread(row % 2 == 0, L),
        advantages=torch.tensor(advantages),
        groups=row // 2,
    )


def assert_holds(part: Experience, rows: list[int]) -> None:
    index = torch.tensor(rows)
    assert len(part) == len(rows)
    assert torch.equal(part.sequences.completion_ids[:, 0], index)
    for k in (0, 1):
        assert part.plans[k].weight[:, 0, 0].tolist() == [100.0 * (k + 1) + row for row in rows]
        assert part.old[k].token_logp[:, 0].tolist() == [10.0 * k + row for row in rows]
    assert part.ref == ()
    assert torch.equal(part.scored[:, 0], index % 2 == 0)


def test_rows_are_taken_from_everything() -> None:
    assert_holds(experience([1.0] * 5).rows(torch.tensor([3, 0])), [3, 0])


def test_split_is_in_order_and_complete() -> None:
    parts = experience([1.0] * 6).split(3)
    for part, rows in zip(parts, ([0, 1], [2, 3], [4, 5]), strict=True):
        assert_holds(part, rows)


def test_split_loses_no_row() -> None:
    with pytest.raises(AssertionError, match="7 rows in 3 parts"):
        experience([1.0] * 7).split(3)


def test_only_rows_with_an_advantage_contribute() -> None:
    part = experience([0.0, 0.5, 0.0, -0.5]).contributing()
    assert_holds(part, [1, 3])
    assert part.advantages.tolist() == [0.5, -0.5]


def test_one_row_stays_if_none_contributes() -> None:
    part = experience([0.0, 0.0]).contributing()
    assert_holds(part, [0])
    assert part.advantages.tolist() == [0.0]


def test_a_row_contributes_with_any_token_or_with_its_group() -> None:
    part = experience([0.0] * 6)
    per_token = torch.zeros(6, 3)
    per_token[3, 1] = -1.0
    part = replace(part, advantages=per_token)
    assert_holds(part.contributing(), [3])
    assert_holds(part.contributing(whole_groups=True), [2, 3])
