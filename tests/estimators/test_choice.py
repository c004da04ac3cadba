"""The probability of a decoder's own steps, against enumeration of everything it could propose."""

import itertools
import math
from collections import defaultdict
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from estimators import Sequences, Trajectory, choice, score
from estimators.choice import choice_logp
from rl.models import denoiser as denoiser_module
from rl.models.denoiser import ModelDenoiser
from rl.samplers import (
    ConfidenceFirst,
    LeftToRight,
    LowConfidence,
    PlackettLuce,
    RandomOrder,
    Sampler,
    Threshold,
)
from tests.enumeration import Enumerated, enumerate_paths, paths_of, plan_of_steps, with_maps
from tests.tiny_models import TinyDenoiser, V, bert, random_rows

CASES: list[tuple[int, Sampler]] = [
    (3, RandomOrder(steps=3)),
    (4, RandomOrder(steps=2, temperature=0.7, top_p=0.8)),
    (3, LeftToRight(steps=3, temperature=1.4)),
    (4, LeftToRight(steps=2, top_k=2)),
    (3, ConfidenceFirst(steps=3)),
    (4, ConfidenceFirst(steps=2, temperature=0.7, top_k=2)),
    (3, PlackettLuce(steps=3)),
    (3, PlackettLuce(steps=2, temperature=0.7, position_temperature=0.3)),
    (4, PlackettLuce(steps=4, block_length=2, top_p=0.9, temperature=1.4)),
    (3, LowConfidence(steps=3)),
    (3, LowConfidence(steps=2, temperature=0.7)),
    (4, LowConfidence(steps=2, temperature=1.4)),
    (4, LowConfidence(steps=4, block_length=2)),
    (4, LowConfidence(steps=2, top_k=2, top_p=0.9, temperature=1.3)),
    (3, LowConfidence(steps=3, top_p=0.9, temperature=1.4)),
    (3, Threshold(steps=3, threshold=0.5)),
    (3, Threshold(steps=3, threshold=0.7, temperature=1.4)),
    (4, Threshold(steps=2, threshold=0.6)),
    (4, Threshold(steps=4, block_length=2, threshold=0.6, temperature=1.4, top_k=2)),
]
CHOOSING = [case for case in CASES if case[1].rule in choice.CHOOSING]


def name(case: tuple[int, Sampler]) -> str:
    length, s = case
    block = f"-b{s.block_length}" if s.block_length else ""
    cut = "".join(f"-{k}{v}" for k, v in (("k", s.top_k), ("p", s.top_p)) if v)
    return f"{s.rule}-{length}in{s.steps}{block}-T{s.temperature}{cut}"


every = pytest.mark.parametrize("case", CASES, ids=name)


@cache
def enumerated(case: tuple[int, Sampler]) -> tuple[TinyDenoiser, Enumerated]:
    model = TinyDenoiser(hidden=4, seed=2)
    return model, enumerate_paths(model, case[1], case[0])


def log_prob(
    model: Any, seqs: Sequences, sampler: Sampler, *, chosen: bool = True, constant: bool = True
) -> Tensor:
    """Of each row's trajectory."""
    decoding = sampler.decoding(seqs.completion_ids.shape[1])
    plan = plan_of_steps(seqs)
    assert plan.choice is not None
    scores = score(model, seqs, plan, decoding)
    total = scores.token.sum((1, 2))
    if chosen:
        total = total + choice_logp(seqs, plan, scores, decoding).sum(1)
    if constant and sampler.rule == "random":  # what no weight changes is left out
        n, k = (x.sum(-1).double() for x in (plan.choice & plan.weight.any(-1, True), plan.weight))
        total = total - ((n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()).sum(1)
    return total


@every
def test_it_is_the_probability_of_each_trajectory(case: tuple[int, Sampler]) -> None:
    model, all_paths = enumerated(case)
    found = log_prob(model, all_paths.seqs, case[1]).exp()
    torch.testing.assert_close(found, all_paths.chance, rtol=0, atol=1e-12)
    assert math.isclose(found.sum().item(), 1.0, abs_tol=1e-10)


@pytest.mark.parametrize("threshold", [0.3, 0.5])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_steps_that_threshold_decoding_never_takes_have_no_chance(
    steps: int, threshold: float
) -> None:
    """Every completion of three tokens in every order of steps, of which it writes some."""
    sampler, model = Threshold(steps=steps, threshold=threshold), TinyDenoiser(hidden=4, seed=2)
    written = enumerate_paths(model, sampler, 3)
    chance: dict[tuple, float] = defaultdict(float)  # the order inside a step is not looked at
    for path, share in zip(paths_of(written.seqs), written.chance.tolist(), strict=True):
        chance[path[:2]] += share
    orders = [x for x in itertools.product(range(3), repeat=3) if set(x) == set(range(max(x) + 1))]
    every = list(itertools.product(itertools.product(range(V), repeat=3), orders))
    ids, step_map = (list(x) for x in zip(*every, strict=True))
    seqs = with_maps(ids, step_map, [[0, 0, 0]] * len(every), 3)
    found = log_prob(model, seqs, sampler).exp().tolist()
    assert found == pytest.approx([chance[path] for path in every], abs=1e-12)
    assert sum(share > 0 for share in chance.values()) < len(every) / 2


def gradient(value: Tensor, model: TinyDenoiser) -> Tensor:
    grads = torch.autograd.grad(value, list(model.parameters()), retain_graph=True)
    return torch.cat([g.flatten() for g in grads])


def reward(seqs: Sequences) -> Tensor:
    """Any function of the completion."""
    code = (seqs.completion_ids * 3 ** torch.arange(seqs.completion_ids.shape[1])).sum(-1)
    return (code.double() * 12.9898).sin()


@every
def test_its_gradient_is_the_policy_gradient(case: tuple[int, Sampler]) -> None:
    """grad sum_x p(x) R(x) == sum over trajectories of P (R - b) grad log P."""
    model, all_paths = enumerated(case)
    value = reward(all_paths.seqs)
    expected = gradient((all_paths.chance * value).sum(), model)
    logp = log_prob(model, all_paths.seqs, case[1])
    found = gradient((all_paths.chance.detach() * (value - 0.3) * logp).sum(), model)
    assert expected.norm() > 1e-2
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@every
def test_trajectory_with_selection_is_that_probability(case: tuple[int, Sampler]) -> None:
    model, all_paths = enumerated(case)
    est, decoding = Trajectory(segments=None, selection=1.0), case[1].decoding(case[0])
    assert est.exact_for(decoding)
    seqs = all_paths.seqs
    plan = est.plan(seqs, random_rows(*range(len(all_paths.chance))))
    found = est(model, seqs, plan, decoding).sequence_logp
    torch.testing.assert_close(found, log_prob(model, seqs, case[1], constant=False))


@pytest.mark.parametrize("case", CHOOSING, ids=name)
def test_tokens_alone_are_not_the_policy_gradient(case: tuple[int, Sampler]) -> None:
    model, all_paths = enumerated(case)
    value = reward(all_paths.seqs)
    expected = gradient((all_paths.chance * value).sum(), model)
    logp = log_prob(model, all_paths.seqs, case[1], chosen=False)
    found = gradient((all_paths.chance.detach() * (value - 0.3) * logp).sum(), model)
    assert (found - expected).norm() > 1e-2 * expected.norm()
    assert logp.exp().sum() > 1.1, "tokens alone are no distribution over trajectories"


@pytest.mark.parametrize("case", [c for c in CHOOSING if not (c[1].top_k or c[1].top_p)], ids=name)
def test_under_other_weights_it_is_their_probability_or_nearly_zero(
    case: tuple[int, Sampler],
) -> None:
    """Steps that the new weights would never take have log-probs and gradients without NaN."""
    length, sampler = case
    seqs, new = enumerated(case)[1].seqs, TinyDenoiser(hidden=4, seed=5)
    with torch.no_grad():
        theirs = enumerate_paths(new, sampler, length).as_dict()
    logp = log_prob(new, seqs, sampler)
    if sampler.rule != "plackett_luce":  # the order inside a step is not part of the action
        theirs = {path[:2]: chance for path, chance in theirs.items()}
    zero = torch.zeros((), dtype=torch.float64)
    paths = [path if path in theirs else path[:2] for path in paths_of(seqs)]
    expected = torch.stack([theirs.get(path, zero) for path in paths])
    torch.testing.assert_close(logp.exp(), expected, rtol=0, atol=1e-12)
    impossible = expected == 0
    assert bool(impossible.any()) == (sampler.rule != "plackett_luce")
    assert gradient(logp.sum(), new).isfinite().all()


@pytest.mark.parametrize("case", CHOOSING[::3], ids=name)
def test_parameter_gradients_equal_finite_differences(case: tuple[int, Sampler]) -> None:
    sampler = case[1]
    model = TinyDenoiser(hidden=4, seed=2)
    seqs = enumerated(case)[1].seqs.rows(slice(None, None, 7))
    weight = torch.linspace(0.5, 1.5, len(seqs.completion_ids), dtype=torch.float64)

    def value() -> Tensor:
        return (log_prob(model, seqs, sampler) * weight).sum()

    whole = gradient(value(), model)
    generator = torch.Generator().manual_seed(1)
    ways = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in model.parameters()]
    slope = torch.cat([way.flatten() for way in ways]) @ whole
    ends: list[Tensor] = []
    with torch.no_grad():
        for step in (1e-6, -2e-6):
            for p, way in zip(model.parameters(), ways, strict=True):
                p.add_(way, alpha=step)
            ends.append(value())
    torch.testing.assert_close((ends[0] - ends[1]) / 2e-6, slope, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    "sampler",
    [LowConfidence(steps=4, temperature=3.0), Threshold(steps=4, threshold=0.5, temperature=3.0)],
)
def test_how_a_transformer_is_cut_up_changes_nothing(
    sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views that share a row of ids kept different tokens; chunks are smaller than a view."""
    prompts = torch.tensor([[1, 2, 3]] * 3 + [[3, 2, 1]])
    out = sampler(bert(vocab=9), prompts, prompts > 0, 4, list(range(4)))
    seqs = Sequences(
        prompt_ids=prompts,
        prompt_mask=prompts > 0,
        completion_ids=out.completion_ids,
        completion_mask=out.completion_ids >= 0,
        step_map=out.step_map,
        block_map=out.block_map,
    )
    first = out.completion_ids.masked_fill(out.step_map > 0, -1)[:3]
    assert len(first.unique(dim=0)) > 1

    def answers(denoiser: ModelDenoiser, parts: list[Sequences]) -> list[Tensor]:
        logp = torch.cat([log_prob(denoiser, part, sampler) for part in parts])
        (logp * torch.arange(1, 5)).sum().backward()
        return [logp.detach(), *(p.grad for p in denoiser.model.parameters() if p.grad is not None)]

    whole = answers(bert(vocab=9), [seqs])
    alone = answers(bert(vocab=9), [seqs.rows(slice(i, i + 1)) for i in range(4)])
    torch.testing.assert_close(alone, whole, rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(denoiser_module, "LOGITS_PER_CHUNK", 2 * 9)
    cut = bert(vocab=9, rows_per_forward=3, equalize=lambda count: count + 1)
    torch.testing.assert_close(answers(cut, [seqs]), whole, rtol=1e-4, atol=1e-4)
