"""What a policy that solves nothing would earn on the prompts of a step.

    baseline/NAME    mean reward of a trivial policy (a constant, a greedy filler, a random
                     expression): on the prompts of this step, by the recipe's own reward

A model that earns less than one of them may rise to it by learning the trick and nothing else.
The texts depend on the run's seed, the prompt and the step, never on the rank.
"""

import functools
import inspect
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from estimators import stable_seed
from rewards import REWARDS
from rl.generation import as_completion
from rl.reward_calls import RewardCalls
from rl.rollout_schemes.base import Key

logger = logging.getLogger(__name__)

Policy = Callable[..., str]
Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class TrivialPolicy:
    """label: its name in the logs. reward: the position of the reward that it belongs to."""

    label: str
    reward: int
    policy: Policy


def trivial_policies(
    rewards: RewardCalls, known: Mapping[str, Mapping[str, Policy]]
) -> list[TrivialPolicy]:
    """Those of the run's registered rewards, by grader, not by what the recipe calls it."""
    of_reward = [known.get(_registered_as(function), {}) for function in rewards.functions]
    several = sum(map(bool, of_reward)) > 1
    return [
        TrivialPolicy(f"{rewards.names[i]}/{name}" if several else name, i, policy)
        for i, policies in enumerate(of_reward)
        for name, policy in policies.items()
    ]


def earned(
    policies: Sequence[TrivialPolicy], rewards: RewardCalls, rows: Rows, keys: Sequence[Key]
) -> Float[Tensor, "K B"]:
    """Reward of each policy on each row's prompt; NaN where it has nothing to say or no reward."""
    first: dict[Key, int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key[:3], i)
    values = [_of_prompts(each, rewards, rows, first) for each in policies]
    return torch.tensor([[of[key[:3]] for key in keys] for of in values]).view(-1, len(rows))


def _of_prompts(
    each: TrivialPolicy, rewards: RewardCalls, rows: Rows, first: Mapping[Key, int]
) -> dict[Key, float]:
    texts = {key: _text(each, rows[i], key) for key, i in first.items()}
    wrote = [key for key, text in texts.items() if text is not None]
    found = dict.fromkeys(first, float("nan"))
    if not wrote:
        return found
    i = each.reward
    alone = replace(  # logs and counts of its own: these are no completions of the model's
        rewards,
        names=rewards.names[i : i + 1],
        functions=rewards.functions[i : i + 1],
        weights=[1.0],
        on_error=lambda name, why: logger.debug("baseline %s: %s %s", each.label, name, why),
    )
    asked = [rows[first[key]] for key in wrote]
    completions = [
        as_completion(texts[key] or "", row["prompt"])
        for key, row in zip(wrote, asked, strict=True)
    ]
    values = alone(asked, completions, [[] for _ in asked])
    return found | {key: value for key, (value,) in zip(wrote, values, strict=True)}


def _text(each: TrivialPolicy, row: dict[str, Any], key: Key) -> str | None:
    parameters = list(inspect.signature(each.policy).parameters.values())[1:]
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    columns = {p.name: row[p.name] for p in parameters if p.name in row}
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    if any(columns.get(name) is None for name in needed):
        return None  # a row of another task
    rng = random.Random(stable_seed("baseline", each.label, *key))
    try:
        return each.policy(rng, **(row if takes_all else columns))
    except Exception as error:  # a monitor never stops a run
        logger.debug("baseline %s on %r: %s", each.label, row.get("id"), error)
        return None


def _registered_as(function: Any) -> str:
    grader: Any = getattr(function, "grader", function)
    while isinstance(grader, functools.partial):
        grader = grader.func
    return next((name for name, registered in REWARDS.items() if registered is grader), "")
