"""What a recipe's sections must agree on; asked before a model is loaded.

check_recipe(recipe)      raises one RecipeError with everything that will not work
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rl.binding import located, parameters
from rl.provenance import RESOLVED, resolved
from rl.recipe import Recipe, RecipeError
from rl.recipe_binder import trainer_config
from rl.recipe_yaml import parse

_DATA_FILE = re.compile(r"\.(jsonl?|csv|parquet|txt|tsv|ya?ml)(\.gz)?$")


def check_recipe(
    recipe: Recipe, *, training: bool = True, resume: bool = False, overwrite: bool = False
) -> None:
    """`resume`, `overwrite`: what the user allows to happen to a run that is in output_dir."""
    problems: list[str] = []

    def check(where: str, test: Callable[[], None]) -> None:
        try:
            test()
        except ValueError as error:
            problems.append(f"{recipe.path}: {located(where, str(error))}")

    check("model", lambda: recipe.model.validate(training=training))
    check("model.path", lambda: _local_path(recipe.model.path))
    for key in ("task", "estimator", "objective", "advantage"):
        validate = getattr(getattr(recipe, key), "validate", None)
        if validate is not None:
            check(key, validate)
    sampler = recipe.sampler
    if sampler is not None and recipe.kind == "grpo":
        length = trainer_value(recipe, "max_completion_length")
        check("sampler", lambda: sampler.validate(length))
    if training and recipe.kind == "grpo":
        check("trainer.num_generations", lambda: _whole_groups(recipe))
    if training and not (resume or overwrite or recipe.trainer.get("resume_from_checkpoint")):
        check("trainer.output_dir", lambda: _fresh_output(recipe))
    if problems:
        raise RecipeError(problems)


def trainer_value(recipe: Recipe, key: str) -> Any:
    """A key of `trainer:`, or its default."""
    if key in recipe.trainer:
        return recipe.trainer[key]
    config, _ = trainer_config(recipe.kind)
    return parameters(config)[key].default


def _local_path(path: str | None) -> None:
    """Raise for what looks like a file or folder and is not there; the rest are hub ids."""
    if path is None or Path(path).expanduser().exists():
        return
    parts = Path(path).parts
    local = (
        path.startswith((".", "/", "~"))
        or len(parts) > 2
        or _DATA_FILE.search(path)
        or (len(parts) == 2 and Path(parts[0]).is_dir())
    )
    if local:
        raise ValueError(f"there is no {path!r} (looked in {Path.cwd()})")


def _whole_groups(recipe: Recipe) -> None:
    """The completions of a rollout must be whole groups of num_generations."""
    group = trainer_value(recipe, "num_generations")
    each = trainer_value(recipe, "per_device_train_batch_size")
    world = int(os.environ.get("WORLD_SIZE", "1"))
    total = trainer_value(recipe, "generation_batch_size")
    steps = trainer_value(recipe, "steps_per_generation")
    name = "steps_per_generation" if steps else "gradient_accumulation_steps"
    steps = steps or trainer_value(recipe, "gradient_accumulation_steps")
    if group < 2:
        raise ValueError(f"{group} completion per prompt has nothing to be compared with; use >= 2")
    if total is None:
        total = each * world * steps
        sizes = (
            f"per_device_train_batch_size {each} x {world} process{'es' * (world > 1)} "
            f"x {name} {steps}"
        )
    else:
        sizes = "generation_batch_size"
    if total % group:
        fits = [str(n) for n in range(2, total + 1) if total % n == 0]
        raise ValueError(
            f"{total} completions a rollout ({sizes}) are not whole groups of {group}; "
            f"num_generations may be {', '.join(fits) or 'none with so few'} here, or make the "
            f"product a multiple of {group}"
        )


def _fresh_output(recipe: Recipe) -> None:
    """Raise if the folder holds another run, or checkpoints of this one."""
    folder = trainer_value(recipe, "output_dir")
    if folder is None:
        raise ValueError("missing; a run needs a folder for its checkpoints and logs")
    choices = "continue it with --resume, start anew with --overwrite, or choose another folder"
    checkpoints = sorted(path.name for path in Path(folder).glob("checkpoint-*"))
    if checkpoints:
        raise ValueError(f"{folder!r} already holds {checkpoints[-1]}; {choices}")
    path = Path(folder) / RESOLVED
    if not path.is_file():
        return
    before = parse(path.read_text(encoding="utf-8"))
    now = resolved(recipe)
    differ = [key for key in now if (before or {}).get(key) != now[key]]
    if differ:
        raise ValueError(
            f"{folder!r} holds a run with another {', '.join(differ)} (see {path}); {choices}"
        )
