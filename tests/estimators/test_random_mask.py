"""RandomMask: masked-mean is the ELBO, flat is not, and the grid ends fully masked."""

import pytest
import torch

from estimators import RandomMask, RowRandom, Sequences
from tests.estimators.every_draw import (
    Scripted,
    assert_same,
    count_cases,
    elbo,
    expectation,
    weighted_sets,
)
from tests.tiny_models import TinyDenoiser, random_rows, sequences

FOUR = [1, 2, 1, 1]


def one() -> Sequences:
    return sequences([FOUR])


@pytest.mark.parametrize("coupled", [False, True])
def test_the_mean_of_masked_means_is_the_elbo(coupled: bool) -> None:
    model = TinyDenoiser()
    found = expectation(
        RandomMask(coupled=coupled), model, one(), count_cases(4, 4, lowest=1 - coupled)
    )
    assert_same(model, found, elbo(model, one()))


@pytest.mark.parametrize("coupled", [False, True])
def test_flat_weights_count_large_masks_too_much(coupled: bool) -> None:
    """1 / mean ratio = 2 for each of 4 sizes; 1 for each of 5 sizes of z and of its complement."""
    model = TinyDenoiser()
    est = RandomMask(weighting="flat", coupled=coupled)
    found = expectation(est, model, one(), count_cases(4, 4, lowest=1 - coupled))
    weight = [0.4] * 5 if coupled else [0.5] * 5
    assert_same(model, found, weighted_sets(model, one(), weight))


def test_weights_stand_outside_of_the_ratio() -> None:
    """A mask of one of four tokens: its log-prob is plain, and weighs 4 in sums."""
    model, est = TinyDenoiser(), RandomMask()
    draws = torch.tensor([0.1]), torch.tensor([[0.9, 0.1, 0.8, 0.7]])
    plan = est.plan(one(), Scripted(*draws))
    found = est(model, one(), plan)
    assert plan.weight.tolist() == [[[0, 1, 0, 0]]]
    assert found.token_weight.tolist() == [[0, 4, 0, 0]]
    assert found.sequence_logp.item() == pytest.approx(4 * found.token_logp[0, 1].item())


@pytest.mark.parametrize(("pass_index", "masked"), [(0, 3), (1, 5), (2, 7), (3, 9), (4, 10)])
def test_a_grid_goes_in_equal_steps_from_the_first_ratio_to_one(pass_index, masked) -> None:
    """First ratio 0.2 + 0.5 x 0.2 = 0.3, then 0.475, 0.65, 0.825, 1; ten tokens."""
    seqs = sequences([[1] * 10])
    est = RandomMask(grid=True, min_ratio=0.2, max_ratio=0.4)
    noise = torch.arange(10)[None] / 10
    random = Scripted(torch.tensor([0.5]), noise, pass_index=pass_index, passes=5)
    plan = est.plan(seqs, random)
    # k = 1 + floor(10 ratio): one more than 10 x 0.3 could round either way, so not there
    found = int(plan.completion.sum())
    assert found in ((3, 4) if pass_index == 0 else (masked,))
    assert plan.importance is not None
    assert plan.importance.item() == pytest.approx(10 / found)


def test_a_grid_needs_no_more_than_one_pass() -> None:
    seqs = sequences([[1] * 10] * 3)
    plain = RandomMask(grid=True).plan(seqs, random_rows(1, 2, 3))
    assert plain.completion.sum(-1).unique().numel() > 1


def test_the_first_ratio_is_that_of_the_row_in_every_pass() -> None:
    """Rows differ; the last pass masks all of them; passes of a row share the first ratio."""
    seqs = sequences([[1] * 40] * 6)
    sizes = [
        RandomMask(grid=True)
        .plan(
            seqs,
            RowRandom(
                [10 * p + i for i in range(6)], rollouts=list(range(6)), pass_index=p, passes=3
            ),
        )
        .completion.sum(-1)[:, 0]
        for p in range(3)
    ]
    assert sizes[0].unique().numel() > 3
    assert sizes[2].tolist() == [40] * 6
    middle = (sizes[0] + sizes[2]).double() / 2
    assert ((sizes[1] - middle).abs() <= 1).all()


def test_flat_on_a_grid_divides_by_the_mean_ratio_of_the_pass() -> None:
    """Half way from a mean first ratio of 1/2 to 1: 3/4."""
    random = Scripted(torch.tensor([0.5]), torch.rand(1, 4).double(), pass_index=1, passes=3)
    plan = RandomMask(grid=True, weighting="flat").plan(one(), random)
    assert plan.importance is not None
    assert plan.importance.tolist() == [[pytest.approx(4 / 3)]]


def test_bad_ratios_are_refused() -> None:
    with pytest.raises(ValueError, match="use 0 <= min_ratio < max_ratio <= 1"):
        RandomMask(min_ratio=0.9, max_ratio=0.1)
    with pytest.raises(ValueError, match="do not go with coupled"):
        RandomMask(coupled=True, grid=True)
    with pytest.raises(ValueError, match="do not go with coupled"):
        RandomMask(coupled=True, max_ratio=0.5)
