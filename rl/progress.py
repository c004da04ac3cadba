"""The training bar: step, time left, and the few numbers one watches.

Where stderr is no terminal (a log file, a batch job) it prints a line every twentieth of the run.
"""

from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers import (
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from rl.console import err

SHOWN = {"loss": "loss", "reward": "reward", "kl": "kl", "eval/accuracy": "validation"}


class StepProgress(TrainerCallback):
    """Takes the place of the Trainer's own bar, which prints whole dictionaries."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.latest: dict[str, float] = {}
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[numbers]}"),
            console=err,
            transient=False,
            disable=not err.is_terminal,
        )

    @classmethod
    def install(cls, trainer: Trainer, title: str) -> None:
        for noisy in (ProgressCallback, PrinterCallback):
            trainer.remove_callback(noisy)
        if trainer.is_world_process_zero() and not trainer.args.disable_tqdm:
            trainer.add_callback(cls(title))

    @property
    def numbers(self) -> str:
        return "  ".join(f"{name} {value:.3f}" for name, value in self.latest.items())

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.bar.start()
        self.task = self.bar.add_task(
            self.title, total=state.max_steps, completed=state.global_step, numbers=""
        )

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.bar.update(self.task, completed=state.global_step, numbers=self.numbers)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        for key, name in SHOWN.items():
            if logs and key in logs:
                self.latest[name] = logs[key]
        every = max(1, state.max_steps // 20)
        if not err.is_terminal and "loss" in (logs or {}) and state.global_step % every == 0:
            err.print(f"{self.title} {state.global_step}/{state.max_steps}  {self.numbers}")

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.bar.update(self.task, completed=state.global_step, numbers=self.numbers)
        self.bar.stop()
