"""How far an estimator's gradient is from the policy gradient, and at what cost.

Everything is known on the tiny network: all trajectories tau of a sampler with their probability,
the advantage A = r - E r, and the true gradient g* = d/d theta E r. Per rollout, an estimator
gives g = A d/d theta (its estimate of log p), over the randomness of tau and of its masks:

    cosine    cos(E g, g*)                          bias of the direction
    relvar    (E |g|^2 - |E g|^2) / |E g|^2         noise of one rollout
    cos / sqrt(1 + relvar / n)                      what n rollouts can reach

E over tau is a sum over all of them. E over masks is a mean over plans, with more plans for
likelier trajectories; an estimator whose plans are all equal is measured exactly.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from estimators import Estimate, Estimator, MaskPlan, RowRandom, Sequences
from rl.objectives.sign_rule import Negative, bound_by_sign
from rl.samplers import Sampler

from .decoders import tokens_per_step
from .direction import direction
from .problem import Problem, rule_reward, sequences, solve
from .tables import BatchRandom
from .tiny import TinyDenoiser, train

GROUP = 8  # completions of a prompt that are scored together in `forwards_shared`
CHUNK = 4096  # rollouts whose gradients are in memory at a time

# (estimate, advantage of each row) -> what each row adds to the objective, [B]
Surrogate = Callable[[Estimate, Float[Tensor, " B"]], Float[Tensor, " B"]]


def policy_gradient(estimate: Estimate, advantages: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
    """A log p."""
    return advantages * estimate.sequence_logp


def by_sign(negative: Negative, mixture_weight: float = 0.5) -> Surrogate:
    """A log p, with SPG's choice of a bound where A < 0 (`rl/objectives/sign_rule.py`)."""

    def surrogate(estimate: Estimate, advantages: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
        bound = bound_by_sign(estimate, advantages, negative, mixture_weight)
        return policy_gradient(bound, advantages)

    return surrogate


@dataclass(frozen=True, kw_only=True)
class Contender:
    """What is measured: an estimator, and the loss that its estimates go into."""

    estimator: Estimator
    surrogate: Surrogate = policy_gradient


@dataclass(frozen=True, kw_only=True)
class Row:
    """One estimator with one sampler.

    norm: |E g| / |g*|.
    bias_nats, std_nats: of the estimate of log p(o), o written by the sampler. `std` is over masks.
    action_bias_nats: against the log-probability of the recorded actions instead (the uniform
        choice of a position is left out: it does not depend on theta).
    forwards: distinct inputs to score a completion; forwards_shared: if a group of 8 completions
        is scored together; rollout_forwards: to write it.
    """

    estimator: str
    sampler: str
    cosine: float
    cosine_error: float
    relvar: float
    norm: float
    bias_nats: float
    action_bias_nats: float
    std_nats: float
    forwards: float
    forwards_shared: float
    rollout_forwards: float

    def reachable(self, rollouts: float) -> float:
        """Cosine of the mean gradient of so many rollouts with the true one, about."""
        return self.cosine / math.sqrt(1 + self.relvar / max(rollouts, 1e-9))


def measure(
    name: str,
    contender: Contender,
    problem: Problem,
    denoiser: TinyDenoiser,
    *,
    rollouts: int = 6000,
    rounds: int = 4,
    seed: int = 0,
) -> Row:
    """rollouts: about so many per round, more copies of those that matter more."""
    t, estimator = problem.trajectories, contender.estimator
    every = torch.arange(len(t.probability))
    if _always_the_same(estimator, sequences(problem, every)):
        rows, rounds = every, 1
    else:
        importance = t.probability * problem.advantage.abs()
        copies = (rollouts * importance / importance.sum()).ceil().long().clamp(min=1)
        rows = every.repeat_interleave(copies)
    weight = t.probability[rows] / torch.bincount(rows)[rows]
    seqs = sequences(problem, rows)
    passes = [
        _one_round(contender, problem, denoiser, seqs, rows, weight, seed * rounds + r)
        for r in range(rounds)
    ]
    value_RB = torch.stack([p.value for p in passes])
    std = float((weight * value_RB.var(0)).sum().sqrt()) if rounds > 1 else 0.0
    mean = float(weight @ value_RB.mean(0))
    found = direction(torch.stack([p.gradient for p in passes]), problem.gradient)
    square = sum(p.square for p in passes) / rounds
    return Row(
        estimator=name,
        sampler=problem.name,
        cosine=found.cosine,
        cosine_error=found.error,
        relvar=square / found.square - 1,
        norm=math.sqrt(found.square) / float(problem.gradient.norm()),
        bias_nats=mean - float(t.probability @ problem.completion_logp),
        action_bias_nats=mean - float(t.probability @ t.action_logp),
        std_nats=std,
        forwards=sum(p.forwards for p in passes) / rounds,
        forwards_shared=_shared(estimator, problem, denoiser, seed),
        rollout_forwards=float(t.probability @ t.steps.double()),
    )


@dataclass(frozen=True, kw_only=True)
class _Round:
    value: Float[Tensor, " B"]
    gradient: Float[Tensor, " P"]  # E g
    square: float  # E |g|^2
    forwards: float


def _one_round(
    contender: Contender,
    problem: Problem,
    denoiser: TinyDenoiser,
    seqs: Sequences,
    rows: Int[Tensor, " B"],
    weight: Float[Tensor, " B"],
    seed: int,
) -> _Round:
    """One plan for every row."""
    B, decoding = len(rows), problem.decoder.decoding
    plan = contender.estimator.plan(seqs, BatchRandom(B, seed, even=True))
    value = torch.zeros(B, dtype=torch.float64)
    gradient, square, forwards = torch.zeros_like(problem.gradient), 0.0, 0.0
    for part in torch.arange(B).split(CHUNK):
        denoiser.forget()
        some = seqs.rows(part)
        some.prompt_ids[:, 0] = torch.arange(len(part))
        estimate = contender.estimator(denoiser, some, plan.rows(part), decoding)
        contender.surrogate(estimate, problem.advantage[rows[part]]).sum().backward()
        gradients = denoiser.gradients(len(part))
        value[part] = estimate.sequence_logp.detach()
        gradient += gradients.total(denoiser.jacobian, weight[part])
        norms = torch.linalg.vector_norm(gradients.each(denoiser.jacobian32), dim=-1)
        square += float(weight[part] @ norms.double().square())
        forwards += float(weight[part] @ denoiser.forwards(torch.arange(len(part))).double())
    return _Round(value=value, gradient=gradient, square=square, forwards=forwards)


def _always_the_same(estimator: Estimator, seqs: Sequences) -> bool:
    """Whether plans do not depend on chance."""
    B = len(seqs.completion_ids)
    one, two = (estimator.plan(seqs, BatchRandom(B, seed)) for seed in (0, 1))
    return _equal(one, two)


def _equal(one: MaskPlan, two: MaskPlan) -> bool:
    pairs = [
        (getattr(one, f), getattr(two, f))
        for f in ("prompt", "completion", "weight", "importance", "choice")
    ]
    return all(a is b is None or torch.equal(a, b) for a, b in pairs)


def _shared(estimator: Estimator, problem: Problem, denoiser: TinyDenoiser, seed: int) -> float:
    """Distinct inputs per completion if a group's completions are scored in one call."""
    random = torch.Generator().manual_seed(seed)
    rows = torch.multinomial(problem.trajectories.probability, 32 * GROUP, True, generator=random)
    group = torch.arange(len(rows)) // GROUP
    seqs = sequences(problem, rows)
    plan = estimator.plan(seqs, RowRandom(range(len(rows)), (10**6 + group).tolist()))
    denoiser.forget()
    with torch.no_grad():
        estimator.run(denoiser, seqs, plan, problem.decoder.decoding)
    return float(denoiser.forwards(group).sum()) / len(rows)


def bench(
    estimators: Mapping[str, Estimator | Contender],
    samplers: Mapping[str, Sampler],
    seed: int = 0,
    *,
    reward: Float[Tensor, " X"] | None = None,
    rollouts: int = 6000,
    denoiser: TinyDenoiser | None = None,
    on_row: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Every estimator with every sampler, on the tiny network of that seed."""
    for sampler in samplers.values():
        tokens_per_step(sampler)  # a mistake is told before anything is trained
    denoiser = denoiser or TinyDenoiser(train(seed))
    rows: list[Row] = []
    for sampler_name, sampler in samplers.items():
        problem = solve(
            sampler_name, sampler, denoiser, rule_reward() if reward is None else reward
        )
        for name, entry in estimators.items():
            contender = entry if isinstance(entry, Contender) else Contender(estimator=entry)
            rows.append(measure(name, contender, problem, denoiser, rollouts=rollouts, seed=seed))
            on_row(rows[-1])
    return rows
