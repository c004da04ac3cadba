"""The one-step estimate: its value by hand, its shared forward, and where prompts are masked."""

from math import log

import pytest
import torch
from torch import Tensor

from estimators import Decoding, MeanField, Reduce, RowRandom
from tests.tiny_models import TinyDenoiser, bert, pad_left, random_rows, sequences


class PromptTable:
    """p = (1/2, 1/4, 1/4) while the whole prompt is visible, else (1/8, 1/8, 3/4)."""

    mask_id = 3

    def __call__(
        self, ids: Tensor, attention: Tensor, index: Tensor, reduce: Reduce
    ) -> tuple[Tensor, ...]:
        S = ids.shape[1]
        seen = (ids[:, :2] != self.mask_id).all(1)[index // S, None]
        assert (ids[:, 2:] == self.mask_id).all(), "the completion must be hidden"
        clear, masked = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.125, 0.125, 0.75])
        every = torch.arange(len(index))
        return reduce(torch.where(seen, clear, masked).log(), every, every)


class Uniform(RowRandom):
    """Draws the same numbers for every row."""

    def __init__(self, rows: int, numbers: list[float]) -> None:
        super().__init__([0] * rows)
        self.numbers = torch.tensor(numbers, dtype=torch.float64)

    def per_row(self, *shape: int) -> Tensor:
        return self.numbers[: shape[0]].expand(len(self), *shape)

    per_group = per_row


def test_value_by_hand_with_and_without_a_masked_prompt_token() -> None:
    seqs = sequences([[1, 2, 0, 2]])  # EOS at the third place ends it
    est = MeanField(prompt_mask_prob=0.15)
    clear = est(PromptTable(), seqs, est.plan(seqs, Uniform(1, [0.15, 0.9])))
    masked = est(PromptTable(), seqs, est.plan(seqs, Uniform(1, [0.14, 0.9])))
    expected = torch.tensor([[log(0.25), log(0.25), log(0.5), 0.0]])
    torch.testing.assert_close(clear.token_logp, expected)
    expected = torch.tensor([[log(0.125), log(0.75), log(0.125), 0.0]])
    torch.testing.assert_close(masked.token_logp, expected)
    assert masked.token_mask.tolist() == [[True, True, True, False]]
    assert masked.sequence_logp.item() == pytest.approx(2 * log(0.125) + log(0.75), abs=1e-6)


@pytest.mark.parametrize(("share", "forwards"), [("group", 2), ("row", 6)])
def test_a_shared_prompt_mask_costs_one_forward_per_prompt(share: str, forwards: int) -> None:
    denoiser = bert()
    prompts = [[1, 2, 3, 4, 5, 6, 7, 8]] * 3 + [[8, 7, 6, 5, 4, 3, 2, 1]] * 3
    completions = [[1, 2, 3], [4, 5, 6], [7, 8, 1], [2, 3, 4], [5, 6, 7], [8, 1, 2]]
    seqs = sequences(completions, prompts=prompts)
    random = random_rows(1, 2, 3, 4, 5, 6, groups=[7, 7, 7, 8, 8, 8])
    est = MeanField(prompt_mask_prob=0.5, share_prompt_mask=share)  # pyright: ignore[reportArgumentType]
    plan = est.plan(seqs, random)
    distinct = [plan.prompt[i : i + 3].unique(dim=0) for i in (0, 3)]
    est(denoiser, seqs, plan)
    assert denoiser.forwards == sum(map(len, distinct)) == forwards


def test_sharing_a_forward_changes_no_gradient() -> None:
    """Against one dense forward per completion."""
    denoiser = bert()
    denoiser.model.double()  # so that 1e-6 is not rounding
    seqs = sequences([[1, 2, 3], [4, 5, 6], [7, 8, 1]], prompts=[[1, 2, 3, 4]] * 3)
    est = MeanField(prompt_mask_prob=0.5)
    plan = est.plan(seqs, random_rows(1, 2, 3, groups=[7, 7, 7]))
    share = torch.tensor([1.0, -2.0, 0.5])

    def gradient(values: list[Tensor]) -> Tensor:
        denoiser.model.zero_grad()
        (torch.stack(values) * share).sum().backward()
        return torch.cat(
            [p.grad.flatten() for p in denoiser.model.parameters() if p.grad is not None]
        )

    found = gradient(list(est(denoiser, seqs, plan).sequence_logp))
    assert denoiser.forwards == 1
    naive: list[Tensor] = []
    for b in range(3):
        prompt = seqs.prompt_ids[b].masked_fill(plan.prompt[b, 0], denoiser.mask_id)
        ids = torch.cat([prompt, torch.full((3,), denoiser.mask_id)])[None]
        logits = denoiser.model(input_ids=ids).logits[0, 4:].float()
        allowed = logits.index_fill(-1, torch.tensor(denoiser.forbidden), -torch.inf)
        logp = allowed.log_softmax(-1)
        naive.append(logp.gather(-1, seqs.completion_ids[b, :, None]).sum())
    expected = gradient(naive)
    assert (found - expected).norm() < 1e-6 * expected.norm()


def test_every_prompt_token_is_masked_at_the_stated_rate() -> None:
    """30,000 draws, standard error 0.0021."""
    seqs = sequences([[1]] * 10_000, prompts=[[1, 2, 1]] * 10_000)
    plan = MeanField(prompt_mask_prob=0.15).plan(seqs, random_rows(*range(10_000)))
    assert abs(plan.prompt.float().mean().item() - 0.15) < 4 * 0.0021


def test_no_prompt_token_is_masked_at_rate_zero() -> None:
    plan = MeanField(prompt_mask_prob=0.0).plan(sequences([[1]] * 100), random_rows(*range(100)))
    assert not plan.prompt.any()


@pytest.mark.parametrize("share", ["group", "row"])
def test_left_padding_changes_no_draw_and_is_never_masked(share: str) -> None:
    seqs = sequences([[1, 2]] * 50, prompts=[[1, 2, 1, 2, 1]] * 50)
    est = MeanField(prompt_mask_prob=0.5, share_prompt_mask=share)  # pyright: ignore[reportArgumentType]
    plain = est.plan(seqs, random_rows(*range(50)))
    padded = est.plan(pad_left(seqs, 3), random_rows(*range(50)))
    assert torch.equal(padded.prompt[:, :, 3:], plain.prompt)
    assert not padded.prompt[:, :, :3].any()
    assert plain.prompt.any()


def test_tokens_of_a_group_share_the_mask_and_groups_differ() -> None:
    seqs = sequences([[1]] * 4, prompts=[[1, 2] * 10] * 4)
    random = random_rows(1, 2, 3, 4, groups=[5, 6, 5, 6])
    plan = MeanField(prompt_mask_prob=0.5).plan(seqs, random)
    assert torch.equal(plan.prompt[0], plan.prompt[2])
    assert torch.equal(plan.prompt[1], plan.prompt[3])
    assert not torch.equal(plan.prompt[0], plan.prompt[1])


def test_it_never_scores_at_the_rollout_temperature_unless_asked() -> None:
    seqs = sequences([[1, 2, 1]])
    model, est = TinyDenoiser(), MeanField(prompt_mask_prob=0.0)
    hot = MeanField(prompt_mask_prob=0.0, at_rollout_temperature=True)
    plan = est.plan(seqs, random_rows(0))
    plain = est(model, seqs, plan)
    assert torch.equal(
        est(model, seqs, plan, Decoding(temperature=0.5)).token_logp, plain.token_logp
    )
    with torch.no_grad():
        model.W.mul_(2.0)
    halved = hot(model, seqs, plan, Decoding(temperature=2.0))
    torch.testing.assert_close(halved.token_logp, plain.token_logp, rtol=0, atol=1e-12)


@pytest.mark.parametrize("probability", [-0.1, 1.0])
def test_a_rate_outside_its_range_is_refused(probability: float) -> None:
    with pytest.raises(ValueError, match=r"it must be in \[0, 1\), d1 uses 0.15"):
        MeanField(prompt_mask_prob=probability)
