"""What each estimator shows and scores of the text after the first EOS."""

from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch import Tensor

from estimators import AfterEos, Elbo, Estimator, MeanField, Trajectory, TrajectorySubset
from rl.samplers import SAMPLERS
from tests.tiny_models import MASK, TinyDenoiser, random_rows, sequences

M = MASK

# One row: EOS is the second of five tokens, written in steps 3, 1, 0, 2, 0.
ENDED = ([[1, 0, 2, 1, 2]], [[3, 1, 0, 2, 0]])
ONE_STEP = {
    "mask": ([[M, M, M, M, M]], [1, 1, 0, 0, 0]),
    "keep": ([[M, M, 2, 1, 2]], [1, 1, 0, 0, 0]),
    "score": ([[M, M, M, M, M]], [1, 1, 1, 1, 1]),
}
WHOLE_TRAJECTORY = {
    "mask": ([[M, 0, M, M, M], [M, M, M, M, M]], [1, 1, 0, 0, 0]),
    "keep": ([[M, M, 2, M, 2], [M, 0, 2, 1, 2]], [1, 1, 0, 0, 0]),
    "score": (
        [[M, 0, 2, 1, 2], [M, 0, 2, M, 2], [M, M, 2, M, 2], [M, M, M, M, M]],
        [1, 1, 1, 1, 1],
    ),
}


@pytest.mark.parametrize("option", get_args(AfterEos))
@pytest.mark.parametrize(
    ("est", "expected"),
    [(MeanField(prompt_mask_prob=0.0), ONE_STEP), (Trajectory(segments=None), WHOLE_TRAJECTORY)],
    ids=["mean_field", "trajectory"],
)
def test_what_the_model_sees_after_eos(est: Estimator, expected, option: AfterEos) -> None:
    model = TinyDenoiser()
    seqs = sequences(ENDED[0], step_map=ENDED[1])
    est = replace(est, after_eos=option)
    found = est(model, seqs, est.plan(seqs, random_rows(0)))
    canvases, scored = expected[option]
    assert sorted(model.seen[0][:, 2:].tolist()) == sorted(canvases)
    assert found.token_mask.int().tolist() == [scored] == est.scored(seqs).int().tolist()


@pytest.mark.parametrize("option", get_args(AfterEos))
@pytest.mark.parametrize(
    "est",
    [Trajectory(segments=None), TrajectorySubset(m=3, by="first", importance=False)],
    ids=["all", "first"],
)
@pytest.mark.parametrize("rule", SAMPLERS)
def test_the_model_sees_the_canvas_of_the_step(rule: str, est: Estimator, option: AfterEos) -> None:
    """What the sampler showed it at each step that wrote a scored token, after EOS too."""
    prompt = torch.tensor([[1, 2]])
    est, shared = replace(est, after_eos=option), 0
    for seed in range(12):
        model = TinyDenoiser()
        rollout = SAMPLERS[rule](steps=3)(model, prompt, prompt > 0, 6, [seed])
        canvases = torch.cat(model.seen)[:, 2:]  # of each step
        seqs = sequences(rollout.completion_ids.tolist(), step_map=rollout.step_map.tolist())
        hidden = ~seqs.completion_mask if option == "mask" else seqs.completion_mask & False
        scored = torch.ones_like(hidden) if option == "score" else seqs.completion_mask
        own, others = (set(rollout.step_map[which].tolist()) for which in (scored, ~scored))
        expected = [canvases[k].masked_fill(hidden[0], M).tolist() for k in sorted(own)]
        model.seen.clear()
        est(model, seqs, est.plan(seqs, random_rows(seed)))
        assert sorted(model.seen[0][:, 2:].tolist()) == sorted(expected)
        shared += bool(own & others)
    assert (shared > 0) == (option != "score"), "no step wrote on both sides of an EOS"


@pytest.mark.parametrize("option", get_args(AfterEos))
@pytest.mark.parametrize("coupled", [False, True])
def test_what_an_elbo_shows_after_eos(coupled: bool, option: AfterEos) -> None:
    model = TinyDenoiser()
    seqs = sequences(ENDED[0])
    est = Elbo(samples=200, coupled=coupled, after_eos=option)
    found = est(model, seqs, est.plan(seqs, random_rows(0)))
    seen = model.seen[0][:, 2:]
    before, after = _variants(seen[:, :2]), _variants(seen[:, 2:])
    assert before == {(M, M), (1, M), (M, 0)} | ({(1, 0)} if option == "score" else set())
    if option == "mask":
        assert after == {(M, M, M)}
    elif option == "keep":
        assert after == {(2, 1, 2)}
    else:
        assert len(after) == 8
    scored = [1, 1, 1, 1, 1] if option == "score" else [1, 1, 0, 0, 0]
    assert found.token_mask.int().tolist() == [scored] == est.scored(seqs).int().tolist()


def _variants(ids: Tensor) -> set[tuple[int, ...]]:
    return {tuple(row) for row in ids.tolist()}
