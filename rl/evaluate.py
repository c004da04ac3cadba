"""Evaluate a recipe's model on the test split of its task.

    python -m rl.evaluate RECIPE [key.sub=value ...] [--out DIR]
    accelerate launch -m rl.evaluate RECIPE ...          the same on several processes

Prompt, sampler and grader are those of training; `evaluation:` says how many prompts, and at which
numbers of denoising steps. To evaluate a trained model: model.path=FOLDER.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import torch
from accelerate import PartialState

from rl._layout import check_layout
from rl.backend import quiet_transformers
from rl.console import fail, interrupted, log_to_console, out, speaks
from rl.evaluation_run import check_evaluation, check_folder, results_table, run_evaluation
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import load
from rl.models.source import ModelSource
from rl.recipe import Recipe, load_recipe
from rl.recipe_checks import check_recipe, trainer_value


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_intermixed_args(argv)
    log_to_console()
    try:
        _evaluate(options)
    except KeyboardInterrupt:
        interrupted()
    except (ValueError, ImportError) as error:
        fail(error)
    return 0


def _evaluate(options: argparse.Namespace) -> None:
    check_layout()
    recipe = load_recipe(options.recipe, options.overrides)
    check_recipe(recipe, training=False)
    check_evaluation(recipe)
    folder = options.out or _default_folder(recipe)
    check_folder(folder)
    quiet_transformers()
    loaded = load(recipe.model, training=False, seed=trainer_value(recipe, "seed"))
    state = PartialState(cpu=not torch.cuda.is_available())
    loaded.model.to(state.device)  # pyright: ignore[reportArgumentType]
    model = _name(recipe.model)
    results = run_evaluation(recipe, loaded, ModelDenoiser.of(loaded), folder, model=model)
    if speaks():
        out.print(results_table(results, f"{recipe.task.name}, test split: {model}"))
        out.print(f"{folder}/", markup=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rl.evaluate",
        description="Evaluate a recipe's model on the test split of its task.",
    )
    parser.add_argument("recipe", help="a YAML file, see recipes/")
    parser.add_argument("overrides", nargs="*", metavar="key.sub=value", help="change the recipe")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write the results")
    return parser


def _default_folder(recipe: Recipe) -> Path:
    """A new folder beside the run that the recipe describes."""
    base = Path(recipe.trainer.get("output_dir") or Path("outputs") / recipe.path.stem)
    return base / f"evaluation-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _name(source: ModelSource) -> str:
    name = source.path or f"{source.name}, untrained"
    return f"{name} + {source.adapter}" if source.adapter else name


if __name__ == "__main__":
    sys.exit(main())
