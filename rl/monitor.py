"""Held-out accuracy while training."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rl.evaluation import EvaluationConfig, Results, evaluate

if TYPE_CHECKING:
    from rl.trainer import DiffusionGRPOTrainer


def evaluate_policy(
    trainer: "DiffusionGRPOTrainer",
    rows: Sequence[dict[str, Any]],
    config: EvaluationConfig,
    grader: Callable[..., Any],
    progress: bool = False,
) -> Results:
    """The policy as it is now, with the sampler that it is trained on. Every rank must call it."""
    with trainer.denoiser() as denoiser:
        return evaluate(
            denoiser,
            trainer.loaded,
            rows,
            trainer.sampler,
            trainer.shape.length,
            grader=grader,
            config=config,
            progress=progress,
        )


class Monitor(TrainerCallback):
    """Logs greedy accuracy every `config.every` steps on a few validation prompts."""

    def __init__(
        self, rows: Sequence[dict[str, Any]], config: EvaluationConfig, grader: Callable[..., Any]
    ) -> None:
        self.rows, self.config, self.grader = rows, config, grader
        self.trainer: DiffusionGRPOTrainer | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if state.global_step == 0:
            self._log()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if state.global_step % self.config.every == 0 or state.global_step == state.max_steps:
            self._log()

    def _log(self) -> None:
        assert self.trainer is not None
        config = self.config.monitor(self.trainer.sampler)
        results = evaluate_policy(self.trainer, self.rows, config, self.grader)
        (accuracy,) = results["greedy"].values()
        self.trainer.log_now(
            {
                "eval/accuracy": accuracy.value,
                "eval/accuracy_low": accuracy.low,
                "eval/accuracy_high": accuracy.high,
            }
        )
