"""A sampler on the tiny network with all that can be known of it without an estimator.

Shapes: X completions, T trajectories, B rows, L positions, P parameters.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from estimators import Sequences
from rl.samplers import Sampler

from .decoders import COMPLETIONS, Decoder, Trajectories
from .tiny import PROMPT, L, TinyDenoiser, V


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A sampler on the tiny network, solved; [T] is one number per trajectory."""

    name: str
    decoder: Decoder
    trajectories: Trajectories
    advantage: Float[Tensor, " T"]
    completion_logp: Float[Tensor, " T"]
    gradient: Float[Tensor, " P"]


def rule_reward() -> Float[Tensor, " X"]:
    """1 where the last token is the sum of the others (mod V): it depends on all tokens."""
    return (COMPLETIONS[:, :-1].sum(-1) % V == COMPLETIONS[:, -1]).double()


def solve(
    name: str, sampler: Sampler, denoiser: TinyDenoiser, reward: Float[Tensor, " X"]
) -> Problem:
    """Everything that can be known of a sampler without an estimator."""
    decoder = Decoder(sampler, denoiser.logits)
    p = decoder.completion_probability(denoiser.logits)
    trajectories = decoder.trajectories(denoiser.logits)
    which = (trajectories.completion * V ** torch.arange(L - 1, -1, -1)).sum(-1)
    gradient = decoder.policy_gradient(denoiser.logits, reward)
    return Problem(
        name=name,
        decoder=decoder,
        trajectories=trajectories,
        advantage=reward[which] - p @ reward,
        completion_logp=p.log()[which],
        gradient=denoiser.gradient_of_logits(gradient),
    )


def sequences(problem: Problem, rows: Int[Tensor, " B"]) -> Sequences:
    """Those trajectories as rollouts; a padding token carries the number of the row."""
    t = problem.trajectories
    B = len(rows)
    prompt = torch.tensor([(0, *PROMPT)]).repeat(B, 1)
    prompt[:, 0] = torch.arange(B)
    return Sequences(
        prompt_ids=prompt,
        prompt_mask=torch.tensor([False] + [True] * len(PROMPT)).expand(B, -1),
        completion_ids=t.completion[rows],
        completion_mask=torch.ones(B, L, dtype=torch.bool),
        step_map=t.step_map[rows],
        order_map=t.order_map[rows],
        block_map=(torch.arange(L) // problem.decoder.width).expand(B, -1),
        rollout_logp=t.token_logp[rows],
        entropy=t.entropy[rows],
    )
