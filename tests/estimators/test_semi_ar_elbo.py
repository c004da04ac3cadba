"""Block by block: one random block or every block have the mean of a sum of ELBOs."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from estimators import SemiArElbo, Sequences
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
from tests.tiny_models import TinyDenoiser, pad_left, random_rows, sequences

FOUR = [1, 2, 1, 1]
ENDED = [2, 1, 0, 2, 1]  # blocks of 2: two scored tokens, one, none


def block_elbo(model: TinyDenoiser, seqs: Sequences, block: list[int], later: list[int]) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for z in subsets(block):
        if z:
            weight = 1 / len(z) / math.comb(len(block), len(z))
            total = total + weight * masked_sum(model, seqs, z, later)
    return total


def one_block_cases(blocks: list[list[int]], length: int) -> list[Case]:
    cases: list[Case] = []
    for number, block in enumerate(blocks):
        for z in subsets(block):
            if z:
                chance = 1 / len(blocks) / len(block) / math.comb(len(block), len(z))
                k = (len(z) - 0.5) / len(block)
                cases.append((chance, (number + 0.5) / len(blocks), k, noise(z, length)))
    return cases


@pytest.mark.parametrize("samples", [1, 2])
def test_one_random_block_has_the_mean_of_the_sum_over_blocks(samples: int) -> None:
    model, seqs = TinyDenoiser(), sequences([FOUR])
    expected = block_elbo(model, seqs, [0, 1], [2, 3]) + block_elbo(model, seqs, [2, 3], [])
    est = SemiArElbo(block_length=2, samples=samples)
    cases = one_block_cases([[0, 1], [2, 3]], 4)
    assert_same(model, expectation(est, model, seqs, cases), expected)


def test_blocks_after_eos_are_left_out_and_hidden() -> None:
    model, seqs = TinyDenoiser(), sequences([ENDED])
    expected = block_elbo(model, seqs, [0, 1], [2, 3, 4]) + block_elbo(model, seqs, [2], [3, 4])
    est = SemiArElbo(block_length=2)
    cases = one_block_cases([[0, 1], [2]], 5)
    assert_same(model, expectation(est, model, seqs, cases), expected)


def test_every_block_has_the_same_mean() -> None:
    model, seqs = TinyDenoiser(), sequences([FOUR])
    est = SemiArElbo(block_length=2, blocks="every")
    cases: list[Case] = [
        (1 / 48, k, [(rank + 0.5) / 4 for rank in order])
        for k in (0.25, 0.75)
        for order in itertools.permutations(range(4))
    ]
    expected = block_elbo(model, seqs, [0, 1], [2, 3]) + block_elbo(model, seqs, [2, 3], [])
    assert_same(model, expectation(est, model, seqs, cases), expected)


def test_every_block_by_hand() -> None:
    """ENDED in blocks of 2, k = 1 of 2 and 1 of 1; the third block has nothing to score."""
    est = SemiArElbo(block_length=2, blocks="every")
    draws = torch.tensor([0.3]), torch.tensor([[0.9, 0.1, 0.5, 0.5, 0.5]])
    plan = est.plan(sequences([ENDED]), Scripted(*draws))
    assert plan.weight.tolist() == [[[0, 2, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]]]
    assert plan.completion[0, :2].int().tolist() == [[0, 1, 1, 1, 1], [0, 0, 1, 1, 1]]


@pytest.mark.parametrize("block_length", [None, 4, 100])
def test_one_block_is_the_elbo(block_length: int | None) -> None:
    model, seqs = TinyDenoiser(), sequences([FOUR])
    est = SemiArElbo(block_length=block_length)
    cases = one_block_cases([[0, 1, 2, 3]], 4)
    assert_same(model, expectation(est, model, seqs, cases), elbo(model, seqs))


def test_context_is_masked_at_its_rate_and_never_scored() -> None:
    """The prompt and the blocks before the chosen one; 12,000 draws or more, error 0.0045."""
    seqs = sequences([[1] * 8] * 3000, prompts=[[1, 2, 1, 2]] * 3000)
    est = SemiArElbo(block_length=2, context_mask_prob=0.4)
    plan = est.plan(seqs, random_rows(*range(3000)))
    assert abs(plan.prompt.double().mean().item() - 0.4) < 4 * 0.0045
    last = plan.weight[:, 0, 6:].ne(0).any(-1)  # rows whose block is the last
    assert 600 < last.sum() < 900
    earlier = plan.completion[last][:, 0, :6].double()
    assert abs(earlier.mean().item() - 0.4) < 4 * 0.0085
    assert not plan.weight[last][:, 0, :6].any()
    clean = SemiArElbo(block_length=2).plan(seqs, random_rows(*range(3000)))
    assert not clean.prompt.any()
    assert torch.equal(clean.weight, plan.weight), "context noise moves no other draw"


def test_padding_moves_no_draw() -> None:
    seqs = sequences([FOUR] * 20, prompts=[[1, 2, 1]] * 20)
    est = SemiArElbo(block_length=2, samples=2, context_mask_prob=0.5)
    plain = est.plan(seqs, random_rows(*range(20)))
    padded = est.plan(pad_left(seqs, 3), random_rows(*range(20)))
    assert torch.equal(padded.prompt[..., 3:], plain.prompt)
    assert not padded.prompt[..., :3].any()
    assert torch.equal(padded.completion, plain.completion)


def test_given_text_stays_visible() -> None:
    """The fourth token is fixed: shown in every view, never scored."""
    seqs = sequences([FOUR] * 40, step_map=[[0, 1, 2, -1]] * 40)
    est = SemiArElbo(block_length=2, samples=2, context_mask_prob=0.5)
    plan = est.plan(seqs, random_rows(*range(40)))
    assert not plan.completion[..., 3].any()


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="samples is 0"):
        SemiArElbo(samples=0)
    with pytest.raises(ValueError, match="block_length is 0; use at least 1, or null"):
        SemiArElbo(block_length=0)
    with pytest.raises(ValueError, match=r"must be in \[0, 1\), SPG uses 0.15"):
        SemiArElbo(context_mask_prob=1.0)
