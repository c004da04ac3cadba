"""A recipe's whole evaluation, written to a folder.

generations.jsonl   a line per completion: prompt, answer columns, completion, score, cost
metrics.json        for every setting accuracy with its interval, strict accuracy, how the answers
                    were read; and what was evaluated
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from accelerate import PartialState
from rich.table import Table

from rewards import REWARDS
from rl.evaluation import Results, evaluate, held_out_rows
from rl.graded import Generation, Measured, Row
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel
from rl.recipe import Recipe
from rl.recipe_checks import check_writable, trainer_value
from rl.samplers import Sampler
from rl.task_grader import task_grader

GENERATIONS, METRICS = "generations.jsonl", "metrics.json"


def completion_length(recipe: Recipe) -> int:
    """Tokens of a completion: those of training."""
    if recipe.kind == "grpo":
        return trainer_value(recipe, "max_completion_length")
    assert recipe.sft is not None
    if recipe.sft.pad_to == "longest":
        raise ValueError(
            "sft.pad_to is longest; an evaluation needs a number there, since it writes "
            "completions of that many tokens"
        )
    return recipe.sft.pad_to


def recipe_sampler(recipe: Recipe) -> Sampler:
    if recipe.sampler is None:
        raise ValueError(
            "sampler: missing; an evaluation writes completions with it, as in "
            "sampler: {name: low_confidence, steps: 64}"
        )
    return recipe.sampler


def check_evaluation(recipe: Recipe) -> None:
    """Raise for an evaluation that cannot run, before anything is loaded."""
    length = completion_length(recipe)
    recipe.evaluation.validate(recipe_sampler(recipe), length)
    if not recipe.task.grader:
        raise ValueError(
            f"task {recipe.task.name} has no right answers to grade; leave out `evaluation:`"
        )
    if recipe.task.grader not in REWARDS:
        raise ValueError(
            f"task {recipe.task.name}: its grader {recipe.task.grader!r} is not in "
            f"rewards.REWARDS, which has {', '.join(sorted(REWARDS))}"
        )
    task_grader(recipe.task)


def check_folder(folder: Path) -> None:
    """Raise if `folder` holds an evaluation: two models in one file could not be told apart."""
    for name in (GENERATIONS, METRICS):
        if (folder / name).exists():
            raise ValueError(
                f"{folder / name} is there already; name another folder (--out DIR), or remove it"
            )
    check_writable(folder)


def run_evaluation(
    recipe: Recipe,
    loaded: LoadedModel,
    denoiser: ModelDenoiser,
    folder: Path,
    *,
    model: str,
    progress: bool = True,
) -> Results:
    """Evaluate on the test split. All processes call it; the main one (over)writes `folder`.

    model: what metrics.json calls the model.
    """
    start = time.perf_counter()
    config, length = recipe.evaluation, completion_length(recipe)
    rows = held_out_rows(recipe.task, config.prompts)
    main = PartialState().is_main_process
    if main:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / GENERATIONS).unlink(missing_ok=True)  # of an earlier run, see `check_folder`

    def on_result(mode: str, steps: int, generations: list[Generation]) -> None:
        if main:
            _append(folder / GENERATIONS, generations, rows)

    results = evaluate(
        denoiser,
        loaded,
        rows,
        recipe_sampler(recipe),
        length,
        grader=task_grader(recipe.task),
        config=config,
        progress=progress,
        on_result=on_result,
    )
    if main:
        metrics = {
            "model": model,
            "task": recipe.task.name,
            "split": "test",
            "prompts": len(rows),
            "grader": recipe.task.grader,
            "sampler": recipe_sampler(recipe).rule,
            "length": length,
            "accuracy": {
                mode: {str(steps): found.as_dict() for steps, found in by_steps.items()}
                for mode, by_steps in results.items()
            },
            "temperature": config.temperature,
            "seed": config.seed,
            "recipe": str(recipe.path),
            "seconds": round(time.perf_counter() - start, 2),
        }
        text = json.dumps(metrics, indent=2, ensure_ascii=False)
        (folder / METRICS).write_text(text + "\n", encoding="utf-8")
    return results


def _append(path: Path, generations: Sequence[Generation], rows: Sequence[Row]) -> None:
    columns = {row["id"]: {k: v for k, v in row.items() if k != "completion"} for row in rows}
    gold = {row["id"]: row.get("completion") for row in rows}
    with path.open("a", encoding="utf-8") as file:
        for x in generations:
            line = {**columns[x.id], "gold": gold[x.id], **asdict(x)}
            file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")


def results_table(results: Mapping[str, Mapping[int, Measured]], title: str) -> Table:
    """Accuracy, and beside it, where the grader tells, the strict one and how answers were read."""
    every = [found for by_steps in results.values() for found in by_steps.values()]
    headings = ["decoding", "steps", "accuracy", "95 % interval", "correct"]
    headings += ["strict"] * any(found.strict is not None for found in every)
    headings += ["answers"] * any(found.answers for found in every)
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in headings:
        left = heading in ("decoding", "answers")
        table.add_column(heading, justify="left" if left else "right")
    for mode, by_steps in results.items():
        for steps, found in by_steps.items():
            cells = {
                "decoding": mode,
                "steps": str(steps),
                "accuracy": f"{100 * found.accuracy.value:.1f} %",
                "95 % interval": f"{100 * found.accuracy.low:.1f} to "
                f"{100 * found.accuracy.high:.1f}",
                "correct": f"{found.accuracy.correct} / {found.accuracy.total}",
                "strict": f"{100 * found.strict.value:.1f} %" if found.strict else "",
                "answers": ", ".join(
                    f"{name.replace('_', ' ')} {100 * share:.1f} %"
                    for name, share in found.answers.items()
                ),
            }
            table.add_row(*(cells[heading] for heading in headings))
    return table
