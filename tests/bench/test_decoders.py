"""Enumerated decoding: a probability, what the samplers do, and the right gradient."""

import pytest
import torch

from rl.samplers import (
    ConfidenceFirst,
    LeftToRight,
    LowConfidence,
    PlackettLuce,
    RandomOrder,
    Sampler,
    Threshold,
)
from scripts.bench.decoders import COMPLETIONS, Decoder
from scripts.bench.problem import rule_reward, sequences, solve
from scripts.bench.tiny import L, TinyDenoiser

SAMPLERS: dict[str, Sampler] = {
    "random": RandomOrder(steps=4),
    "random, 2": RandomOrder(steps=2),
    "left to right": LeftToRight(steps=4, temperature=0.7),
    "confidence first, 2": ConfidenceFirst(steps=2),
    "plackett luce": PlackettLuce(steps=4),
    "plackett luce, 2": PlackettLuce(steps=2, position_temperature=0.3),
    "low confidence": LowConfidence(steps=4, temperature=0.8),
    "low confidence, 2": LowConfidence(steps=2),
    "low confidence, blocks": LowConfidence(steps=4, block_length=2),
    "low confidence, top k": LowConfidence(steps=4, top_k=2),
    "threshold": Threshold(steps=4, threshold=0.4),
    "threshold, 2": Threshold(steps=2, threshold=0.5, temperature=1.3),
    "threshold, top p": Threshold(steps=4, threshold=0.3, block_length=2, top_p=0.8),
}
every_sampler = pytest.mark.parametrize("name", SAMPLERS)


@every_sampler
def test_trajectories_and_dynamic_programming_agree_on_one(
    name: str, denoiser: TinyDenoiser
) -> None:
    decoder = Decoder(SAMPLERS[name], denoiser.logits)
    p = decoder.completion_probability(denoiser.logits)
    t = decoder.trajectories(denoiser.logits)
    by_path = torch.zeros_like(p).index_add(0, _number(t.completion), t.probability)
    assert p.sum().item() == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(by_path, p, rtol=0, atol=1e-12)


@every_sampler
def test_the_enumeration_is_what_the_sampler_does(name: str, denoiser: TinyDenoiser) -> None:
    """Completions together with their step maps, by total variation.

    The distance of `rows` draws from their own law is 0.5 sum_i sqrt(2 p_i (1 - p_i) / pi / rows)
    in the mean, at most, with a standard deviation below 0.5 / sqrt(rows).
    """
    rows = 2000
    sampler = SAMPLERS[name]
    problem = solve(name, sampler, denoiser, rule_reward())
    t, prompt = problem.trajectories, sequences(problem, torch.zeros(rows, dtype=torch.long))
    rollout = sampler(denoiser, prompt.prompt_ids, prompt.prompt_mask, L, range(rows))
    denoiser.forget()

    def key(completion: torch.Tensor, steps: torch.Tensor) -> list[tuple[int, ...]]:
        return [tuple(row) for row in torch.cat([completion, steps], dim=1).tolist()]

    law: dict[tuple[int, ...], float] = {}  # plackett_luce has several orders inside a step
    for entry, p in zip(key(t.completion, t.step_map), t.probability.tolist(), strict=True):
        law[entry] = law.get(entry, 0.0) + p
    counts = dict.fromkeys(law, 0)
    for entry in key(rollout.completion_ids, rollout.step_map):
        counts[entry] += 1  # a KeyError is a trajectory that was not enumerated
    p = torch.tensor(list(law.values()))
    seen = torch.tensor(list(counts.values())) / rows
    expected = 0.5 * (2 * p * (1 - p) / torch.pi / rows).sqrt().sum()
    assert 0.5 * (seen - p).abs().sum() < expected + 4 * 0.5 / rows**0.5


@every_sampler
def test_recorded_numbers_are_those_of_the_sampler(name: str, denoiser: TinyDenoiser) -> None:
    """Log-probs, entropies and the order inside steps, for rollouts that the sampler wrote."""
    rows = 200
    sampler = SAMPLERS[name]
    problem = solve(name, sampler, denoiser, rule_reward())
    prompt = sequences(problem, torch.zeros(rows, dtype=torch.long))
    rollout = sampler(denoiser, prompt.prompt_ids, prompt.prompt_mask, L, range(rows))
    denoiser.forget()
    t = problem.trajectories
    # the order inside a step of random decoding is by chance, and means nothing
    keys = [t.completion, t.step_map]
    mine = [rollout.completion_ids, rollout.step_map]
    if sampler.rule != "random":
        keys.append(t.order_map)
        mine.append(rollout.order_map)
    place = {tuple(row): i for i, row in enumerate(torch.cat(keys, dim=1).tolist())}
    index = torch.tensor([place[tuple(row)] for row in torch.cat(mine, dim=1).tolist()])
    torch.testing.assert_close(t.token_logp[index], rollout.logp, rtol=0, atol=1e-9)
    torch.testing.assert_close(t.entropy[index], rollout.entropy, rtol=0, atol=1e-9)
    seqs = sequences(problem, index)
    assert torch.equal(seqs.block_map, rollout.block_map)


@every_sampler
def test_the_policy_gradient_is_the_score_of_the_trajectories(
    name: str, denoiser: TinyDenoiser
) -> None:
    """sum P A d log P, by finite differences of the probability along a random direction."""
    decoder = Decoder(SAMPLERS[name], denoiser.logits)
    reward = rule_reward()
    gradient = decoder.policy_gradient(denoiser.logits, reward)
    random = torch.Generator().manual_seed(0)
    step = torch.randn(gradient.shape, generator=random, dtype=torch.float64)
    epsilon = 1e-6

    def expected(sign: float) -> float:
        moved = decoder.completion_probability(denoiser.logits + sign * epsilon * step)
        return float(moved @ reward)

    slope = (expected(1) - expected(-1)) / (2 * epsilon)
    assert float((gradient * step).sum()) == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_an_uneven_schedule_is_refused(denoiser: TinyDenoiser) -> None:
    with pytest.raises(ValueError, match="steps is 3, so that steps commit unequal numbers"):
        Decoder(RandomOrder(steps=3), denoiser.logits)


def _number(completion: torch.Tensor) -> torch.Tensor:
    same = (completion[:, None] == COMPLETIONS).all(-1)
    return same.int().argmax(-1)
