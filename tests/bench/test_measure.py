"""The measurements: against autograd through the network, closed forms and hand-counted costs."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from estimators import (
    Elbo,
    Estimator,
    MaskPlan,
    MeanField,
    RowRandom,
    Sandwich,
    Sequences,
    Trajectory,
    TrajectorySubset,
)
from rl.samplers import LeftToRight, LowConfidence, PlackettLuce, RandomOrder, Sampler, Threshold
from scripts.bench.decoders import COMPLETIONS
from scripts.bench.measure import (
    Contender,
    Row,
    bench,
    by_sign,
    measure,
)
from scripts.bench.problem import Problem, rule_reward, sequences, solve
from scripts.bench.tables import BatchRandom
from scripts.bench.tiny import MASK, PROMPT, L, TinyDenoiser, TinyNetwork

SAMPLERS: dict[str, Sampler] = {
    "random": RandomOrder(steps=4),
    "low_confidence": LowConfidence(steps=4, temperature=0.8),
    "two a step": LowConfidence(steps=2),
    "blocks": LowConfidence(steps=4, block_length=2, top_k=3),
    "threshold": Threshold(steps=4, threshold=0.4),
    "plackett_luce": PlackettLuce(steps=2),
}


class NetworkDenoiser:
    """The network itself, with autograd through its weights."""

    mask_id = MASK

    def __init__(self, network: TinyNetwork) -> None:
        self.network = network

    def __call__(self, ids: Tensor, attention: Tensor, index: Tensor, reduce) -> tuple[Tensor, ...]:
        S = ids.shape[1]
        logits = self.network(ids[:, 1:])[index // S, index % S - (S - L)]
        every = torch.arange(len(index))
        return reduce(logits, every, every)


@pytest.fixture(scope="module")
def problem(denoiser: TinyDenoiser) -> Problem:
    return solve("low_confidence", LowConfidence(steps=4), denoiser, rule_reward())


@pytest.mark.parametrize(
    "estimator",
    [
        MeanField(prompt_mask_prob=0.5),
        Elbo(samples=2),
        Trajectory(segments=None, selection=0.5),
        Sandwich(block_length=2, context_mask_prob=0.3),
    ],
)
def test_gradients_by_table_are_gradients_through_the_network(
    estimator: Estimator, problem: Problem, denoiser: TinyDenoiser, network: TinyNetwork
) -> None:
    rows = torch.arange(0, len(problem.advantage), 97)
    seqs = sequences(problem, rows)
    plan = estimator.plan(seqs, RowRandom(rows.tolist()))
    decoding = problem.decoder.decoding
    denoiser.forget()
    estimator(denoiser, seqs, plan, decoding).sequence_logp.sum().backward()
    each = denoiser.gradients(len(rows)).each(denoiser.jacobian)

    value = estimator(NetworkDenoiser(network), seqs, plan, decoding).sequence_logp
    weights = list(network.parameters())
    for row in (0, 1, len(rows) - 1):
        slow = torch.autograd.grad(value[row], weights, retain_graph=True)
        flat = torch.cat([g.flatten() for g in slow])
        torch.testing.assert_close(each[row], flat, rtol=1e-8, atol=1e-10)
    weight = torch.linspace(-1, 1, len(rows), dtype=torch.float64)
    total = denoiser.gradients(len(rows)).total(denoiser.jacobian, weight)
    torch.testing.assert_close(total, weight @ each, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_whole_action_gives_the_policy_gradient(name: str, denoiser: TinyDenoiser) -> None:
    """Tokens and choice of positions, of our estimator, against the dynamic programme."""
    estimator = Trajectory(segments=None, selection=1.0)
    (row,) = bench({"exact": estimator}, {name: SAMPLERS[name]}, denoiser=denoiser)
    assert row.cosine == pytest.approx(1, abs=1e-9)
    assert row.norm == pytest.approx(1, abs=1e-9)
    assert row.action_bias_nats == pytest.approx(0, abs=1e-9)
    assert row.std_nats == 0
    assert row.relvar > 1


def test_part_of_the_action_does_not(denoiser: TinyDenoiser) -> None:
    samplers = {"low_confidence": SAMPLERS["low_confidence"]}
    (row,) = bench({"tokens": Trajectory(segments=None)}, samplers, denoiser=denoiser)
    assert row.cosine < 0.999


def test_an_elbo_is_measured_as_one(denoiser: TinyDenoiser, network: TinyNetwork) -> None:
    """Bias, spread and direction from the mean over all masks, by autograd through the network."""
    reward = COMPLETIONS[:, :2].eq(1).double().sum(-1)
    problem = solve("left_to_right", LeftToRight(steps=4), denoiser, reward)
    p = problem.decoder.completion_probability(denoiser.logits)
    prompt = torch.tensor(PROMPT).expand(len(COMPLETIONS), -1)
    values: list[Tensor] = []
    chances: list[float] = []
    for mask in range(1, 2**L):
        hidden = torch.tensor([bool(mask >> i & 1) for i in range(L)])
        logits = network(torch.cat([prompt, COMPLETIONS.masked_fill(hidden, MASK)], dim=1))
        logp = logits.log_softmax(-1).gather(-1, COMPLETIONS[..., None])[..., 0]
        size = int(hidden.sum())
        values.append(L / size * (logp * hidden).sum(-1))
        chances.append(1 / (L * math.comb(L, size)))
    value_VX = torch.stack(values)
    chance_V = torch.tensor(chances, dtype=torch.float64)
    elbo_X = chance_V @ value_VX
    loss = (p.detach() * (reward - p @ reward) * elbo_X).sum()
    gradient = torch.cat(
        [g.flatten() for g in torch.autograd.grad(loss, list(network.parameters()))]
    )
    spread = (p * (chance_V @ (value_VX - elbo_X).detach().square())).sum().sqrt()

    row = measure("elbo", Contender(estimator=Elbo()), problem, denoiser, rollouts=3000)
    expected = torch.cosine_similarity(gradient, problem.gradient, dim=0).item()
    assert expected < 0.99
    assert row.cosine_error < 0.002
    assert row.cosine == pytest.approx(expected, abs=0.006)
    error = float(spread) / 3000**0.5  # or less: four rounds of at least 3000 draws
    assert row.bias_nats == pytest.approx(float(p @ (elbo_X.detach() - p.log())), abs=4 * error)
    assert row.std_nats == pytest.approx(float(spread), rel=0.05)


def test_costs_are_those_that_one_counts_by_hand(denoiser: TinyDenoiser) -> None:
    """Pairs are one view when all or nothing is masked: 2 of 5 sizes, so 2 - 2/5 in the mean."""
    compared = {
        "one step": MeanField(prompt_mask_prob=0.0),
        "pair": Elbo(coupled=True),
        "every step": Trajectory(segments=None),
        "a step": TrajectorySubset(m=1),
    }
    rows = {
        row.estimator: row
        for row in bench(
            compared, {"random": RandomOrder(steps=4)}, denoiser=denoiser, rollouts=900
        )
    }
    assert {name: round(row.rollout_forwards, 9) for name, row in rows.items()} == dict.fromkeys(
        rows, 4.0
    )
    assert rows["one step"].forwards == pytest.approx(1)
    assert rows["one step"].forwards_shared == 1 / 8
    assert rows["pair"].forwards == pytest.approx(1.6, abs=0.05)
    assert rows["every step"].forwards == pytest.approx(4)
    assert 2 < rows["every step"].forwards_shared < 4 - 7 / 8  # the first state, and some others
    assert rows["a step"].forwards == pytest.approx(1)


@dataclass(frozen=True, kw_only=True)
class Doubled(Estimator):
    """A mistake: the last token counts twice."""

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        plan = Trajectory(segments=None).plan(seqs, random)
        heavier = torch.ones(L, dtype=torch.float64)
        heavier[-1] = 2
        return replace(plan, weight=plan.weight * heavier)

    def views(self, *, length: int, steps: int) -> int:
        return steps


def test_a_wrong_weight_shows(denoiser: TinyDenoiser) -> None:
    rows = bench({"wrong": Doubled()}, {"random": RandomOrder(steps=4)}, denoiser=denoiser)
    assert rows[0].cosine < 0.99
    assert abs(rows[0].action_bias_nats) > 0.1


def test_the_upper_bound_is_used_where_the_advantage_is_negative(
    denoiser: TinyDenoiser, problem: Problem
) -> None:
    spg = Sandwich(block_length=None, context_mask_prob=0.0)
    seqs = sequences(problem, torch.arange(2))
    estimate = spg(denoiser, seqs, spg.plan(seqs, RowRandom([0, 1])))
    assert estimate.upper_logp is not None
    upper, lower = estimate.upper_logp.sum(-1), estimate.sequence_logp
    advantages = torch.tensor([-2.0, 3.0], dtype=torch.float64)
    mixed = by_sign("mixture")(estimate, advantages)
    torch.testing.assert_close(mixed[0], -(upper[0] + lower[0]))
    torch.testing.assert_close(mixed[1], 3 * lower[1])
    torch.testing.assert_close(by_sign("upper")(estimate, advantages)[0], -2 * upper[0])


def test_what_rollouts_can_reach() -> None:
    """cos / sqrt(1 + relvar / n)."""
    zero = dict.fromkeys(Row.__dataclass_fields__, 0.0)
    row = Row(**{**zero, "estimator": "e", "sampler": "s", "cosine": 0.9, "relvar": 30.0})
    assert row.reachable(10) == pytest.approx(0.45)
    assert row.reachable(math.inf) == pytest.approx(0.9)


def test_even_numbers_are_uniform_row_by_row_and_evenly_spread() -> None:
    """Eight neighbours fall into eight equal parts, and the rows' means stay those of U(0, 1)."""
    random = BatchRandom(512, seed=1, even=True)
    u = random.per_row(3)
    parts = (u * 8).long().view(64, 8, 3).sort(dim=1).values
    assert torch.equal(parts, torch.arange(8)[None, :, None].expand(64, 8, 3))
    later = random.per_row(4, 200)  # more than are spread evenly: independent ones
    assert later.shape == (512, 4, 200)
    assert later.mean().item() == pytest.approx(0.5, abs=4 / math.sqrt(12 * later.numel()))
