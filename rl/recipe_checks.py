"""What a recipe's sections must agree on; asked before a model is loaded.

check_recipe(recipe)      raises one RecipeError with everything that will not work
"""

import os
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rl.backward import check_mode
from rl.binding import located, parameters
from rl.checkpoints import last_whole_checkpoint
from rl.loss_check import check_loss
from rl.models.denoiser import ModelDenoiser
from rl.provenance import RESOLVED, resolved
from rl.recipe import Recipe, RecipeError
from rl.recipe_binder import trainer_config
from rl.recipe_yaml import read
from rl.rollout_checks import check_rollout

_AT_LEAST = {
    **dict.fromkeys(("learning_rate", "weight_decay", "warmup_steps"), 0),
    **dict.fromkeys(("per_device_train_batch_size", "gradient_accumulation_steps"), 1),
    **dict.fromkeys(("generation_batch_size", "steps_per_generation", "num_iterations"), 1),
    "max_completion_length": 1,
}
Check = Callable[[str, Callable[[], None]], None]  # where in the recipe, what raises if it is wrong

_DATA_FILE = re.compile(r"\.(jsonl?|csv|parquet|txt|tsv|ya?ml)(\.gz)?$")


def check_recipe(
    recipe: Recipe,
    *,
    training: bool = True,
    resume: bool = False,
    overwrite: bool = False,
    files: bool = True,
) -> None:
    """
    resume, overwrite: what the user allows to happen to a run that is in output_dir.
    files: look at the model's files and at output_dir, too.
    """
    problems: list[str] = []

    def check(where: str, test: Callable[[], None]) -> None:
        try:
            test()
        except ValueError as error:
            problems.append(f"{recipe.path}: {located(where, str(error))}")

    if files:
        check("model", lambda: recipe.model.validate(training=training))
        check("model.path", lambda: _local_path(recipe))
    for key in ("task", "estimator", "objective", "advantage"):
        validate = getattr(getattr(recipe, key), "validate", None)
        if validate is not None:
            check(key, validate)
    if training and recipe.estimator is not None:
        check("estimator", partial(recipe.estimator.accepts, ModelDenoiser))
    earlier = len(problems)
    for key in sorted(_AT_LEAST.keys() & recipe.trainer.keys()):
        check(f"trainer.{key}", partial(_large_enough, recipe, key))
    check("trainer.max_steps", lambda: _some_steps(recipe))
    sampler, scheme = recipe.sampler, recipe.rollout
    if scheme is not None and len(problems) == earlier:
        if sampler is not None:
            length = trainer_value(recipe, "max_completion_length")
            check("sampler", lambda: sampler.validate(length))
        if training:
            if sampler is not None and scheme.writes:
                check("sampler.temperature", lambda: _explores(sampler.temperature))
            check("trainer.num_generations", lambda: _whole_groups(recipe))
            check("trainer.per_device_train_batch_size", lambda: _groups_together(recipe))
            check("objective", lambda: _reweighs_completions(recipe))
            check("trainer.backward", lambda: _exact_backward(recipe))
            check("rollout", lambda: check_rollout(recipe))
            if len(problems) == earlier:
                length = trainer_value(recipe, "max_completion_length")
                check("objective", lambda: check_loss(recipe, length))
    if training and files:
        _check_run(recipe, check, resume=resume, overwrite=overwrite)
    if training and files and not problems:
        check("trainer.output_dir", lambda: check_writable(trainer_value(recipe, "output_dir")))
    if problems:
        raise RecipeError(problems)


def _check_run(recipe: Recipe, check: Check, *, resume: bool, overwrite: bool) -> None:
    """What is in the output folder, and what the user wants of it."""
    checkpoint = recipe.trainer.get("resume_from_checkpoint")
    if checkpoint:
        check("trainer.resume_from_checkpoint", lambda: _is_checkpoint(checkpoint))
    if not (resume or overwrite or checkpoint):
        check("trainer.output_dir", lambda: _fresh_output(recipe))
    if resume:
        check("trainer.output_dir", lambda: _checkpoint_there(recipe))
    if overwrite:
        check("trainer.output_dir", lambda: _starts_from_elsewhere(recipe))


def trainer_value(recipe: Recipe, key: str) -> Any:
    """A key of `trainer:`, or its default."""
    if key in recipe.trainer:
        return recipe.trainer[key]
    config, _ = trainer_config(recipe.kind)
    return parameters(config)[key].default


def check_writable(folder: str | Path | None) -> None:
    """Make the folder, and raise if nothing can be written there."""
    if folder is None:
        raise ValueError("missing; a run needs a folder for its checkpoints and logs")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"nothing can be written to {str(folder)!r} ({error.strerror}); name a folder that "
            "you may make and write to"
        ) from error


def _large_enough(recipe: Recipe, key: str) -> None:
    value, least = recipe.trainer[key], _AT_LEAST[key]
    config, _ = trainer_config(recipe.kind)
    if value is None and parameters(config)[key].default is None:
        return
    if value is None or not value >= least:  # nor NaN
        raise ValueError(f"{'null' if value is None else value}; use at least {least}")


def _some_steps(recipe: Recipe) -> None:
    if recipe.trainer.get("max_steps") == 0:
        raise ValueError(
            "0; use a number of optimizer steps, or -1 for as many as num_train_epochs takes"
        )


def _explores(temperature: float) -> None:
    if temperature == 0:
        raise ValueError(
            "0 writes the same completion num_generations times, and nothing can be compared; use "
            "a positive number, 1.0 is the usual one (evaluation decodes greedily all the same)"
        )


def _is_checkpoint(path: str) -> None:
    if not (Path(path) / "trainer_state.json").is_file():
        raise ValueError(
            f"{path!r} is no checkpoint of a trainer (it has no trainer_state.json); give a folder "
            "OUTPUT_DIR/checkpoint-N"
        )


def _local_path(recipe: Recipe) -> None:
    """Raise for what looks like a file or folder and is not there; the rest are hub ids."""
    path = recipe.model.path
    if path is None or Path(path).expanduser().exists():
        return
    parts = Path(path).parts
    local = (
        path.startswith((".", "/", "~"))
        or len(parts) > 2
        or _DATA_FILE.search(path)
        or (len(parts) == 2 and Path(parts[0]).is_dir())
        or parts[:1] == Path(recipe.trainer.get("output_dir") or "").parts[:1]
    )
    if local:
        raise ValueError(f"there is no {path!r} (looked in {Path.cwd()})")


def _whole_groups(recipe: Recipe) -> None:
    """The completions of a rollout must be whole groups of num_generations."""
    group = trainer_value(recipe, "num_generations")
    if group is None or group < 2:
        raise ValueError(f"{group} completion per prompt has nothing to be compared with; use >= 2")
    each = trainer_value(recipe, "per_device_train_batch_size")
    world = int(os.environ.get("WORLD_SIZE", "1"))
    total = trainer_value(recipe, "generation_batch_size")
    steps = trainer_value(recipe, "steps_per_generation")
    name = "steps_per_generation" if steps else "gradient_accumulation_steps"
    steps = steps or trainer_value(recipe, "gradient_accumulation_steps")
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


def _groups_together(recipe: Recipe) -> None:
    """Some losses compare the completions of a prompt: they must be in one micro-batch."""
    objective = recipe.objective
    if objective is None or not objective.whole_groups:
        return
    each = trainer_value(recipe, "per_device_train_batch_size")
    group = trainer_value(recipe, "num_generations")
    if each % group:
        raise ValueError(
            f"{each} completions are not whole groups of num_generations {group}, which objective "
            f"{_name(recipe, 'objective')} compares within a micro-batch; use a multiple of "
            f"{group}"
        )


def _reweighs_completions(recipe: Recipe) -> None:
    objective, scheme = recipe.objective, recipe.rollout
    if objective is None or scheme is None or not objective.reweighs:
        return
    if scheme.per_token:
        raise ValueError(
            f"{_name(recipe, 'objective')} weighs whole completions, but rollout "
            f"{_name(recipe, 'rollout')} credits their tokens; use rollout independent"
        )
    if scheme.rows_per_completion > 1:
        raise ValueError(
            f"{_name(recipe, 'objective')} weighs the completions of a prompt against each "
            f"other, but rollout {_name(recipe, 'rollout')} learns from "
            f"{scheme.rows_per_completion} texts of each; use another rollout or objective"
        )


def _name(recipe: Recipe, key: str) -> str:
    """What a section calls its class."""
    section = recipe.raw[key]
    return section if isinstance(section, str) else section["name"]


def _exact_backward(recipe: Recipe) -> None:
    wanted = recipe.trainer.get("backward")
    objective, estimator = recipe.objective, recipe.estimator
    if wanted is None or objective is None or estimator is None:
        return
    from rl.costs import training_shape  # imported late: TRL takes seconds

    on_policy = training_shape(recipe).rollout_is_on_policy
    check_mode(
        wanted,
        linear=estimator.linear and objective.linear(on_policy),
        dropout=not trainer_value(recipe, "disable_dropout"),
    )


def _checkpoint_there(recipe: Recipe) -> None:
    """Raise if there is nothing to resume; to start instead could cost days before it is seen."""
    folder = trainer_value(recipe, "output_dir")
    if folder is None or last_whole_checkpoint(folder) is None:
        raise ValueError(f"{folder!r} holds no checkpoint to go on from; leave out --resume")


def _starts_from_elsewhere(recipe: Recipe) -> None:
    """Raise if --overwrite would remove what the model is loaded from."""
    folder = Path(trainer_value(recipe, "output_dir") or ".").resolve()
    for path in filter(None, (recipe.model.path, recipe.model.adapter)):
        if folder in Path(path).resolve().parents and Path(path).name.startswith("checkpoint-"):
            raise ValueError(
                f"--overwrite would remove {path!r}, which the model is loaded from; choose "
                "another folder"
            )


def _fresh_output(recipe: Recipe) -> None:
    """Raise if the folder holds another run, or checkpoints of this one."""
    folder = trainer_value(recipe, "output_dir")
    if folder is None:
        return  # `check_writable` says so
    choices = "continue it with --resume, start anew with --overwrite, or choose another folder"
    checkpoints = sorted(path.name for path in Path(folder).glob("checkpoint-*"))
    if checkpoints:
        raise ValueError(f"{folder!r} already holds {checkpoints[-1]}; {choices}")
    path = Path(folder) / RESOLVED
    if not path.is_file():
        return
    try:
        before = read(path)
    except RecipeError as error:
        raise ValueError(f"{error}, so it does not say which run is there; {choices}") from error
    now = resolved(recipe)
    differ = [key for key in now if before.get(key) != now[key]]
    if differ:
        raise ValueError(
            f"{folder!r} holds a run with another {', '.join(differ)} (see {path}); {choices}"
        )
