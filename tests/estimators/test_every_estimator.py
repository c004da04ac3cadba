"""What holds for every estimator, whatever it masks."""

from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch import Tensor

from estimators import (
    ESTIMATORS,
    Denoiser,
    Elbo,
    Estimate,
    Estimator,
    MaskPlan,
    MeanField,
    Sequences,
    Trajectory,
)
from estimators.base import AfterEos
from tests.tiny_models import (
    MASK,
    TinyDenoiser,
    bert,
    exact,
    llama,
    pad_left,
    random_rows,
    sequences,
)

M = MASK
EVERY = {
    "mean_field": MeanField(prompt_mask_prob=0.5),
    "mean_field by row": MeanField(prompt_mask_prob=0.5, share_prompt_mask="row"),
    "elbo": Elbo(samples=2),
    "coupled elbo": Elbo(samples=2, coupled=True),
    "trajectory": Trajectory(segments=None),
    "merged trajectory": Trajectory(segments=2),
}
every_estimator = pytest.mark.parametrize("est", EVERY.values(), ids=EVERY)
SEEDS, GROUPS = [1, 2, 3, 4], [8, 8, 9, 9]


def batch() -> Sequences:
    """Two groups of two; rows of different lengths and numbers of steps."""
    return sequences(
        [[1, 2, 0, 2], [2, 1, 1, 1], [1, 0, 1, 2], [2, 2, 2, 0]],
        prompts=[[1, 2, 1], [1, 2, 1], [2, 2, 1], [2, 2, 1]],
        step_map=[[0, 1, 2, 3], [2, 0, 1, 1], [1, 1, 0, 0], [3, 2, 1, 0]],
    )


def pick(values: list[int], index: list[int]) -> list[int]:
    return [values[i] for i in index]


def planned(est: Estimator, seqs: Sequences, index: list[int] | None = None) -> MaskPlan:
    """The plan of `seqs`, rows `index` of the batch, drawn for them alone."""
    index = index or [0, 1, 2, 3]
    return est.plan(seqs, random_rows(*pick(SEEDS, index), groups=pick(GROUPS, index)))


def test_the_registry_holds_every_estimator() -> None:
    assert set(ESTIMATORS.values()) == {type(est) for est in EVERY.values()}


@every_estimator
@pytest.mark.parametrize("make", [TinyDenoiser, bert, llama])
def test_the_ratio_is_one_however_rows_are_grouped(est: Estimator, make) -> None:
    """Rows drawn and scored with others against the same rows apart, reordered and padded."""
    denoiser: Denoiser = make()
    atol = 1e-12 if make is TinyDenoiser else 1e-5
    seqs = batch()
    plan = planned(est, seqs)
    old = est(denoiser, seqs, plan)
    again = est(denoiser, seqs, plan)
    assert torch.equal(again.token_logp, old.token_logp)
    for index in ([2], [3, 0], [1, 3, 2, 0]):
        rows = torch.tensor(index)
        split = est(denoiser, seqs.rows(rows), plan.rows(rows))
        redrawn = _scored_apart(est, denoiser, pad_left(seqs.rows(rows), 2), index)
        for new in (split, redrawn):
            torch.testing.assert_close(new.token_logp, old.token_logp[rows], rtol=0, atol=atol)
            assert torch.equal(new.token_mask, old.token_mask[rows])


def _scored_apart(
    est: Estimator, denoiser: Denoiser, seqs: Sequences, index: list[int]
) -> Estimate:
    return est(denoiser, seqs, planned(est, seqs, index))


@every_estimator
def test_gradient_reaches_the_parameters(est: Estimator) -> None:
    """Slope along a random direction against a central difference."""
    model, seqs = TinyDenoiser(), batch()
    plan = exact(planned(est, seqs))
    share = torch.tensor([1.0, -0.5, 2.0, 0.3], dtype=torch.float64)

    def value() -> Tensor:
        return (est(model, seqs, plan).sequence_logp * share).sum()

    value().backward()
    for weight in (model.E, model.W):
        direction = torch.randn(
            weight.shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64
        )
        assert weight.grad is not None
        slope = (weight.grad * direction).sum()
        h = 1e-5
        with torch.no_grad():
            weight += h * direction
            up = value()
            weight -= 2 * h * direction
            down = value()
            weight += h * direction
        assert slope.abs() > 1e-2
        torch.testing.assert_close(slope, (up - down) / (2 * h), rtol=1e-7, atol=1e-7)


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
