"""Whether a rollout scheme fits the other sections of a recipe; asked before a model is loaded."""

import os
from typing import Any

import torch

from estimators import RowRandom, Sequences
from rl.binding import parameters
from rl.recipe import Recipe
from rl.recipe_binder import trainer_config
from rl.rollout_schemes import Tree


def check_rollout(recipe: Recipe) -> None:
    """Raise ValueError for the first thing that does not fit."""
    scheme = recipe.rollout
    assert scheme is not None
    length, group = _trainer(recipe, "max_completion_length"), _trainer(recipe, "num_generations")
    scheme.validate(num_generations=group, length=length, sampler=recipe.sampler)
    if scheme.whole_groups:
        _check_whole_groups(recipe, group)
    if isinstance(scheme, Tree):
        _check_segments(scheme, getattr(recipe.estimator, "segments", None))
    if not scheme.writes:
        _check_scorable(recipe, length)


def _check_whole_groups(recipe: Recipe, group: int) -> None:
    world = int(os.environ.get("WORLD_SIZE", "1"))
    steps = _trainer(recipe, "steps_per_generation")
    steps = steps or _trainer(recipe, "gradient_accumulation_steps")
    total = _trainer(recipe, "generation_batch_size")
    each = _trainer(recipe, "per_device_train_batch_size") * steps if total is None else total
    each = each if total is None else total // world
    if each % group:
        raise ValueError(
            f"the {group} completions of a prompt must be written by one process, which writes "
            f"{each} a rollout; make that a multiple of {group} (per_device_train_batch_size x "
            "steps_per_generation, or generation_batch_size / processes)"
        )


def _check_segments(tree: Tree, segments: int | None) -> None:
    """Merged steps must not reach over the end of a part."""
    equal = tree.parts is None or set(tree.parts) == {1}
    if segments is not None and not (equal and segments == len(tree.branching)):
        raise ValueError(
            f"{segments} segments of equal length are not the parts of this tree; set "
            f"estimator.segments to null, or rollout.parts to null and rollout.branching to "
            f"{segments} numbers"
        )


def _check_scorable(recipe: Recipe, length: int) -> None:
    """Estimators that follow a sampler's steps have none to follow here."""
    one = torch.zeros(1, 1, dtype=torch.long)
    text = torch.zeros(1, length, dtype=torch.long)
    sequences = Sequences(
        prompt_ids=one,
        prompt_mask=one == 0,
        completion_ids=text,
        completion_mask=text == 0,
    )
    assert recipe.estimator is not None
    try:
        recipe.estimator.plan(sequences, RowRandom([0]))
    except ValueError as error:
        raise ValueError(
            f"{type(recipe.estimator).__name__} cannot score completions that no sampler wrote "
            f"({error}); use an estimator that draws its own masks, such as elbo"
        ) from error


def _trainer(recipe: Recipe, key: str) -> Any:
    config, _ = trainer_config("grpo")
    return recipe.trainer.get(key, parameters(config)[key].default)
