"""MaskPlan, Estimate and the one place that runs the model."""

from dataclasses import replace

import pytest
import torch

from estimators import Decoding, Estimate, MaskPlan, score
from tests.tiny_models import MASK, TinyDenoiser, sequences, token_logps


def plan_of(completion: list[list[list[int]]], weight: list[list[list[float]]]) -> MaskPlan:
    hidden = torch.tensor(completion).bool()
    return MaskPlan(
        prompt=torch.zeros(*hidden.shape[:2], 2, dtype=torch.bool),
        completion=hidden,
        weight=torch.tensor(weight),
    )


def test_each_view_gives_the_log_probs_of_its_own_masks_and_zero_elsewhere() -> None:
    model, seqs = TinyDenoiser(), sequences([[1, 2, 0]])
    plan = plan_of([[[1, 0, 1], [0, 1, 1]]], [[[2.0, 0, 0], [0, 1, 1]]])
    first = token_logps(model, seqs, torch.tensor([[True, False, True]]))[0]
    second = token_logps(model, seqs, torch.tensor([[False, True, True]]))[0]
    zero = torch.zeros((), dtype=torch.float64)
    expected = torch.stack([first[0], zero, zero, zero, second[1], second[2]]).view(1, 2, 3)
    torch.testing.assert_close(score(model, seqs, plan).token, expected, rtol=0, atol=1e-12)


def test_prompt_masks_reach_the_model() -> None:
    model, seqs = TinyDenoiser(), sequences([[1, 2]])
    plan = plan_of([[[1, 1]]], [[[1.0, 1]]])
    score(model, seqs, replace(plan, prompt=torch.tensor([[[False, True]]])))
    assert model.seen[0].tolist() == [[1, MASK, MASK, MASK]]


def test_temperature_divides_the_logits() -> None:
    model, seqs = TinyDenoiser(), sequences([[1, 2]])
    plan = plan_of([[[1, 1]]], [[[1.0, 1]]])
    hot = score(model, seqs, plan, Decoding(temperature=0.5)).token
    with torch.no_grad():
        model.W.mul_(2.0)
    torch.testing.assert_close(hot, score(model, seqs, plan).token, rtol=0, atol=1e-12)


def test_views_without_weight_are_not_run() -> None:
    model, seqs = TinyDenoiser(), sequences([[1, 2]] * 2)
    plan = plan_of([[[1, 1], [1, 0]]] * 2, [[[0.0, 0], [1, 0]], [[1, 0], [0, 0]]])
    out = score(model, seqs, plan).token
    assert model.seen[0][:, 2:].tolist() == [[MASK, 2], [MASK, MASK]]
    assert out.ne(0).int().tolist() == [[[0, 0], [1, 0]], [[1, 0], [0, 0]]]


def test_weight_on_a_visible_token_is_refused() -> None:
    with pytest.raises(ValueError, match="gives weight to an unmasked position"):
        plan_of([[[1, 0]]], [[[1.0, 0.5]]])


def test_rows_pick_the_same_rows_of_every_tensor_and_leave_none_alone() -> None:
    seqs = sequences([[1, 2], [2, 0], [0, 1]], step_map=[[0, 1], [1, 0], [0, 0]])
    part = seqs.rows(torch.tensor([2, 0]))
    assert part.completion_ids.tolist() == [[0, 1], [1, 2]]
    assert part.completion_mask.tolist() == [[True, False], [True, True]]
    assert part.step_map is not None
    assert part.step_map.tolist() == [[0, 0], [0, 1]]
    assert replace(seqs, step_map=None).rows(slice(0, 1)).step_map is None
    assert plan_of([[[1, 1]]], [[[1.0, 1]]]).completion.shape[1] == 1


def test_an_estimate_sums_over_tokens_and_detaches() -> None:
    logp = torch.tensor([[-1.0, -2.0], [-0.5, 0.0]], requires_grad=True)
    estimate = Estimate(token_logp=logp, token_mask=torch.tensor([[True, True], [True, False]]))
    assert estimate.sequence_logp.tolist() == [-3.0, -0.5]
    assert estimate.sequence_logp.requires_grad
    assert not estimate.detach().token_logp.requires_grad
    assert estimate.rows(slice(1, 2)).sequence_logp.tolist() == [-0.5]
