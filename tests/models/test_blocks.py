"""Block models: cached while they write, beside the finished text when they are scored.

The oracle runs one block after the finished blocks before it, alone and without padding.
"""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from estimators import RowRandom, Sequences, Trajectory
from rl.models import MODELS
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel, load
from rl.models.source import ModelSource
from rl.samplers import LowConfidence

LAYOUTS = list(product(["absolute", "response"], ["block", "causal"], [0, 1], [False, True]))
PROMPT, LENGTH = 6, 8
PADS = torch.tensor([0, 3, 5])


def tiny(name: str, origin: str, context: str, shift: int, seed_first: bool) -> LoadedModel:
    spec = replace(
        MODELS[name], block_origin=origin, block_context=context, shift=shift,
        seed_first=seed_first,
    )  # fmt: skip
    loaded = load(ModelSource(name=spec, config={}, block_size=4), training=False)
    loaded.model.double()
    return loaded


def texts(loaded: LoadedModel, members: list[int]) -> tuple[Tensor, Tensor]:
    """Rows of three texts with different padding, and which tokens are real."""
    some = torch.Generator().manual_seed(1)
    allowed = [i for i in range(loaded.vocab_size) if i not in loaded.forbidden_ids]
    ids = torch.tensor(allowed)[torch.randint(len(allowed), (3, PROMPT + LENGTH), generator=some)]
    real = torch.arange(PROMPT + LENGTH) >= PADS[:, None]
    return ids[members], real[members]


def logits(logits: Tensor, entries: Tensor, row: Tensor) -> tuple[Tensor, ...]:
    return (logits[row],)


def alone(loaded: LoadedModel, shown: Tensor, text: Tensor, real: Tensor, place: int) -> Tensor:
    """Logits of the token at `place` of one row, by the definition of a block model."""
    layout = loaded.layout
    assert layout is not None
    columns = [i for i in range(len(real)) if real[i]]
    if layout.origin == "absolute":
        block = {column: k // layout.size for k, column in enumerate(columns)}
    else:
        block = {c: 0 if c < PROMPT else 1 + (c - PROMPT) // layout.size for c in columns}
    here = block[place]
    columns = [column for column in columns if block[column] <= here]
    ids = [int(shown[c] if block[c] == here else text[c]) for c in columns]
    seen = [
        [
            True if block[q] == here
            else block[k] <= block[q] if layout.context == "block"
            else k <= q
            for k in columns
        ]
        for q in columns
    ]  # fmt: skip
    at = columns.index(place)
    opens = at > 0 and block[columns[at - 1]] != here
    if at > 0 and (layout.shift or (layout.seed_first and opens)):
        at -= 1
    found = loaded.model(
        input_ids=torch.tensor([ids]), attention_mask=torch.tensor(seen)[None, None]
    ).logits[0, at]
    return found.index_fill(0, torch.tensor(loaded.forbidden_ids), -torch.inf).float()


def worst(loaded: LoadedModel, shown: Tensor, text: Tensor, real: Tensor, index: Tensor, found):
    S = shown.shape[1]
    assert len(found) == len(index)
    return max(
        float((alone(loaded, shown[k // S], text[k // S], real[k // S], k % S) - one)
              .nan_to_num(0).abs().max())
        for k, one in zip(index.tolist(), found, strict=True)
    )  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("rows_per_forward", [None, 2])
@torch.no_grad()
def test_masked_copies_are_scored_after_finished_blocks(layout, rows_per_forward):
    loaded = tiny("sdar", *layout)
    text, real = texts(loaded, [0, 0, 0, 1, 1, 2, 0])
    hidden = torch.rand(text.shape, generator=torch.Generator().manual_seed(2)) < 0.5
    hidden[6] = hidden[0]
    hidden[6, -4:] = False
    hidden &= real
    shown = text.masked_fill(hidden, loaded.mask_id)
    index = hidden.flatten().nonzero()[:, 0]
    denoiser = ModelDenoiser.of(loaded, rows_per_forward=rows_per_forward)
    (found,) = denoiser.in_context(PROMPT, text)(shown, real, index, logits)
    assert worst(loaded, shown, text, real, index, found) < 1e-5


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@torch.no_grad()
def test_a_block_is_written_over_the_cache_of_finished_ones(layout):
    """Rows that share prompts, finish blocks at different times, and leave."""
    loaded = tiny("sdar", *layout)
    text, real = texts(loaded, [0, 0, 1, 2, 2])
    text[[1, 4], PROMPT:] = text[[2, 3]][:, PROMPT:].flip(1)
    some = torch.Generator().manual_seed(3)
    denoiser = ModelDenoiser.of(loaded)
    inside = denoiser.in_context(PROMPT)
    assert loaded.layout is not None
    block = replace(loaded.layout, start=PROMPT).blocks(real)
    now = block[:, PROMPT].clone()
    rows = torch.arange(len(text))
    rows_needed = 3  # prompts
    for _ in range(8):
        rows_needed += len(rows)
        hidden = torch.rand(text.shape, generator=some) < 0.6
        current = block == now[:, None]
        column = torch.arange(text.shape[1]) >= PROMPT
        hidden = current & column & (hidden | (column & current).cumsum(1).eq(1))
        shown = text.masked_fill(hidden | (block > now[:, None]), loaded.mask_id)
        index = hidden[rows].flatten().nonzero()[:, 0]
        (found,) = inside(shown[rows], real[rows], index, logits)
        assert worst(loaded, shown[rows], text[rows], real[rows], index, found) < 1e-5
        new = torch.minimum(now + (torch.rand(len(now), generator=some) < 0.6), block.amax(1))
        rows_needed += int((new - now).sum())
        now = new
        rows = rows[torch.randperm(len(rows), generator=some)]
        if len(rows) > 3 and torch.rand((), generator=some) < 0.3:
            rows = rows[1:]
    assert denoiser.forwards <= rows_needed


@pytest.mark.parametrize("layout", LAYOUTS[::3], ids=str)
@pytest.mark.parametrize("width", [4, 2])
def test_a_trajectory_has_the_log_probs_that_the_rollout_recorded(layout, width):
    """Prompts of 6, 3 and 1 tokens: the first block has 2, 1 and 3 tokens of the completion."""
    loaded = tiny("sdar", *layout)
    text, real = texts(loaded, [0, 0, 1, 1, 2])
    prompt, prompt_mask = text[:, :PROMPT], real[:, :PROMPT]
    sampler = LowConfidence(steps=LENGTH // 2 if width == 4 else LENGTH, block_length=width)
    rollouts = []
    for limit in (None, 2):  # over a cache; two rows at once, beside themselves
        denoiser = ModelDenoiser.of(loaded, rows_per_forward=limit)
        rollouts.append(sampler(denoiser, prompt, prompt_mask, LENGTH, seeds=range(5)))
    cached, uncached = rollouts
    assert not bool(cached.unwritten.any())
    assert torch.equal(cached.completion_ids, uncached.completion_ids)
    assert torch.equal(cached.step_map, uncached.step_map)
    torch.testing.assert_close(cached.logp, uncached.logp, atol=1e-5, rtol=0)

    sequences = Sequences(
        prompt_ids=prompt, prompt_mask=prompt_mask, completion_ids=cached.completion_ids,
        completion_mask=torch.ones_like(cached.completion_ids, dtype=torch.bool),
        step_map=cached.step_map, order_map=cached.order_map, block_map=cached.block_map,
    )  # fmt: skip
    estimator = Trajectory(segments=None, after_eos="score")
    denoiser = ModelDenoiser.of(loaded)
    plan = estimator.plan(sequences, RowRandom(range(5)))
    decoding = sampler.decoding(LENGTH)
    scores = estimator.run(denoiser, sequences, plan, decoding)
    estimate = estimator.combine(sequences, plan, scores, decoding)
    torch.testing.assert_close(estimate.token_logp.double(), cached.logp, atol=1e-5, rtol=0)
    assert denoiser.forwards <= 5 * sampler.steps * 4 // LENGTH  # steps of one block, not of all


def test_sampler_settings_that_do_not_fit_the_blocks():
    text = torch.zeros(1, 4, dtype=torch.long)
    real = torch.ones_like(text, dtype=torch.bool)
    denoiser = ModelDenoiser.of(tiny("sdar", "absolute", "block", 0, False))
    with pytest.raises(ValueError, match=r"block_length is 3, .* blocks of 4 tokens; use 4"):
        LowConfidence(steps=9, block_length=3)(denoiser, text, real, 9, seeds=[0])
    denoiser = ModelDenoiser.of(tiny("sdar", "response", "causal", 0, True))
    with pytest.raises(ValueError, match=r"steps is 2: 1 a block, .* use at least 4 steps"):
        LowConfidence(steps=2, block_length=4)(denoiser, text, real, 8, seeds=[0])


@pytest.mark.parametrize("width", [None, 8])
def test_larger_blocks_of_a_sampler_become_those_of_the_model(width: int | None):
    """A recipe with blocks of 32 tokens runs with a model whose blocks have 4."""
    text, real = torch.zeros(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.bool)
    denoiser = ModelDenoiser.of(tiny("sdar", "absolute", "block", 0, False))
    own, larger = (
        LowConfidence(steps=4, block_length=w)(denoiser, text, real, 8, seeds=[0, 1])
        for w in (4, width)
    )
    assert torch.equal(own.completion_ids, larger.completion_ids)
    assert torch.equal(own.block_map, larger.block_map)
    assert own.block_map.tolist() == [[0, 1, 1, 1, 1, 2, 2, 2]] * 2


def test_gradients_reach_the_weights_through_the_finished_text_too():
    loaded = load(ModelSource(name="sdar", config={}, block_size=4), training=True)
    text, real = texts(loaded, [0, 1])
    shown = text.clone()
    shown[:, -1] = loaded.mask_id
    index = torch.tensor([text.shape[1] - 1, 2 * text.shape[1] - 1])
    inside = ModelDenoiser.of(loaded).in_context(PROMPT, text)
    (found,) = inside(shown, real, index, lambda x, _, row: (x.log_softmax(-1)[row, 5],))
    found.sum().backward()
    embedding = loaded.model.get_input_embeddings().weight.grad
    assert embedding is not None
    first = text[0, :4].unique()  # seen by the noisy block as finished text only
    assert bool((embedding[first].abs().sum(1) > 0).all())
