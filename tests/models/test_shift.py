"""Shift 1: the hidden state before a token predicts it, except the row's first real token."""

import pytest
import torch
from torch import Tensor

from rl.models.denoiser import ModelDenoiser
from tests.tiny_models import llama

IDS = torch.tensor([[1, 2, 3, 11, 11, 5], [0, 0, 7, 11, 4, 11], [1, 2, 3, 11, 11, 5]])
REAL = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]).bool()
EVERY = REAL.flatten().nonzero()[:, 0]


def ask(denoiser: ModelDenoiser, index: Tensor) -> Tensor:
    with denoiser.evaluating():
        logits, entries = denoiser(IDS, REAL, index, lambda x, e, row: (x[row], e.clone()))
    assert torch.equal(entries, torch.arange(len(index)))
    return logits[:, :10]


def by_hand(model: torch.nn.Module) -> Tensor:
    """The hub's way, on each row without its padding: logits[:, :1], then logits[:, :-1]."""
    rows: list[Tensor] = []
    for ids, real in zip(IDS, REAL, strict=True):
        S = int(real.sum())
        everyone = torch.ones(1, 1, S, S, dtype=torch.bool)
        with torch.no_grad():
            logits = model(input_ids=ids[real][None], attention_mask=everyone).logits
        rows.append(torch.cat([logits[:, :1], logits[:, :-1]], dim=1)[0])
    return torch.cat(rows)[:, :10]


def test_every_token_is_predicted_as_the_hub_aligns_it() -> None:
    denoiser = llama(shift=1)
    expected = by_hand(denoiser.model)
    torch.testing.assert_close(ask(denoiser, EVERY), expected, rtol=0, atol=1e-5)
    unshifted = ask(llama(), EVERY)
    assert (unshifted - expected).abs().amax(-1)[1:].gt(1e-3).any()


def test_the_first_real_token_reads_itself_and_so_does_nothing_else() -> None:
    shifted, plain = llama(shift=1), llama()
    first = torch.tensor([0, 8])
    torch.testing.assert_close(ask(shifted, first), ask(plain, first), rtol=0, atol=1e-6)
    torch.testing.assert_close(ask(shifted, first + 1), ask(plain, first), rtol=0, atol=1e-6)


@pytest.mark.parametrize("index", [[4, 3, 10, 16, 3, 9], [11], [8, 9, 9, 8]])
def test_chosen_positions_are_slices_of_all(index: list[int]) -> None:
    denoiser = llama(shift=1)
    everything = ask(denoiser, EVERY)
    at = [EVERY.tolist().index(place) for place in index]
    found = ask(denoiser, torch.tensor(index))
    torch.testing.assert_close(found, everything[at], rtol=0, atol=1e-6)


def test_equal_rows_and_positions_are_still_run_once() -> None:
    denoiser = llama(shift=1)
    heads: list[int] = []
    denoiser.model.lm_head.register_forward_hook(lambda *x: heads.append(len(x[2])))
    ask(denoiser, torch.tensor([3, 4, 15, 16, 8, 9]))
    assert denoiser.forwards == 2
    assert heads == [3]  # 3 and 4 of the equal rows; 8 and 9 both read 8
