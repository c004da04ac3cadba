"""Everything that is checked or loaded before the first training step.

The order is the point: cheap checks first, so that a mistake costs seconds, not the time it takes
to load eight billion parameters.
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from rewards import REWARDS
from rl.evaluation import held_out_rows
from rl.generation import prompt_ids
from rl.grpo_config import DiffusionGRPOConfig
from rl.models.loading import LoadedModel, load
from rl.models.lora import apply_lora
from rl.provenance import write_resolved
from rl.recipe import Recipe
from rl.reward_calls import RewardCalls, probe
from rl.tasks import assert_disjoint

logger = logging.getLogger(__name__)

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The parts of a run, ready to be put together.

    held_out: test prompts, of which training saw none; empty without an `evaluation:` section.
    """

    args: DiffusionGRPOConfig
    rows: Rows
    held_out: Rows
    rewards: RewardCalls
    loaded: LoadedModel
    reference: nn.Module | None


def prepare(recipe: Recipe) -> Prepared:
    """Raises ValueError for whatever a user can have got wrong."""
    settle_backend()
    args = DiffusionGRPOConfig(**recipe.trainer)
    rows = recipe.task.rows("train", limit=None)
    held_out = held_out_rows(recipe.task, recipe.evaluation.prompts) if evaluates(recipe) else []
    assert_disjoint(rows, held_out)
    rewards = RewardCalls(
        names=unique([reward.name for reward in recipe.rewards]),
        functions=[reward.function for reward in recipe.rewards],
        weights=[reward.weight for reward in recipe.rewards],
    )
    probe(rewards, rows)
    loaded, reference = load_policy(recipe, args)
    rows = _fitting(rows, loaded, args)
    if args.process_index == 0:
        write_resolved(recipe, str(args.output_dir))
    return Prepared(
        args=args, rows=rows, held_out=held_out, rewards=rewards, loaded=loaded, reference=reference
    )


def evaluates(recipe: Recipe) -> bool:
    return "evaluation" in recipe.raw


def grader(recipe: Recipe) -> Any:
    return REWARDS[recipe.task.grader]


def load_policy(recipe: Recipe, args: DiffusionGRPOConfig) -> tuple[LoadedModel, nn.Module | None]:
    """The model to train, with its adapter, and a second copy where the reference needs one."""
    source = recipe.model
    plugin = args.deepspeed_plugin
    zero3 = plugin is not None and plugin.zero_stage == 3
    loaded = load(source, training=True, seed=args.seed)
    beta = recipe.objective.beta if recipe.objective is not None else 0.0
    full = source.lora_spec is None and not hasattr(loaded.model, "disable_adapter")
    reference = load(source, training=False, seed=args.seed).model if beta and full else None
    if source.lora_spec is not None:
        adapted = apply_lora(
            loaded.model, loaded.spec, source.lora_spec, zero3=zero3, seed=args.seed
        )
        loaded = replace(loaded, model=adapted)
    if args.gradient_checkpointing and not full:
        loaded.model.enable_input_require_grads()
        args.gradient_checkpointing_kwargs = {"use_reentrant": zero3}
    return loaded, reference


def _fitting(rows: Rows, loaded: LoadedModel, args: DiffusionGRPOConfig) -> Rows:
    """Drop prompts longer than `max_prompt_length`; refuse those that the model cannot hold."""
    lengths = [len(prompt_ids(loaded.tokenizer, row["prompt"])) for row in rows]
    room = loaded.max_length - args.max_completion_length
    limit = args.max_prompt_length or room
    kept = [row for row, length in zip(rows, lengths, strict=True) if length <= limit]
    if limit > room or (args.max_prompt_length is None and len(kept) < len(rows)):
        raise ValueError(
            f"the longest prompt has {max(lengths)} tokens and max_completion_length is "
            f"{args.max_completion_length}, but the model has {loaded.max_length} positions; set "
            f"trainer.max_prompt_length to at most {room} to leave longer prompts out, or lower "
            "trainer.max_completion_length"
        )
    if not kept:
        raise ValueError(
            f"no prompt is as short as trainer.max_prompt_length {limit}; the shortest has "
            f"{min(lengths)} tokens"
        )
    if len(kept) < len(rows):
        logger.info("%d of %d prompts have at most %d tokens", len(kept), len(rows), limit)
    return kept


def settle_backend() -> None:
    """Without a GPU, keep DeepSpeed from compiling a collective that training does not use."""
    if os.environ.get("ACCELERATE_USE_DEEPSPEED") != "true" or torch.cuda.is_available():
        return
    import deepspeed

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # pyright: ignore


def unique(names: Sequence[str]) -> list[str]:
    """Names of rewards as log keys: a second `sudoku` becomes `sudoku_2`."""
    seen: dict[str, int] = {}
    out: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return out
