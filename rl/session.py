"""One training run: the trainer, its evaluations, and the files it leaves."""

import json
from pathlib import Path
from typing import Any

from rl.advantages import GroupAdvantage
from rl.console import out
from rl.evaluation import Results
from rl.evaluation_run import results_table, run_evaluation
from rl.gathered import save_whole
from rl.intervals import Accuracy
from rl.monitor import Monitor
from rl.pairs import pair_note
from rl.preparation import Prepared, evaluates, grader
from rl.progress import StepProgress
from rl.recipe import Recipe
from rl.report import write_report
from rl.trainer import DiffusionGRPOTrainer


class Session:
    """Puts the prepared parts of a recipe together."""

    def __init__(self, recipe: Recipe, prepared: Prepared) -> None:
        assert recipe.estimator is not None
        assert recipe.objective is not None
        assert recipe.rollout is not None
        self.recipe, self.prepared = recipe, prepared
        self.folder = Path(str(prepared.args.output_dir))
        callbacks = list[Any]()
        if prepared.monitored:
            callbacks.append(Monitor(prepared.monitored, recipe.evaluation, grader(recipe)))
        self.trainer = DiffusionGRPOTrainer(
            loaded=prepared.loaded,
            args=prepared.args,
            rows=prepared.rows,
            sampler=recipe.sampler,
            estimator=recipe.estimator,
            objective=recipe.objective,
            advantage=recipe.advantage or GroupAdvantage(),
            rewards=prepared.rewards,
            scheme=recipe.rollout,
            frozen_reference=prepared.reference,
            callbacks=callbacks,
        )
        for monitor in callbacks:
            monitor.trainer = self.trainer
        StepProgress.install(self.trainer, "RL")
        how = strategy(self.trainer)
        self._say(f"{how['processes']} process{'es' * (how['processes'] > 1)} ({how['kind']})")
        if recipe.sampler is not None and recipe.rollout.writes:
            self._say(pair_note(recipe.estimator, recipe.sampler, self.trainer.shape.length))

    def evaluate(self, moment: str) -> Results:
        """Held-out accuracy at the step counts of `evaluation:`; {} without that section.

        Completions and accuracies go to OUTPUT_DIR/evaluation_MOMENT.
        """
        if not evaluates(self.recipe):
            return {}
        folder = self.folder / f"evaluation_{moment}"
        with self.trainer.denoiser() as denoiser:
            results = run_evaluation(
                self.recipe, self.prepared.loaded, denoiser, folder, model=f"{moment} RL"
            )
        self._say(results_table(results, f"{moment} RL"))
        return results

    def save(self) -> None:
        """The trained model (or adapter) and its tokenizer, as `model.path` takes them."""
        save_whole(self.trainer, self.prepared.loaded, self.folder)

    def finish(self, before: Results, after: Results, seconds: dict[str, float]) -> dict[str, Any]:
        """Write log_history.json, summary.json and, where completions are written, report.png."""
        sampler = self.recipe.sampler
        summary = {
            "strategy": strategy(self.trainer),
            "seconds": seconds,
            "heldout": len(self.prepared.held_out),
            "overlap": 0,  # asserted before training
            "trained_steps": sampler.steps if sampler else None,
            "accuracy": {"before": _values(before), "after": _values(after)},
            "intervals": {"before": _intervals(before), "after": _intervals(after)},
        }
        if self.trainer.accelerator.is_main_process:
            history = self.trainer.state.log_history
            _write(self.folder / "log_history.json", history)
            _write(self.folder / "summary.json", summary)
            if sampler is not None:
                path = write_report(
                    self.folder,
                    history,
                    _accuracies(before, "greedy"),
                    _accuracies(after, "greedy"),
                    sampler.steps,
                )
                self._say(f"report: {path}")
        return summary

    def _say(self, what: Any) -> None:
        if self.trainer.accelerator.is_main_process:
            out.print(what)


def strategy(trainer: DiffusionGRPOTrainer) -> dict[str, Any]:
    """How many processes share the work, and how."""
    accelerator = trainer.accelerator
    kind = accelerator.distributed_type.value
    if (plugin := accelerator.state.deepspeed_plugin) is not None:
        kind += f" ZeRO-{plugin.zero_stage}"
    return {"processes": accelerator.num_processes, "kind": kind}


def _values(results: Results) -> dict[str, float]:
    return {str(steps): a.value for steps, a in _accuracies(results, "greedy").items()}


def _intervals(results: Results) -> dict[str, dict[str, list[float]]]:
    return {
        mode: {str(steps): [a.low, a.high] for steps, a in _accuracies(results, mode).items()}
        for mode in results
    }


def _accuracies(results: Results, mode: str) -> dict[int, Accuracy]:
    return {steps: found.accuracy for steps, found in results.get(mode, {}).items()}


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
