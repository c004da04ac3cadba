"""Everything that is checked or loaded before the first training step.

The order is the point: cheap checks first, so that a mistake costs seconds, not the time it takes
to load eight billion parameters.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from rl.backend import is_adapted, load_trainable, training_arguments
from rl.evaluation import held_out_rows
from rl.generation import prompt_ids
from rl.grpo_config import DiffusionGRPOConfig
from rl.models.loading import LoadedModel, load
from rl.provenance import write_resolved
from rl.recipe import Recipe
from rl.reward_calls import RewardCalls, probe
from rl.rollout_schemes import RolloutScheme
from rl.task_grader import task_grader
from rl.tasks import assert_disjoint

logger = logging.getLogger(__name__)

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The parts of a run, ready to be put together.

    held_out: test prompts, of which training saw none; empty without an `evaluation:` section.
    monitored: validation prompts, evaluated while training; empty if `evaluation.every` is 0.
    """

    args: DiffusionGRPOConfig
    rows: Rows
    held_out: Rows
    monitored: Rows
    rewards: RewardCalls
    loaded: LoadedModel
    reference: nn.Module | None


def prepare(recipe: Recipe, *, overwrite: bool = False) -> Prepared:
    """Raises ValueError for whatever a user can have got wrong."""
    args = training_arguments(DiffusionGRPOConfig, recipe.trainer, {})
    rows = recipe.task.rows("train", limit=None)
    scheme = recipe.rollout
    assert scheme is not None
    scheme.check_rows(rows, num_generations=args.shape.num_generations)
    _check_enough(rows, args)
    held_out = held_out_rows(recipe.task, recipe.evaluation.prompts) if evaluates(recipe) else []
    monitored = _monitored(recipe)
    assert_disjoint(rows, held_out + monitored)
    rewards = RewardCalls(
        names=unique([reward.name for reward in recipe.rewards]),
        functions=[reward.function for reward in recipe.rewards],
        weights=[reward.weight for reward in recipe.rewards],
    )
    if scheme.grades:
        probe(rewards, rows)
    loaded = load_trainable(recipe.model, args)
    _check_blocks(recipe, loaded, args.shape.length)
    rows = _fitting(rows, loaded, args, scheme)
    if args.process_index == 0:
        write_resolved(recipe, str(args.output_dir), overwrite=overwrite)
    return Prepared(
        args=args,
        rows=rows,
        held_out=held_out,
        monitored=monitored,
        rewards=rewards,
        loaded=loaded,
        reference=_reference(recipe, args, loaded),
    )


def evaluates(recipe: Recipe) -> bool:
    return "evaluation" in recipe.raw


def _check_blocks(recipe: Recipe, loaded: LoadedModel, length: int) -> None:
    """The steps of training and evaluation must fit the blocks that the model writes in."""
    if recipe.sampler is None or loaded.block_size is None:
        return
    modes = recipe.evaluation.samplers(recipe.sampler) if evaluates(recipe) else {}
    for sampler in (recipe.sampler, *(s for some in modes.values() for s in some.values())):
        try:
            sampler.for_blocks(loaded.block_size).validate(length)
        except ValueError as error:
            raise ValueError(
                f"sampler: {error} ({loaded.spec.name} writes in blocks of {loaded.block_size})"
            ) from None


def _monitored(recipe: Recipe) -> Rows:
    """Validation prompts to watch while training, so that test prompts choose nothing."""
    if not (evaluates(recipe) and recipe.evaluation.every):
        return []
    return recipe.task.rows("validation", limit=recipe.evaluation.monitor_prompts)


def grader(recipe: Recipe) -> Any:
    return task_grader(recipe.task)


def _reference(recipe: Recipe, args: DiffusionGRPOConfig, loaded: LoadedModel) -> nn.Module | None:
    """A second copy of the model, if the objective uses one and no adapter can be switched off."""
    assert recipe.objective is not None
    if not recipe.objective.uses_reference or is_adapted(loaded):
        return None
    return load(recipe.model, training=False, seed=args.seed).model


def _fitting(
    rows: Rows, loaded: LoadedModel, args: DiffusionGRPOConfig, scheme: RolloutScheme
) -> Rows:
    """Drop prompts longer than `max_prompt_length`; refuse those that the model cannot hold.

    Then the scheme does the same with the completions that it takes from the rows, if any.
    """
    lengths = [
        max(len(prompt_ids(loaded.tokenizer, prompt)) for prompt in scheme.prompts(row))
        for row in rows
    ]
    room = loaded.max_length - args.shape.length
    limit = args.max_prompt_length or max(lengths)
    kept = [row for row, length in zip(rows, lengths, strict=True) if length <= limit]
    longest = max((length for length in lengths if length <= limit), default=0)
    if longest > room:
        shorter = (
            f"set trainer.max_prompt_length to at most {room} to leave longer prompts out, or "
        )
        raise ValueError(
            f"the longest prompt has {longest} tokens and max_completion_length is "
            f"{args.shape.length}, but the model has {loaded.max_length} positions; "
            f"{shorter if room >= min(lengths) else ''}lower trainer.max_completion_length"
        )
    if not kept:
        raise ValueError(
            f"no prompt is as short as trainer.max_prompt_length {limit}; the shortest has "
            f"{min(lengths)} tokens"
        )
    if len(kept) < len(rows):
        logger.info("%d of %d prompts have at most %d tokens", len(kept), len(rows), limit)
    kept = scheme.fitting(kept, loaded, length=args.shape.length)
    _check_enough(kept, args)
    return kept


def _check_enough(rows: Rows, args: DiffusionGRPOConfig) -> None:
    if len(rows) < args.shape.prompts:
        raise ValueError(
            f"the task has {len(rows)} training prompts, but one rollout takes "
            f"{args.shape.prompts}; use more prompts or a smaller generation batch"
        )


def unique(names: Sequence[str]) -> list[str]:
    """Names of rewards as log keys: a second `sudoku` becomes `sudoku_2`."""
    seen: dict[str, int] = {}
    out: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return out
