"""The supervised loss: masks and values by hand, and its mean against the exact ELBO."""

import itertools
import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from estimators import MaskPlan, Reduce, RowRandom, Sequences
from rl.sft_loss import sft_loss, sft_plan

MASK = 4  # of the table denoiser, which has the tokens 0 to 3


class TableDenoiser:
    """A distribution for every partly masked completion of 3 tokens, drawn at random."""

    mask_id = MASK

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        table = torch.randn(5, 5, 5, 3, 4, generator=generator, dtype=torch.float64).float()
        self.logits = table.requires_grad_()

    def __call__(
        self, ids: Tensor, attention: Tensor, index: Tensor, reduce: Reduce
    ) -> tuple[Tensor, ...]:
        S = ids.shape[1]
        z = ids[index // S, -3:]
        place = index % S - (S - 3)
        logits = self.logits[z[:, 0], z[:, 1], z[:, 2], place]
        entries = torch.arange(len(index))
        return reduce(logits, entries, entries)

    def logp(self, completion: Sequence[int], masked: set[int], place: int) -> float:
        z = [MASK if i in masked else token for i, token in enumerate(completion)]
        at = self.logits.detach()[z[0], z[1], z[2], place]
        return float(at.log_softmax(-1)[completion[place]])


class GivenNumbers(RowRandom):
    """Uniform numbers written down in a test."""

    def __init__(self, numbers: list[list[float]]) -> None:
        super().__init__(range(len(numbers)))
        self.numbers = torch.tensor(numbers, dtype=torch.float64)

    def per_row(self, *shape: int) -> Tensor:
        assert self.numbers.shape[1:] == shape
        return self.numbers


def sequences(completion: list[list[int]], prompt: int = 2) -> Sequences:
    ids = torch.tensor(completion)
    return Sequences(
        prompt_ids=torch.zeros(len(ids), prompt, dtype=torch.long),
        prompt_mask=torch.ones(len(ids), prompt, dtype=torch.bool),
        completion_ids=ids,
        completion_mask=torch.ones_like(ids, dtype=torch.bool),
    )


# --- where the masks go


def test_plan_by_hand() -> None:
    """t = 1 - (1 - t_min) u; a token is masked where its own number is below t, weight 1/t."""
    supervised = torch.tensor([[True, True, True], [True, True, False]])
    numbers = GivenNumbers([[0.5, 0.59, 0.61, 0.0], [0.0, 0.99, 0.0, 0.0]])
    plan = sft_plan(sequences([[1, 2, 3], [1, 2, 3]]), supervised, numbers, t_min=0.2)
    # row 0: t = 1 - 0.8 x 0.5 = 0.6; row 1: t = 1, and its last token is not supervised
    assert plan.completion.tolist() == [[[True, False, True]], [[True, True, True]]]
    assert plan.weight.tolist() == [[pytest.approx([1 / 0.6, 0, 1 / 0.6])], [[1, 1, 0]]]
    assert not plan.prompt.any()


def test_no_ratio_is_below_t_min_and_none_is_zero() -> None:
    rows = sequences([[1, 2, 3]] * 500)
    supervised = torch.ones(500, 3, dtype=torch.bool)
    for t_min in (0.0, 0.3):
        plan = sft_plan(rows, supervised, RowRandom(range(500)), t_min)
        weights = plan.weight[plan.completion]
        assert weights.isfinite().all()
        assert weights.min() >= 1
        if t_min:
            assert 3 < weights.max() <= 1 / t_min + 1e-6


# --- the loss


class TwoTokens:
    """Answers 1/4 for the first of two tokens, and 1/8 for the second where the first is hidden."""

    mask_id = 9

    def __call__(
        self, ids: Tensor, attention: Tensor, index: Tensor, reduce: Reduce
    ) -> tuple[Tensor, ...]:
        S = ids.shape[1]
        probability = torch.empty(len(index), 2)
        for k, flat in enumerate(index.tolist()):
            row, place = flat // S, flat % S - (S - 2)
            p = 1 / 4 if place == 0 else 1 / 8 if ids[row, -2] == self.mask_id else 1 / 2
            probability[k] = torch.tensor([1 - p, p])
        entries = torch.arange(len(index))
        return reduce(probability.log(), entries, entries)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [  # u -> t = 1 - u (t_min is 0); a token is masked where its number is below t
        ([0.5, 0.2, 0.9], math.log(4) / 0.5 / 2),  # first token only
        ([0.75, 0.9, 0.1], math.log(2) / 0.25 / 2),  # second only, which sees the first
        ([0.0, 0.2, 0.9], (math.log(4) + math.log(8)) / 2),  # both
        ([0.9, 0.2, 0.9], 0.0),  # none
    ],
)
def test_loss_of_two_tokens_by_hand(numbers: list[float], expected: float) -> None:
    rows = sequences([[1, 1]])
    supervised = torch.ones(1, 2, dtype=torch.bool)
    plan = sft_plan(rows, supervised, GivenNumbers([numbers]), t_min=0.0)
    assert float(sft_loss(TwoTokens(), rows, plan, 2.0)) == pytest.approx(expected, abs=1e-6)


def test_weights_integrate_to_the_exact_elbo() -> None:
    """With t_min = 0 the mean over t and masks is the mean over all orders of the chain rule."""
    denoiser, completion = TableDenoiser(), [2, 0, 3]
    orders = list(itertools.permutations(range(3)))
    elbo = sum(
        denoiser.logp(completion, set(order[k:]), order[k]) for order in orders for k in range(3)
    ) / len(orders)
    assert expected_loss(denoiser, completion, 0.0) * 3 == pytest.approx(-elbo, abs=1e-6)
    assert expected_loss(denoiser, completion, 0.3) * 3 != pytest.approx(-elbo, abs=1e-2)


def expected_loss(denoiser: TableDenoiser, completion: list[int], t_min: float) -> float:
    """Mean loss per token: midpoint rule over t, every set of masked positions."""
    points = 20_000
    t = [t_min + (1 - t_min) * (i + 0.5) / points for i in range(points)]
    total = 0.0
    for k in (1, 2, 3):
        chance = sum(x ** (k - 1) * (1 - x) ** (3 - k) for x in t) / points  # t^k (1-t)^(3-k) / t
        for masked in itertools.combinations(range(3), k):
            total -= chance * sum(denoiser.logp(completion, set(masked), i) for i in masked)
    return total / 3


def test_monte_carlo_mean_is_the_integral() -> None:
    """Drawn masks and weights: within 4 standard errors, which are below 1 % of the value."""
    denoiser, completion, n = TableDenoiser(), [2, 0, 3], 40_000
    rows = sequences([completion] * n)
    supervised = torch.ones(n, 3, dtype=torch.bool)
    plan = sft_plan(rows, supervised, RowRandom(range(n)), t_min=0.05)
    with torch.no_grad():
        loss = float(sft_loss(denoiser, rows, plan, 3.0 * n))
        each = row_losses(denoiser, rows, plan) / 3
    assert loss == pytest.approx(float(each.mean()), rel=1e-4)
    error = float(each.std()) / math.sqrt(n)
    expected = expected_loss(denoiser, completion, 0.05)
    assert error < 0.01 * expected
    assert abs(loss - expected) < 4 * error


def row_losses(denoiser: TableDenoiser, rows: Sequences, plan: MaskPlan) -> Tensor:
    ids = rows.completion_ids.masked_fill(plan.completion[:, 0], MASK)
    logp = denoiser.logits[ids[:, 0], ids[:, 1], ids[:, 2]].log_softmax(-1)
    return -(plan.weight[:, 0] * logp.gather(-1, rows.completion_ids[..., None])[..., 0]).sum(-1)


def test_gradient_reaches_the_parameters() -> None:
    denoiser, rows = TableDenoiser(), sequences([[2, 0, 3]])
    plan = sft_plan(
        rows, torch.ones(1, 3, dtype=torch.bool), GivenNumbers([[0.5, 0.1, 0.9, 0.2]]), 0.0
    )
    sft_loss(denoiser, rows, plan, 3.0).backward()
    at = denoiser.logits[MASK, 0, MASK].detach().softmax(-1)
    # d(-log p_token)/d logits = p - onehot, times weight 1/t = 2, over 3 tokens
    expected = torch.zeros(3, 4)
    expected[0] = 2 / 3 * (at[0] - torch.eye(4)[2])
    expected[2] = 2 / 3 * (at[2] - torch.eye(4)[3])
    torch.testing.assert_close(denoiser.logits.grad[MASK, 0, MASK], expected)


def test_without_masks_the_gradient_is_zero_not_missing() -> None:
    denoiser, rows = TableDenoiser(), sequences([[2, 0, 3]])
    plan = sft_plan(
        rows, torch.ones(1, 3, dtype=torch.bool), GivenNumbers([[0.9, 0.5, 0.5, 0.5]]), 0.0
    )
    loss = sft_loss(denoiser, rows, plan, 3.0)
    loss.backward()
    assert loss.item() == 0
    assert denoiser.logits.grad.count_nonzero() == 0
