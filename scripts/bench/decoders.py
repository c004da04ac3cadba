"""All that a sampler can do on the tiny network: its steps, trajectories and policy gradient.

Steps lead from fewer to more visible tokens, so p(o) follows by dynamic programming over states,
and d/d theta sum_o p(o) r(o) by differentiating it: the policy gradient, without an estimate.

Shapes: Z states, E steps, L positions, V symbols, X = V^L completions, T trajectories.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rl.samplers import Sampler

from .rules import RULES, Outcome, Situation
from .tiny import MASK, PLACE_VALUE, STATES, L, V, state_number

COMPLETIONS = torch.cartesian_prod(*[torch.arange(V)] * L)  # [X, L]
START = len(STATES) - 1  # everything masked


@dataclass(frozen=True, kw_only=True)
class Trajectories:
    """All ways of writing all completions.

    action_logp: log-probability of what was done, without the constants c of `rules.py`.
    """

    completion: Int[Tensor, "T L"]
    step_map: Int[Tensor, "T L"]
    order_map: Int[Tensor, "T L"]
    token_logp: Float[Tensor, "T L"]  # at the rollout temperature, when it was committed
    entropy: Float[Tensor, "T L"]  # of its prediction then, at T = 1
    probability: Float[Tensor, " T"]
    action_logp: Float[Tensor, " T"]

    @property
    def steps(self) -> Int[Tensor, " T"]:
        return self.step_map.amax(-1) + 1


class Decoder:
    """The steps of a sampler on one table of logits [Z, L, V], which the methods take again."""

    def __init__(self, sampler: Sampler, logits: Float[Tensor, "Z L V"]) -> None:
        self.decoding = sampler.decoding(L)
        self.width = sampler.block_length or L
        self._commits = tokens_per_step(sampler)
        plain = logits.log_softmax(-1)
        outcomes = [(z, o) for z in range(len(STATES)) for o in self._outcomes(z, plain)]
        source = torch.tensor([z for z, _ in outcomes])
        allowed = torch.tensor([_allowed(outcome) for _, outcome in outcomes])
        possible = (allowed & (self._rollout_logp(logits) > -torch.inf)[source]).any(-1).all(-1)
        self._source, self._allowed = source[possible], allowed[possible]
        kept = [outcomes[i] for i in possible.nonzero()[:, 0].tolist()]
        self._target = torch.tensor([_after(z, outcome) for z, outcome in kept])
        self._constant = torch.tensor([o.constant for _, o in kept], dtype=logits.dtype)
        self._places = [outcome.places for _, outcome in kept]
        self._order = torch.tensor([(*p, *[-1] * (L - len(p))) for p in self._places])

    def action_logp(self, logits: Float[Tensor, "Z L V"]) -> Float[Tensor, " E"]:
        """Log-probability of every step without its constant, differentiable in `logits`."""
        logp = self._rollout_logp(logits)[self._source]
        box = logp.masked_fill(~self._allowed, -torch.inf).logsumexp(-1).sum(-1)
        return box if self.decoding.rule != "plackett_luce" else box + self._order_logp(logits)

    def completion_probability(self, logits: Float[Tensor, "Z L V"]) -> Float[Tensor, " X"]:
        """p(o) of every completion, differentiable in `logits`."""
        taken = (self.action_logp(logits) + self._constant).exp()
        reached = logits.new_zeros(len(STATES)).index_fill(0, torch.tensor(START), 1.0)
        hidden = STATES.eq(MASK).sum(-1)[self._source]
        for count in range(L, 0, -1):
            now = (hidden == count).nonzero()[:, 0]
            flow = reached[self._source[now]] * taken[now]
            reached = reached.index_add(0, self._target[now], flow)
        return reached[state_number(COMPLETIONS)]

    def policy_gradient(
        self, logits: Float[Tensor, "Z L V"], reward: Float[Tensor, " X"]
    ) -> Float[Tensor, "Z L V"]:
        """The gradient of the expected reward with respect to the logits."""
        leaf = logits.detach().clone().requires_grad_()
        expected = self.completion_probability(leaf) @ reward
        return torch.autograd.grad(expected, leaf)[0]

    def trajectories(self, logits: Float[Tensor, "Z L V"]) -> Trajectories:
        paths = list(self._paths())
        completion = STATES[self._target[[path[-1] for path in paths]]]
        cells = torch.tensor([self._cells(path) for path in paths])  # [T, L, 3], by position
        step_map, order_map, source = cells.unbind(-1)
        place = torch.arange(L).expand_as(source)
        plain = logits.log_softmax(-1)
        with torch.no_grad():
            actions = self.action_logp(logits)
        action_logp = _sums(actions, paths)
        return Trajectories(
            completion=completion,
            step_map=step_map,
            order_map=order_map,
            token_logp=self._rollout_logp(logits)[source, place, completion],
            entropy=-(plain.exp() * plain).sum(-1)[source, place],
            probability=(action_logp + _sums(self._constant, paths)).exp(),
            action_logp=action_logp,
        )

    def _rollout_logp(self, logits: Float[Tensor, "Z L V"]) -> Float[Tensor, "Z L V"]:
        """log p_T: of what a proposal may be."""
        return self.decoding.tempered(logits.flatten(0, 1)).log_softmax(-1).view_as(logits)

    def _outcomes(self, state: int, logp: Float[Tensor, "Z L V"]) -> Iterator[Outcome]:
        """What a step from `state` may commit: positions of the first unfinished block."""
        masked = [i for i in range(L) if STATES[state, i] == MASK]
        eligible = tuple(i for i in masked if i // self.width == masked[0] // self.width)
        if not eligible:
            return iter(())
        return RULES[self.decoding.rule](
            Situation(
                logp=logp[state].tolist(),
                eligible=eligible,
                count=min(self._commits, len(eligible)),
                decoding=self.decoding,
            )
        )

    def _paths(self) -> Iterator[list[int]]:
        """Steps from the empty canvas to every completion, in every way."""
        leaving: dict[int, list[int]] = {}
        for step, source in enumerate(self._source.tolist()):
            leaving.setdefault(source, []).append(step)
        stack = [(START, list[int]())]
        while stack:
            state, path = stack.pop()
            if state not in leaving:
                yield path
            for step in leaving.get(state, []):
                stack.append((int(self._target[step]), [*path, step]))

    def _cells(self, path: list[int]) -> list[tuple[int, int, int]]:
        """(step, rank inside the step, state before it) of every position."""
        cells = {
            place: (number, rank, int(self._source[step]))
            for number, step in enumerate(path)
            for rank, place in enumerate(self._places[step])
        }
        return [cells[place] for place in range(L)]

    def _order_logp(self, logits: Float[Tensor, "Z L V"]) -> Float[Tensor, " E"]:
        """One position after the other, each by softmax over those that are left in the block."""
        assert self.decoding.position_temperature is not None
        peak = logits.log_softmax(-1).amax(-1)[self._source] / self.decoding.position_temperature
        masked = STATES.eq(MASK)[self._source]
        block = torch.arange(L) // self.width
        left = masked & (block == block[masked.int().argmax(-1)][:, None])
        total = peak.new_zeros(len(peak))
        for place in self._order.split(1, dim=1):
            logp = peak.masked_fill(~left, -1e30).log_softmax(-1).gather(1, place.clamp(min=0))
            total = total + torch.where(place >= 0, logp, 0.0)[:, 0]
            left = left & ~(torch.arange(L) == place)
        return total


def tokens_per_step(sampler: Sampler) -> int:
    """ValueError for a sampler that cannot be enumerated."""
    sampler.validate(L)
    if sampler.rule not in RULES:
        raise ValueError(
            f"the bench does not know the rule {sampler.rule!r}; it enumerates {', '.join(RULES)}"
        )
    if L % sampler.steps:
        raise ValueError(
            f"steps is {sampler.steps}, so that steps commit unequal numbers of the {L} tokens; "
            f"use a divisor of {L}"
        )
    return L // sampler.steps


def _after(state: int, outcome: Outcome) -> int:
    pairs = zip(outcome.places, outcome.tokens, strict=True)
    return state + sum((token - MASK) * PLACE_VALUE[place] for place, token in pairs)


def _sums(values: Float[Tensor, " E"], paths: list[list[int]]) -> Float[Tensor, " T"]:
    each = values.tolist()
    return torch.tensor([sum(each[step] for step in path) for path in paths], dtype=values.dtype)


def _allowed(outcome: Outcome) -> list[list[bool]]:
    """[L][V]: the proposals that lead to the outcome."""
    every = {i: [True] * V for i in range(L)} | outcome.rest
    for place, token in zip(outcome.places, outcome.tokens, strict=True):
        every[place] = [v == token for v in range(V)]
    return [every[i] for i in range(L)]
