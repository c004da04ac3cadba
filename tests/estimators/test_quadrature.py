"""GDPO's quadrature: exact as long as 2N reaches the number of tokens, by value and gradient."""

import math

import pytest
import torch

from estimators import Quadrature
from estimators.quadrature import gauss_legendre
from tests.estimators.every_draw import (
    Case,
    Scripted,
    assert_same,
    elbo,
    expectation,
    masked_sum,
    noise,
    subsets,
)
from tests.tiny_models import TinyDenoiser, random_rows, sequences

# length -> completion
COMPLETIONS = {2: [1, 2], 3: [2, 1, 1], 4: [1, 2, 1, 1]}


def test_nodes_and_weights_are_those_of_the_tables() -> None:
    t_N, w_N = gauss_legendre(2)
    assert t_N.tolist() == pytest.approx([0.5 - math.sqrt(3) / 6, 0.5 + math.sqrt(3) / 6])
    assert w_N.tolist() == pytest.approx([0.5, 0.5])
    t_N, w_N = gauss_legendre(3)
    assert t_N.tolist() == pytest.approx([0.5 - math.sqrt(0.15), 0.5, 0.5 + math.sqrt(0.15)])
    assert w_N.tolist() == pytest.approx([5 / 18, 4 / 9, 5 / 18])
    assert gauss_legendre(1)[0].tolist() == pytest.approx([0.5])


def mean(nodes: int, model: TinyDenoiser, length: int) -> torch.Tensor:
    """Expectation under law "bernoulli": nodes are independent, so each is enumerated by itself."""
    seqs = sequences([COMPLETIONS[length]])
    total = torch.zeros((), dtype=torch.float64)
    t_N, w_N = gauss_legendre(nodes)
    for t, w in zip(t_N.tolist(), w_N.tolist(), strict=True):
        for z in subsets(range(length)):
            chance = t ** len(z) * (1 - t) ** (length - len(z))
            plan = Quadrature(nodes=nodes, law="bernoulli").plan(
                seqs, Scripted(torch.tensor([noise(z, length)]))
            )
            place = t_N.tolist().index(t)
            assert plan.completion[0, place].nonzero()[:, 0].tolist() == list(z)
            weight = plan.weight[0, place].amax()
            assert not z or weight.item() == pytest.approx(w / t)
            total = total + chance * weight * masked_sum(model, seqs, z)
    return total


@pytest.mark.parametrize("length", [2, 3, 4])
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_bernoulli_masks_are_exact_iff_there_are_no_more_than_2n_tokens(nodes, length) -> None:
    model = TinyDenoiser()
    found, expected = mean(nodes, model, length), elbo(model, sequences([COMPLETIONS[length]]))
    if length <= 2 * nodes:
        assert_same(model, found, expected)
    else:
        assert (found - expected).abs() > 1e-3


@pytest.mark.parametrize(("nodes", "sizes"), [(1, [2]), (2, [1, 3]), (3, [1, 2, 4])])
def test_counts_are_rounded_and_never_zero(nodes: int, sizes: list[int]) -> None:
    """4 tokens: t N = 2; 0.85, 3.15; 0.45 (raised to 1), 2, 3.55."""
    plan = Quadrature(nodes=nodes).plan(sequences([COMPLETIONS[4]] * 9), random_rows(*range(9)))
    assert plan.completion.sum(-1).tolist() == [sizes] * 9
    t_N, w_N = gauss_legendre(nodes)
    expected = plan.completion * (w_N / t_N)[:, None]
    torch.testing.assert_close(plan.weight, expected, rtol=0, atol=1e-12)


def test_the_mean_under_counts_is_the_quadrature_of_the_rounded_profile() -> None:
    """Value and gradient; a set of size 1 and a set of size 3, for 4 tokens and 2 nodes."""
    model, seqs = TinyDenoiser(), sequences([COMPLETIONS[4]])
    cases: list[Case] = [
        (1 / 16, [noise([i], 4), noise([j for j in range(4) if j != out], 4)])
        for i in range(4)
        for out in range(4)
    ]
    t_N, w_N = gauss_legendre(2)
    small = torch.stack([masked_sum(model, seqs, [i]) for i in range(4)]).mean()
    large = torch.stack(
        [masked_sum(model, seqs, [j for j in range(4) if j != i]) for i in range(4)]
    ).mean()
    expected = w_N[0] / t_N[0] * small + w_N[1] / t_N[1] * large
    assert_same(model, expectation(Quadrature(), model, seqs, cases), expected)


def test_no_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="nodes is 0; use at least 1, GDPO uses 2 or 3"):
        Quadrature(nodes=0)
