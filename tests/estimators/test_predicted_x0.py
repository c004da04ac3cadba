"""MDPO's value of an intermediate prediction, by hand and by its loss."""

from dataclasses import replace
from math import log

import pytest
import torch

from estimators import PredictedX0
from tests.tiny_models import MASK, TinyDenoiser, random_rows, sequences, token_logps

FOUR = [1, 2, 1, 1]
STEPS = [-1, 1, 2, -1]  # the first and the last token were visible


def test_masked_tokens_are_scored_from_the_state_and_the_loss_is_mdpos() -> None:
    """L/#z = 2 times the mean over the two masked tokens."""
    model, seqs = TinyDenoiser(), sequences([FOUR], step_map=[STEPS])
    est = PredictedX0()
    found = est(model, seqs, est.plan(seqs, random_rows(0)))
    assert model.seen[0][:, 2:].tolist() == [[1, MASK, MASK, 1]]
    logp = token_logps(model, seqs, torch.tensor([[False, True, True, False]]))[0, 1:3]
    torch.testing.assert_close(found.token_logp[0, 1:3], logp)
    assert found.token_mask.tolist() == [[False, True, True, False]]
    torch.testing.assert_close(found.sequence_logp[0], 2 * logp.mean())


def test_a_state_of_masks_only_is_the_mean_of_the_one_step_value() -> None:
    model, seqs = TinyDenoiser(), sequences([FOUR], step_map=[[0, 0, 1, 1]])
    est = PredictedX0()
    found = est(model, seqs, est.plan(seqs, random_rows(0)))
    logp = token_logps(model, seqs, torch.ones(1, 4, dtype=torch.bool))[0]
    torch.testing.assert_close(found.sequence_logp[0], logp.mean())


def test_confidence_weighs_tokens_by_their_rollout_probability() -> None:
    seqs = sequences([FOUR], step_map=[STEPS])
    recorded = torch.tensor([[0, log(0.25), log(0.5), 0]], dtype=torch.float64)
    seqs = replace(seqs, rollout_logp=recorded)
    plan = PredictedX0(confidence=True).plan(seqs, random_rows(0))
    assert plan.weight[0, 0].tolist() == pytest.approx([0, 0.25, 0.5, 0])
    assert plan.importance is not None
    assert plan.importance.tolist() == [[1.0]]  # 4/2/2


def test_a_row_without_masks_is_worth_nothing() -> None:
    seqs = sequences([FOUR], step_map=[[-1] * 4])
    plan = PredictedX0().plan(seqs, random_rows(0))
    assert plan.importance is not None
    assert plan.importance.tolist() == [[0.0]]
    assert not plan.weight.any()


def test_confidence_needs_the_recorded_log_probs() -> None:
    with pytest.raises(ValueError, match=r"needs Sequences\.rollout_logp"):
        PredictedX0(confidence=True).plan(sequences([FOUR]), random_rows(0))
