"""Every sampler against a plain re-implementation, and what its record of the rollout says."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from estimators import RowRandom
from rl.models import denoiser as denoiser_module
from rl.samplers import SAMPLERS, Rollout
from tests.tiny_models import MASK, TinyDenoiser, bert, llama

PROMPTS = torch.tensor([[0, 2, 1], [1, 1, 2], [0, 1, 2], [2, 2, 2]])
PROMPT_MASK = torch.tensor([[0, 1, 1], [1, 1, 1], [0, 1, 1], [1, 1, 1]]).bool()
SEEDS = [11, 12, 13, 14]

# length, steps, block_length -> tokens committed in each step, by hand
SCHEDULES = [
    (6, 6, None, [1, 1, 1, 1, 1, 1]),
    (6, 4, None, [2, 2, 1, 1]),
    (6, 1, None, [6]),
    (6, 4, 3, [2, 1, 2, 1]),
    (6, 6, 2, [1, 1, 1, 1, 1, 1]),
    (8, 3, None, [3, 3, 2]),
    (8, 2, 4, [4, 4]),
    (8, 6, 4, [2, 1, 1, 2, 1, 1]),
]


# rules whose steps commit what the schedule says
SCHEDULED = ["low_confidence", "confidence_first", "random", "left_to_right", "plackett_luce"]
OWN = {"threshold": {"threshold": 0.6}, "plackett_luce": {"position_temperature": 0.3}}


def roll_out(denoiser: Any, rule: str, length: int = 6, rows: Any = slice(None), **settings):
    settings = {"steps": length} | OWN.get(rule, {}) | settings
    seeds = torch.tensor(SEEDS)[rows].tolist()
    return SAMPLERS[rule](**settings)(denoiser, PROMPTS[rows], PROMPT_MASK[rows], length, seeds)


def by_hand(
    model: TinyDenoiser, rule: str, length: int, blocks: int, commits: list[int], temperature: float
) -> dict[str, list]:
    """One row, one step, one position at a time."""
    width, steps = length // blocks, len(commits)
    out: dict[str, list] = {"completion_ids": [], "step_map": [], "order_map": [], "logp": []}
    for prompt, seen, seed in zip(PROMPTS, PROMPT_MASK, SEEDS, strict=True):
        noise = RowRandom([seed]).per_row(steps, 2, width)[0].tolist()
        canvas, step_map, order_map = [MASK] * length, [-1] * length, [-1] * length
        logp, step = [0.0] * length, 0
        while MASK in canvas:
            first = canvas.index(MASK) // width * width
            logits = _logits(model, prompt[seen], canvas)
            ranked = []
            for w in range(width):
                if canvas[first + w] == MASK:
                    p = logits[first + w].softmax(-1)
                    hot = p if temperature == 0 else (logits[first + w] / temperature).softmax(-1)
                    token = _draw(hot.tolist(), noise[step][0][w], temperature)
                    score = {
                        "low_confidence": p[token].item(),
                        "threshold": p[token].item(),
                        "confidence_first": p.max().item(),
                        "random": noise[step][1][w],
                        "left_to_right": -w,
                        "plackett_luce": p.max().log() / 0.3
                        - math.log(-math.log(noise[step][1][w])),
                    }[rule]
                    record = 0.0 if temperature == 0 else hot[token].log().item()
                    ranked.append((-score, w, token, record))
            commit = commits[step]
            if rule == "threshold":
                commit = max(-(-length // steps), sum(-score > 0.6 for score, *_ in ranked))
            for order, (_, w, token, record) in enumerate(sorted(ranked)[:commit]):
                canvas[first + w], step_map[first + w], order_map[first + w] = token, step, order
                logp[first + w] = record
            step += 1
        for name, row in zip(out, (canvas, step_map, order_map, logp), strict=True):
            out[name].append(row)
    return out


def _logits(model: TinyDenoiser, prompt: Tensor, canvas: list[int]) -> Tensor:
    ids = torch.cat([prompt, torch.tensor(canvas)])[None]
    return model.logits(ids, torch.ones_like(ids, dtype=torch.bool))[0, len(prompt) :, :MASK]


def _draw(p: list[float], uniform: float, temperature: float) -> int:
    if temperature == 0:
        return p.index(max(p))
    reached = 0.0
    for token, chance in enumerate(p):
        reached += chance
        if uniform < reached:
            return token
    raise AssertionError("probabilities do not sum to 1")


@pytest.mark.parametrize(("length", "steps", "block_length", "commits"), SCHEDULES[1::2])
@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("rule", SAMPLERS)
@torch.no_grad()
def test_rollouts_equal_those_made_by_hand(
    rule: str,
    temperature: float,
    length: int,
    steps: int,
    block_length: int | None,
    commits: list[int],
) -> None:
    model = TinyDenoiser()
    out = roll_out(
        model, rule, length, steps=steps, block_length=block_length, temperature=temperature
    )
    blocks = length // (block_length or length)
    expected = by_hand(model, rule, length, blocks, commits, temperature)
    for name in ("completion_ids", "step_map", "order_map"):
        assert getattr(out, name).tolist() == expected[name]
    logp = torch.tensor(expected["logp"], dtype=torch.float64)
    torch.testing.assert_close(out.logp, logp, atol=1e-9, rtol=0)
    assert out.nfe.tolist() == [max(row) + 1 for row in expected["step_map"]]
    assert out.block_map.tolist() == [[i * blocks // length for i in range(length)]] * 4


@pytest.mark.parametrize(("length", "steps", "block_length", "commits"), SCHEDULES)
@pytest.mark.parametrize("rule", SCHEDULED)
def test_steps_follow_the_schedule_and_blocks_follow_each_other(
    rule: str, length: int, steps: int, block_length: int | None, commits: list[int]
) -> None:
    out = roll_out(TinyDenoiser(), rule, length, steps=steps, block_length=block_length)
    for row in out.step_map:
        assert torch.bincount(row, minlength=steps).tolist() == commits
        for block, following in itertools.pairwise(row.split(block_length or length)):
            assert block.max() < following.min()
    assert out.nfe.tolist() == [steps] * 4


@pytest.mark.parametrize("make", [bert, llama])
@pytest.mark.parametrize("temperature", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("rule", SAMPLERS)
def test_no_mask_is_left_and_no_forbidden_id_is_written(
    make: Any, temperature: float, rule: str
) -> None:
    """At T = 3 the 12 ids are nearly equally likely, two of them forbidden."""
    denoiser = make()
    ids = torch.tensor([[1, 2, 3]] * 16)
    sampler = SAMPLERS[rule](steps=4, temperature=temperature)
    out = sampler(denoiser, ids, torch.ones_like(ids).bool(), 8, list(range(16)))
    assert not torch.isin(out.completion_ids, torch.tensor(denoiser.forbidden)).any()
    assert out.logp.le(0).all()
    assert out.logp.isfinite().all()
    assert denoiser.mask_id in denoiser.forbidden
    if temperature:
        assert len(out.completion_ids.unique()) > 5


@pytest.mark.parametrize("make", [bert, llama])
@pytest.mark.parametrize("rule", SAMPLERS)
def test_a_row_is_completed_the_same_in_any_company(make: Any, rule: str) -> None:
    """Batches of 1, 3 and 8 rows, another order, other padding."""
    denoiser = make()
    sampler = SAMPLERS[rule](steps=4, block_length=4, temperature=1.0)
    g = torch.Generator().manual_seed(0)
    ids = torch.randint(1, 10, (8, 5), generator=g)
    mask = torch.arange(5)[None] >= torch.tensor([0, 1, 2, 0, 3, 0, 1, 0])[:, None]
    whole = sampler(denoiser, ids, mask, 8, list(range(8)))

    def part(rows: list[int], padding: int) -> Rollout:
        more = torch.nn.functional.pad(ids[rows], (padding, 0), value=7)
        return sampler(denoiser, more, torch.nn.functional.pad(mask[rows], (padding, 0)), 8, rows)

    for rows, padding in (([0], 0), ([4], 2), ([6, 2, 5], 0), ([7, 6, 5, 4, 3, 2, 1, 0], 3)):
        out = part(rows, padding)
        assert torch.equal(out.completion_ids, whole.completion_ids[rows])
        assert torch.equal(out.step_map, whole.step_map[rows])
        torch.testing.assert_close(out.logp, whole.logp[rows], rtol=0, atol=1e-5)
    assert len({tuple(row) for row in whole.completion_ids.tolist()}) == 8


@pytest.mark.parametrize("rule", SAMPLERS)
def test_how_forwards_and_logits_are_cut_up_changes_no_completion(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = torch.tensor([[1, 2, 3], [4, 5, 6], [1, 2, 3], [9, 8, 7]])
    sampler = SAMPLERS[rule](steps=2, temperature=1.0)
    whole = sampler(bert(), ids, ids > 0, 6, SEEDS)
    monkeypatch.setattr(denoiser_module, "LOGITS_PER_CHUNK", 24)
    cut = sampler(bert(rows_per_forward=3), ids, ids > 0, 6, SEEDS)
    assert torch.equal(cut.completion_ids, whole.completion_ids)
    assert torch.equal(cut.step_map, whole.step_map)


def test_seeds_decide_the_completion() -> None:
    ids = torch.tensor([[1, 2]] * 3)
    sampler = SAMPLERS["random"](steps=6)
    out = sampler(TinyDenoiser(), ids, torch.ones_like(ids).bool(), 6, [5, 6, 5]).completion_ids
    assert torch.equal(out[0], out[2])
    assert not torch.equal(out[0], out[1])


@pytest.mark.parametrize(("steps", "block_length"), [(6, None), (3, None), (4, 3)])
def test_greedy_confidence_rules_are_one_and_do_not_use_the_seed(steps, block_length) -> None:
    settings = {"steps": steps, "block_length": block_length, "temperature": 0.0}
    model, rows = TinyDenoiser(), [0, 1, 2, 3]
    first = roll_out(model, "low_confidence", rows=rows, **settings)
    for rule in ("low_confidence", "confidence_first"):
        sampler = SAMPLERS[rule](**settings)
        other = sampler(model, PROMPTS, PROMPT_MASK, 6, [91, 92, 93, 94])
        assert torch.equal(first.completion_ids, other.completion_ids)
        assert torch.equal(first.step_map, other.step_map)
        assert other.logp.eq(0).all()


def test_low_confidence_looks_at_the_drawn_token_and_confidence_first_does_not() -> None:
    """Sampled at T = 1, the two rules put tokens in different places."""
    settings = {"steps": 6, "temperature": 1.0}
    looks = roll_out(TinyDenoiser(), "low_confidence", **settings).step_map
    blind = roll_out(TinyDenoiser(), "confidence_first", **settings).step_map
    assert not torch.equal(looks, blind)


@pytest.mark.parametrize("rule", SAMPLERS)
def test_evaluation_mode_lasts_for_the_rollout_only(rule: str) -> None:
    denoiser = bert(dropout=0.5)
    denoiser.model.train()
    ids = torch.tensor([[1, 2, 3]])
    sampler = SAMPLERS[rule](steps=4)
    first, second = (sampler(denoiser, ids, ids > 0, 4, [1]) for _ in range(2))
    assert torch.equal(first.logp, second.logp)
    assert not first.logp.requires_grad
    assert denoiser.model.training


def test_equal_canvases_are_run_once() -> None:
    """Four completions of one prompt share the first forward and rarely another."""
    denoiser = bert()
    ids = torch.tensor([[1, 2, 3]] * 4)
    SAMPLERS["left_to_right"](steps=1)(denoiser, ids, ids > 0, 8, [1, 2, 3, 4])
    assert denoiser.forwards == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps is 0; use at least 1"),
        ({"steps": 4, "block_length": 0}, "use at least 1, or null for one block"),
        ({"steps": 4, "temperature": -0.1}, r"it must be 0 \(greedy\) or positive"),
        ({"steps": 4, "temperature": math.inf}, r"it must be 0 \(greedy\) or positive"),
        ({"steps": 4, "temperature": math.nan}, r"it must be 0 \(greedy\) or positive"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SAMPLERS["random"](**settings)


@pytest.mark.parametrize(
    ("steps", "block_length", "message"),
    [
        (4, 3, "block_length 3 does not divide max_completion_length 8; use a divisor of 8"),
        (9, None, "steps 9 do not fit 1 blocks of 8 tokens; use a multiple of 1 from 1 to 8"),
        (3, 4, "steps 3 do not fit 2 blocks of 4 tokens; use a multiple of 2 from 2 to 8"),
        (2, 2, "steps 2 do not fit 4 blocks of 2 tokens; use a multiple of 4 from 4 to 8"),
    ],
)
def test_schedules_that_do_not_fit_are_explained(steps, block_length, message) -> None:
    sampler = SAMPLERS["random"](steps=steps, block_length=block_length)
    with pytest.raises(ValueError, match=message):
        sampler.validate(8)
    with pytest.raises(ValueError, match=message):
        roll_out(TinyDenoiser(), "random", 8, steps=steps, block_length=block_length)


def test_schedules_that_fit_are_accepted() -> None:
    for length, steps, block_length, _ in SCHEDULES:
        SAMPLERS["random"](steps=steps, block_length=block_length).validate(length)


def test_rules_have_the_names_of_the_registry() -> None:
    assert {name: sampler.rule for name, sampler in SAMPLERS.items()} == {n: n for n in SAMPLERS}
