"""Held-out accuracy while training."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rl.evaluation import EvaluationConfig, evaluate

if TYPE_CHECKING:
    from rl.trainer import DiffusionGRPOTrainer


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
        trainer, sampler = self.trainer, self.trainer.sampler
        assert sampler is not None, "an evaluation writes"
        with trainer.denoiser() as denoiser:
            results = evaluate(
                denoiser,
                trainer.loaded,
                self.rows,
                sampler,
                trainer.shape.length,
                grader=self.grader,
                config=self.config.monitor(sampler),
            )
        (found,) = results["greedy"].values()
        accuracy = found.accuracy
        trainer.log_now(
            {
                "eval/accuracy": accuracy.value,
                "eval/accuracy_low": accuracy.low,
                "eval/accuracy_high": accuracy.high,
            }
        )
