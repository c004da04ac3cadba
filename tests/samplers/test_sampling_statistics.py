"""Draws follow the distribution they claim to follow. Seeds are fixed: no test is flaky.

Each bound is passed by chance once in 10,000 (chi-square quantiles for the degrees of freedom).
"""

import itertools
import math
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from estimators import Trajectory
from rl.samplers import (
    SAMPLERS,
    ConfidenceFirst,
    LowConfidence,
    PlackettLuce,
    RandomOrder,
    Sampler,
    Threshold,
)
from tests.enumeration import PROMPT, enumerate_paths, paths_of
from tests.tiny_models import TinyDenoiser, bert, llama, random_rows, sequences

DRAWS = 20_000
BOUND = {2: 18.4, 5: 25.7, 9: 33.7, 26: 64.6}  # degrees of freedom -> chi-square


def chi_square(counts: Tensor, chance: Tensor) -> float:
    expected = chance.double() * counts.sum()
    assert expected.min() > 5, "too few draws for a chi-square test"
    return ((counts - expected).square() / expected).sum().item()


def roll_out(denoiser: Any, rule: str, length: int, **settings: Any):
    ids = torch.tensor([[1, 2]] * DRAWS)
    mask = torch.ones_like(ids, dtype=torch.bool)
    return SAMPLERS[rule](**settings)(denoiser, ids, mask, length, list(range(DRAWS)))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_one_token_follows_the_tempered_softmax(temperature: float) -> None:
    model = TinyDenoiser()
    out = roll_out(model, "low_confidence", 1, steps=1, temperature=temperature)
    ids = torch.tensor([[1, 2, model.mask_id]])
    logits = model.logits(ids, torch.ones_like(ids).bool())[0, 2, :3]
    chance = (logits / temperature).softmax(-1).detach()
    counts = torch.bincount(out.completion_ids.flatten(), minlength=3)
    assert chi_square(counts, chance) < BOUND[2]
    other = (logits / (1.5 - temperature)).softmax(-1).detach()
    assert chi_square(counts, other) > BOUND[2], "the draws cannot tell the temperatures apart"


@pytest.mark.parametrize("make", [bert, llama])
def test_rows_that_share_a_forward_draw_independently_over_allowed_ids(make: Any) -> None:
    denoiser = make()
    out = roll_out(denoiser, "confidence_first", 1, steps=1, temperature=3.0)
    assert denoiser.forwards == 1
    ids, index = torch.tensor([[1, 2, denoiser.mask_id]]), torch.tensor([2])
    (logits,) = denoiser(ids, torch.ones_like(ids).bool(), index, lambda x, entries, row: (x[row],))
    chance = (logits[0] / 3.0).softmax(-1).detach()
    counts = torch.bincount(out.completion_ids.flatten(), minlength=12)
    assert counts[10:].tolist() == [0, 0]
    assert chi_square(counts[:10], chance[:10]) < BOUND[9]


def test_random_order_is_uniform_over_orders() -> None:
    out = roll_out(TinyDenoiser(), "random", 3, steps=3)
    code = (out.step_map * torch.tensor([9, 3, 1])).sum(-1)
    orders = [9 * a + 3 * b + c for a, b, c in itertools.permutations(range(3))]
    counts = torch.stack([(code == order).sum() for order in orders])
    assert counts.sum() == DRAWS
    assert chi_square(counts, torch.full((6,), 1 / 6)) < BOUND[5]


@pytest.mark.parametrize("rule", ["left_to_right", "confidence_first"])
def test_whole_completions_follow_their_trajectory_likelihood(rule: str) -> None:
    """All 27 completions. Both rules have one order per completion, so p(o) is its trajectory's."""
    model = TinyDenoiser(hidden=4, seed=2)
    out = roll_out(model, rule, 3, steps=3)
    code = (out.completion_ids * torch.tensor([9, 3, 1])).sum(-1)
    counts = torch.bincount(code, minlength=27)
    chance = torch.zeros(27, dtype=torch.float64)
    est = Trajectory(segments=None)
    for c in counts.nonzero()[:, 0].tolist():
        row = int((code == c).nonzero()[0])
        seqs = sequences(out.completion_ids[[row]].tolist(), step_map=out.step_map[[row]].tolist())
        plan = est.plan(seqs, random_rows(0))
        chance[c] = est(model, seqs, plan).sequence_logp.exp().item()
    rare = chance * DRAWS <= 5
    assert math.isclose(chance.sum().item(), 1.0, abs_tol=1e-3), "completions never drawn are rare"
    assert chi_square(counts[~rare], chance[~rare] / chance[~rare].sum()) < BOUND[26]


@pytest.mark.parametrize(
    ("length", "sampler"),
    [
        (3, RandomOrder(steps=3, temperature=1.3, top_p=0.95)),
        (4, ConfidenceFirst(steps=2, top_k=2)),
        (3, PlackettLuce(steps=3)),
        (3, PlackettLuce(steps=2, position_temperature=2.0)),
        (3, LowConfidence(steps=3)),
        (4, LowConfidence(steps=2, temperature=1.3, top_p=0.95)),
        (4, LowConfidence(steps=4, block_length=2)),
        (3, Threshold(steps=3, threshold=0.6)),
        (4, Threshold(steps=2, threshold=0.7, temperature=1.3)),
    ],
    ids=lambda x: getattr(x, "rule", x),
)
def test_trajectories_have_their_enumerated_frequencies(length: int, sampler: Sampler) -> None:
    """Ids, steps and the order inside steps; those expected fewer than 5 times are pooled."""
    draws, model = 4_000, TinyDenoiser(hidden=4, seed=2)
    with torch.no_grad():
        known = enumerate_paths(model, sampler, length).as_dict()
    ids = torch.tensor([PROMPT] * draws)
    out = sampler(model, ids, torch.ones_like(ids).bool(), length, list(range(draws)))
    drawn = Counter(paths_of(out))
    assert set(drawn) <= set(known)
    often = [path for path, p in known.items() if p * draws >= 5]
    counts = torch.tensor([drawn[path] for path in often], dtype=torch.float64)
    expected = torch.stack([known[path] for path in often]) * draws
    rest = draws - expected.sum()
    if rest >= 5:
        counts = torch.cat([counts, (draws - counts.sum())[None]])
        expected = torch.cat([expected, rest[None]])
    statistic = ((counts - expected).square() / expected).sum().item()
    freedom = len(counts) - 1
    assert freedom > 10
    spread = 2 / (9 * freedom)  # Wilson and Hilferty: the third root of a chi-square is normal
    assert statistic < freedom * (1 - spread + 3.719 * spread**0.5) ** 3
