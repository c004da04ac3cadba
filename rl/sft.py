"""Train a masked diffusion model on gold completions.

    python -m rl.sft RECIPE [key.sub=value ...]                                  one process
    accelerate launch --config_file recipes/accelerate/ddp.yaml -m rl.sft RECIPE

The recipe has `kind: sft`. The trained model lies in trainer.output_dir, ready for `model.path`.
Exit code 2: something in the recipe or on the command line is wrong; the message says what.
"""

import json
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rl.command_line import run
from rl.console import out
from rl.recipe import Recipe
from rl.sft_data import SftConfig, tokenize_rows

logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return run(train, argv, prog="rl.sft", doc=__doc__, kind="sft")


def train(recipe: Recipe, *, resume: bool = False, overwrite: bool = False) -> dict[str, Any]:
    """Run a recipe; returns what it writes to OUTPUT_DIR/summary.json."""
    config = _checked(recipe, resume=resume, overwrite=overwrite)
    # Imported late: a mistake in a recipe is told before these take their seconds.
    from transformers import TrainingArguments

    from rl.backend import load_trainable, training_arguments
    from rl.checkpoints import last_whole_checkpoint
    from rl.evaluation import held_out_rows
    from rl.gathered import save_whole
    from rl.progress import StepProgress
    from rl.provenance import write_resolved
    from rl.sft_trainer import SftTrainer
    from rl.tasks import assert_disjoint

    args = training_arguments(TrainingArguments, recipe.trainer, {"logging_steps": 10})
    rows = recipe.task.rows("train", limit=config.train_size)
    held_out = held_out_rows(recipe.task, recipe.evaluation.prompts) if _evaluates(recipe) else []
    assert_disjoint(rows, held_out)
    loaded = load_trainable(recipe.model, args)
    data = tokenize_rows(loaded, rows, config)
    if args.process_index == 0:
        write_resolved(recipe, str(args.output_dir), overwrite=overwrite)
    trainer = SftTrainer(loaded=loaded, args=args, rows=data, t_min=config.t_min)
    StepProgress.install(trainer, "SFT")
    started = time.perf_counter()
    newest = last_whole_checkpoint(str(args.output_dir)) if resume else None
    trainer.train(resume_from_checkpoint=newest or args.resume_from_checkpoint)
    trained = time.perf_counter()
    save_whole(trainer, loaded, str(args.output_dir))
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

    check_recipe(recipe, resume=resume, overwrite=overwrite)
    if _evaluates(recipe):
        check_evaluation(recipe)
        if recipe.evaluation.every:
            logger.warning("evaluation.every is for RL; this run is evaluated once, at its end")
    assert recipe.sft is not None
    return recipe.sft


def _evaluates(recipe: Recipe) -> bool:
    return "evaluation" in recipe.raw


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


if __name__ == "__main__":
    sys.exit(main())
