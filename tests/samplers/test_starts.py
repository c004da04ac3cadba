"""Rollouts that start from something, stop early, are watched, or finish at their own time."""

import itertools
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from rl.samplers import SAMPLERS, Rollout, Sampler, Threshold
from tests.tiny_models import MASK, TinyDenoiser, bert

PROMPTS = torch.tensor([[1, 2], [2, 2], [1, 1], [2, 1]])
SEEDS = [11, 12, 13, 14]
LENGTH = 6
SETTINGS = {"threshold": {"threshold": 0.6}}

every_rule = pytest.mark.parametrize("rule", SAMPLERS)


def sampler_of(rule: str, **settings: Any) -> Sampler:
    return SAMPLERS[rule](**{"steps": LENGTH, **SETTINGS.get(rule, {}), **settings})


def write(denoiser: Any, sampler: Sampler, rows: Any = slice(None), **how: Any) -> Rollout:
    ids, seeds = PROMPTS[rows], torch.tensor(SEEDS)[rows].tolist()
    return sampler(denoiser, ids, torch.ones_like(ids).bool(), LENGTH, seeds, **how)


def assert_same(found: Rollout, expected: Rollout) -> None:
    for field in fields(Rollout):
        torch.testing.assert_close(
            getattr(found, field.name), getattr(expected, field.name), rtol=0, atol=1e-12
        )


@every_rule
@pytest.mark.parametrize(("steps", "block_length"), [(6, None), (4, None), (4, 3), (6, 2)])
def test_a_stopped_rollout_goes_on_as_if_it_had_not_stopped(rule, steps, block_length) -> None:
    sampler = sampler_of(rule, steps=steps, block_length=block_length)
    whole = write(TinyDenoiser(), sampler)
    for stop in (1, 2, 3):
        half = write(TinyDenoiser(), sampler, stop_after=stop)
        assert half.nfe.tolist() == whole.nfe.clamp(max=stop).tolist()
        early = whole.step_map < stop
        assert torch.equal(half.completion_ids, whole.completion_ids.where(early, -1))
        assert torch.equal(half.step_map, whole.step_map.where(early, -1))
        assert_same(write(TinyDenoiser(), sampler, start=half), whole)


def test_branches_share_their_beginning_and_differ_after_it() -> None:
    sampler = sampler_of("low_confidence")
    trunk = write(TinyDenoiser(), sampler, stop_after=3).rows(torch.tensor([0, 0, 0, 0]))
    ids = PROMPTS[[0, 0, 0, 0]]
    out = sampler(TinyDenoiser(), ids, ids > 0, LENGTH, [5, 6, 7, 5], start=trunk)
    kept = trunk.step_map >= 0
    assert torch.equal(out.completion_ids[kept], trunk.completion_ids[kept])
    assert torch.equal(out.logp[kept], trunk.logp[kept])
    assert torch.equal(out.completion_ids[0], out.completion_ids[3])
    assert len(out.completion_ids.unique(dim=0)) > 1
    assert out.step_map.amax(-1).tolist() == [5] * 4


GIVEN = torch.tensor([[-1, 2, 1, -1, -1, -1], [-1] * 6, [0, 1, 2, 0, -1, -1], [2, 2, 1, 2, 1, 2]])


@every_rule
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_given_text_stays_and_is_never_shown_as_a_mask(rule: str, temperature: float) -> None:
    model = TinyDenoiser()
    sampler = sampler_of(rule, steps=4, block_length=3, temperature=temperature)
    out = write(model, sampler, start=Rollout.given(GIVEN))
    fixed = GIVEN >= 0
    assert torch.equal(out.completion_ids[fixed], GIVEN[fixed])
    assert out.step_map[fixed].eq(-1).all()
    assert out.order_map[fixed].eq(-1).all()
    assert out.logp[fixed].eq(0).all()
    assert out.completion_ids.ge(0).all()
    assert out.completion_ids.ne(MASK).all()
    assert out.step_map[~fixed].ge(0).all()
    assert out.nfe.tolist() == (out.step_map.amax(-1) + 1).tolist()
    assert out.nfe[3] == 0
    for shown in model.seen:
        assert shown[:, 3:5].ne(MASK)[shown[:, :2].eq(torch.tensor([1, 2])).all(1)].all()


@pytest.mark.parametrize("rule", ["low_confidence", "random", "left_to_right"])
def test_the_schedule_counts_what_is_to_be_written(rule: str) -> None:
    """Two steps per block of three: with 1, 3, 2 masks they commit 1 | 2, 1 | 1, 1."""
    sampler = sampler_of(rule, steps=4, block_length=3)
    out = write(TinyDenoiser(), sampler, start=Rollout.given(GIVEN))
    counts = [torch.bincount(row[row >= 0], minlength=4).tolist() for row in out.step_map]
    assert counts == [[1, 2, 1, 0], [2, 1, 2, 1], [1, 1, 0, 0], [0, 0, 0, 0]]


def test_nothing_given_is_an_ordinary_rollout() -> None:
    sampler = sampler_of("random")
    start = Rollout.given(torch.full((4, LENGTH), -1))
    assert_same(write(TinyDenoiser(), sampler, start=start), write(TinyDenoiser(), sampler))


@every_rule
@pytest.mark.parametrize("block_length", [None, 2])
def test_recorded_predictions_contain_what_is_committed(rule: str, block_length) -> None:
    """... before and in that step, and watching changes nothing."""
    sampler = sampler_of(rule, block_length=block_length)
    plain = write(TinyDenoiser(), sampler)
    out = write(TinyDenoiser(), sampler, record=[4, 0, 2])
    assert plain.predictions.shape == (4, 0, LENGTH)
    unwatched = replace(out, predictions=plain.predictions, prediction_logp=plain.prediction_logp)
    assert_same(unwatched, plain)
    assert out.predictions.ge(0).all()
    assert out.predictions.lt(MASK).all()
    for p, step in enumerate((4, 0, 2)):
        until = out.step_map <= step
        assert torch.equal(out.predictions[:, p][until], out.completion_ids[until])
        assert torch.equal(out.prediction_logp[:, p][until], out.logp[until])
    assert not torch.equal(out.predictions[:, 1], out.completion_ids)


def test_a_prediction_is_drawn_from_the_model_at_every_place() -> None:
    """Greedy: the most likely token everywhere, also outside of the current block."""
    model = TinyDenoiser()
    sampler = sampler_of("left_to_right", temperature=0.0, block_length=2)
    out = write(model, sampler, record=[0])
    ids = torch.cat([PROMPTS, torch.full((4, LENGTH), MASK)], dim=1)
    expected = model.logits(ids, torch.ones_like(ids).bool())[:, 2:].argmax(-1)
    assert torch.equal(out.predictions[:, 0], expected)


def test_a_prediction_comes_with_its_log_probs() -> None:
    model = TinyDenoiser()
    sampler = sampler_of("confidence_first", temperature=0.7)
    out = write(model, sampler, record=[2])
    visible = out.step_map < 2
    shown = out.completion_ids.masked_fill(~visible, MASK)
    ids = torch.cat([PROMPTS, shown], dim=1)
    logits = model.logits(ids, torch.ones_like(ids).bool())[:, 2:] / 0.7
    logp = logits.log_softmax(-1).gather(-1, out.predictions[:, 0, :, None])[..., 0]
    torch.testing.assert_close(out.prediction_logp[:, 0][~visible], logp[~visible])


def test_a_prediction_outside_of_the_block_has_randomness_of_its_own() -> None:
    """All tokens are equally likely everywhere: equal random numbers would give equal tokens."""
    model = TinyDenoiser()
    torch.nn.init.zeros_(model.W)
    out = write(model, sampler_of("left_to_right", block_length=1), record=[0, 1])
    assert all(len(row.unique()) > 1 for row in out.predictions.flatten(0, 1))
    assert not torch.equal(out.predictions[:, 0, 2:], out.predictions[:, 1, 2:])


def test_a_row_that_is_done_is_its_own_prediction() -> None:
    out = write(TinyDenoiser(), Threshold(steps=6, threshold=0.01), record=[3])
    assert out.nfe.tolist() == [1] * 4
    assert torch.equal(out.predictions[:, 0], out.completion_ids)
    assert torch.equal(out.prediction_logp[:, 0], out.logp)


def test_threshold_decoding_drops_the_rows_that_are_done() -> None:
    model = TinyDenoiser()
    out = write(model, Threshold(steps=LENGTH, threshold=0.6))
    assert len(out.nfe.unique()) > 1, "all rows took equally many steps"
    rows = [len(ids) for ids in model.seen]
    assert rows == [int((out.nfe > step).sum()) for step in range(int(out.nfe.max()))]


@pytest.mark.parametrize(
    ("threshold", "steps", "nfe"), [(1.0, 6, 6), (1.0, 3, 3), (1.0, 4, 3), (0.001, 6, 1)]
)
def test_threshold_decoding_takes_at_most_its_steps(threshold, steps, nfe) -> None:
    """Nothing passes 1: ceil(6 / steps) tokens each time. Everything passes 0.001."""
    out = write(TinyDenoiser(), Threshold(steps=steps, threshold=threshold))
    assert out.nfe.tolist() == [nfe] * 4


class Company:
    """Stands for ranks of which another needs `calls` steps."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, count: int) -> int:
        self.left -= 1
        return max(count, int(self.left >= 0))


def test_a_rank_that_is_done_runs_the_model_as_long_as_the_others() -> None:
    ids = torch.tensor([[1, 2, 3]])
    sampler = Threshold(steps=6, threshold=0.01)
    alone, watched = bert(), bert(equalize=Company(30))
    calls: list[int] = []
    watched.model.register_forward_hook(lambda *_: calls.append(1))
    out = sampler(watched, ids, ids > 0, 6, [3])
    assert_same(out, sampler(alone, ids, ids > 0, 6, [3]))
    assert out.nfe.tolist() == [1]
    assert len(calls) == 10  # three questions each: a step, its forwards, its chunks


@pytest.mark.parametrize(
    ("rule", "asked"), [("left_to_right", 2), ("random", 2), ("low_confidence", 6)]
)
def test_blind_rules_ask_only_for_what_they_write(rule: str, asked: int) -> None:
    model = TinyDenoiser()
    counts: list[int] = []
    model.register_forward_pre_hook(lambda _, args: counts.append(len(args[2])))
    write(model, sampler_of(rule, steps=3), rows=[0])
    assert counts[0] == asked
    write(model, sampler_of(rule, steps=3), rows=[0], record=[0])
    assert counts[3:] == [6, *counts[1:3]]


@every_rule
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_entropy_is_that_of_the_prediction_at_temperature_1(rule: str, temperature: float) -> None:
    model = TinyDenoiser()
    out = write(model, sampler_of(rule, steps=3, temperature=temperature, top_k=2))
    for row, place in itertools.product(range(4), range(LENGTH)):
        before = out.step_map[row] < out.step_map[row, place]
        shown = torch.cat([PROMPTS[row], out.completion_ids[row].where(before, MASK)])[None]
        logits = model.logits(shown, torch.ones_like(shown).bool())[0, 2 + place, :MASK]
        p: Tensor = logits.softmax(-1)
        expected = -(p * p.log()).sum().item()
        assert out.entropy[row, place].item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("rule", "settings", "message"),
    [
        ("random", {"top_k": 0}, "top_k is 0; use at least 1, or null for all tokens"),
        ("random", {"top_p": 0.0}, "top_p is 0.0; use a mass above 0 and up to 1"),
        ("random", {"top_p": 1.1}, "top_p is 1.1; use a mass above 0 and up to 1"),
        ("threshold", {"threshold": 0.0}, "threshold is 0.0; use a probability above 0"),
        ("threshold", {"threshold": 1.5}, "threshold is 1.5; use a probability above 0"),
        ("plackett_luce", {"position_temperature": 0.0}, "the sampler confidence_first"),
        ("threshold", {"steps": 0}, "steps is 0; use at least 1"),
    ],
)
def test_settings_out_of_range_are_refused(rule: str, settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sampler_of(rule, **settings)
