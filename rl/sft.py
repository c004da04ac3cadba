"""Train a masked diffusion model on gold completions.

    python -m rl.sft RECIPE [key.sub=value ...]                                  one process
    accelerate launch --config_file recipes/accelerate/ddp.yaml -m rl.sft RECIPE

The recipe has `kind: sft`. The trained model lies in trainer.output_dir, ready for `model.path`.
Exit code 2: something in the recipe or on the command line is wrong; the message says what.
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rl._layout import check_layout
from rl.console import fail, log_to_console, out
from rl.recipe import Recipe, load_recipe
from rl.sft_data import SftConfig, tokenize_rows

logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    log_to_console()
    try:
        check_layout()
        recipe = load_recipe(options.recipe, options.overrides)
        train(recipe, resume=options.resume, overwrite=options.overwrite)
    except ValueError as error:
        if options.debug:
            raise
        fail(error)
    return 0


def train(recipe: Recipe, *, resume: bool = False, overwrite: bool = False) -> dict[str, Any]:
    """Run a recipe; returns what it writes to OUTPUT_DIR/summary.json."""
    config = _checked(recipe, resume=resume, overwrite=overwrite)
    # Imported late: a mistake in a recipe is told before these take their seconds.
    from rl.evaluation import held_out_rows
    from rl.provenance import write_resolved
    from rl.sft_trainer import SftTrainer
    from rl.tasks import assert_disjoint

    args = _arguments(recipe)
    rows = recipe.task.rows("train", limit=config.train_size)
    held_out = held_out_rows(recipe.task, recipe.evaluation.prompts) if _evaluates(recipe) else []
    assert_disjoint(rows, held_out)
    loaded = _load(recipe, args)
    data = tokenize_rows(loaded, rows, config)
    if args.process_index == 0:
        write_resolved(recipe, str(args.output_dir))
    trainer = SftTrainer(loaded=loaded, args=args, rows=data, t_min=config.t_min)
    started = time.perf_counter()
    trainer.train(resume_from_checkpoint=resume or args.resume_from_checkpoint)
    trained = time.perf_counter()
    trainer.save_final(str(args.output_dir))
    accuracy = _evaluate(recipe, trainer) if _evaluates(recipe) else {}
    seconds = {"sft": trained - started, "eval": time.perf_counter() - trained}
    summary = {"rows": len(data), "length": data.length, "seconds": seconds, "accuracy": accuracy}
    if trainer.is_world_process_zero():
        folder = Path(str(args.output_dir))
        _write(folder / "log_history.json", trainer.state.log_history)
        _write(folder / "summary.json", summary)
        out.print(f"model: {folder}", markup=False)
    return summary


def _checked(recipe: Recipe, *, resume: bool, overwrite: bool) -> SftConfig:
    """The `sft:` section; ValueError for what cannot work, before anything is loaded."""
    from rl.evaluation_run import check_evaluation
    from rl.recipe_checks import check_recipe

    if recipe.kind != "sft":
        raise ValueError(
            f"{recipe.path} is a {recipe.kind} recipe: python -m rl.train {recipe.path}. "
            "Supervised training takes a recipe with `kind: sft`."
        )
    check_recipe(recipe, resume=resume, overwrite=overwrite)
    if _evaluates(recipe):
        check_evaluation(recipe)
        if recipe.evaluation.every:
            logger.warning("evaluation.every is for RL; this run is evaluated once, at its end")
    assert recipe.sft is not None
    return recipe.sft


def _evaluates(recipe: Recipe) -> bool:
    return "evaluation" in recipe.raw


def _arguments(recipe: Recipe) -> Any:
    """TrainingArguments, with defaults that fit a denoiser on this machine."""
    from transformers import TrainingArguments

    from rl.preparation import settle_backend

    settle_backend()
    gpu = torch.cuda.is_available()
    defaults = {
        "report_to": "none",
        "logging_steps": 10,
        "use_cpu": not gpu,
        "dataloader_pin_memory": gpu,
    }
    try:
        return TrainingArguments(**{**defaults, **recipe.trainer})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{recipe.path}: trainer: {error}") from error


def _load(recipe: Recipe, args: Any) -> Any:
    """The model to train, with a new adapter if the recipe asks for one."""
    from rl.models.loading import load
    from rl.models.lora import apply_lora

    loaded = load(recipe.model, training=True, seed=args.seed)
    model: Any = loaded.model
    plugin = args.deepspeed_plugin
    zero3 = plugin is not None and plugin.zero_stage == 3
    if recipe.model.lora_spec is not None:
        adapted = apply_lora(
            model, loaded.spec, recipe.model.lora_spec, zero3=zero3, seed=args.seed
        )
        loaded = replace(loaded, model=adapted)
    if args.gradient_checkpointing and hasattr(loaded.model, "disable_adapter"):
        loaded.model.enable_input_require_grads()
        args.gradient_checkpointing_kwargs = {"use_reentrant": zero3}
    return loaded


def _evaluate(recipe: Recipe, trainer: Any) -> dict[str, Any]:
    """The recipe's evaluation of the trained model, in OUTPUT_DIR/evaluation."""
    from rl.evaluation_run import results_table, run_evaluation

    folder = Path(trainer.args.output_dir)
    with trainer.denoiser() as denoiser:
        results = run_evaluation(
            recipe, trainer.loaded, denoiser, folder / "evaluation", model=str(folder)
        )
    if trainer.is_world_process_zero():
        out.print(results_table(results, f"{recipe.task.name}, test split: {folder}"))
    return {
        mode: {str(steps): found.as_dict() for steps, found in by_steps.items()}
        for mode, by_steps in results.items()
    }


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rl.sft", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("recipe", help="a YAML file with kind: sft, see recipes/")
    parser.add_argument("overrides", nargs="*", metavar="key.sub=value", help="change the recipe")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier run")
    parser.add_argument("--debug", action="store_true", help="show the traceback of a mistake")
    return parser


if __name__ == "__main__":
    sys.exit(main())
