"""Supervised training: every split of a step, what is saved, and the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import TrainingArguments

from estimators import RowRandom, Sequences
from rl import sft
from rl.gathered import save_whole
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import load
from rl.models.source import ModelSource
from rl.sft_data import SftConfig, tokenize_rows
from rl.sft_loss import sft_loss, sft_plan
from rl.sft_trainer import SftTrainer
from rl.tasks import TASKS
from tests.tiny_models import SMALL_BERT


def row(name: str, completion: str | None, prompt: str = "q") -> dict:
    return {"id": name, "prompt": prompt, "completion": completion}


def one_step(folder: Path, batch: int, accumulation: int) -> tuple[float, dict[str, Tensor]]:
    """One SGD step on 8 rows of different lengths: the logged loss, and the weights."""
    loaded = load(ModelSource(name="bert", config=SMALL_BERT), training=True, seed=0)
    rows = [row(str(i), "abcdefgh"[: 1 + i], "p" * (1 + i % 3)) for i in range(8)]
    data = tokenize_rows(loaded, rows, SftConfig(pad_to=9, supervise_padding=False))
    args = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulation,
        max_steps=1,
        logging_steps=1,
        optim="sgd",
        learning_rate=1.0,
        max_grad_norm=0.0,
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = SftTrainer(loaded=loaded, args=args, rows=data, t_min=0.01)
    trainer.train()
    return trainer.state.log_history[0]["loss"], dict(loaded.model.named_parameters())


def test_a_step_does_not_depend_on_its_micro_batches(tmp_path: Path) -> None:
    loss, whole = one_step(tmp_path, 8, 1)
    start = load(ModelSource(name="bert", config=SMALL_BERT), training=True, seed=0).model
    assert any((whole[k] - v).abs().max() > 1e-3 for k, v in start.named_parameters())
    for batch, accumulation in ((4, 2), (1, 8)):
        split_loss, split = one_step(tmp_path, batch, accumulation)
        assert split_loss == pytest.approx(loss, rel=1e-4)  # the log is rounded
        for name, value in whole.items():
            torch.testing.assert_close(split[name], value, rtol=0, atol=1e-5)


RECIPE = """
kind: sft
model: {{name: bert, config: {config}}}
task: {{name: free_sudoku4, train_size: 400}}
sft: {{pad_to: 16}}
trainer:
  output_dir: {folder}
  max_steps: 30
  per_device_train_batch_size: 16
  learning_rate: 1.0e-2
  warmup_steps: 3
  lr_scheduler_type: warmup_stable_decay
  lr_scheduler_kwargs: {{num_decay_steps: 9, decay_type: linear, min_lr_ratio: 0.05}}
  logging_steps: 5
  save_strategy: "no"
  disable_tqdm: true
"""


CONSTANT_RATE = (
    "trainer.lr_scheduler_type=constant",
    "trainer.lr_scheduler_kwargs={}",
    "trainer.warmup_steps=0",
)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE.format(config=json.dumps(SMALL_BERT), folder=tmp_path / "run"))
    return path


def test_thirty_steps_learn_and_the_result_reloads(recipe: Path, tmp_path: Path) -> None:
    evaluation = "evaluation={prompts: 8, steps: [2, 16], batch_size: 8}"
    sampler = "sampler={name: low_confidence, steps: 16}"
    assert sft.main([str(recipe), sampler, evaluation]) == 0
    run = tmp_path / "run"
    history = json.loads((run / "log_history.json").read_text())
    losses = [entry["loss"] for entry in history if "loss" in entry]
    assert losses[0] > 2.5  # 97 characters, of which 4 occur
    assert losses[-1] < 1.7
    rates = [entry["learning_rate"] for entry in history if "loss" in entry]
    assert rates[:4] == pytest.approx([1e-2] * 4)
    assert rates[5] == pytest.approx(1e-2 * (0.05 + 0.95 / 9))  # before the last step of the decay
    summary = json.loads((run / "summary.json").read_text())
    assert summary["rows"] == 400
    assert summary["accuracy"]["greedy"]["16"]["total"] == 8
    assert len((run / "evaluation" / "generations.jsonl").read_text().splitlines()) == 16
    assert "free_sudoku4" in (run / "resolved_recipe.yaml").read_text()

    again = load(ModelSource(name="bert", path=str(run)), training=False)
    data = tokenize_rows(again, TASKS["free_sudoku4"]().rows("train", 64), SftConfig(pad_to=16))
    batch = data.collate(range(64))
    rows = Sequences(**{k: v for k, v in batch.items() if k not in ("supervised", "key")})
    plan = sft_plan(rows, batch["supervised"], RowRandom(batch["key"].tolist()), 0.01)
    with torch.no_grad():
        loss = float(sft_loss(ModelDenoiser.of(again), rows, plan, 64.0 * 16))
    assert loss < 1.7


def test_saved_weights_are_the_trained_ones(tmp_path: Path) -> None:
    loaded = load(ModelSource(name="bert", config=SMALL_BERT), training=True, seed=0)
    data = tokenize_rows(loaded, [row("a", "abc"), row("b", "xyz")], SftConfig())
    args = TrainingArguments(
        output_dir=str(tmp_path / "run"), max_steps=2, learning_rate=1e-2, report_to="none",
        save_strategy="no", use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = SftTrainer(loaded=loaded, args=args, rows=data, t_min=0.01)
    trainer.train()
    save_whole(trainer, loaded, tmp_path / "run")
    again = load(ModelSource(name="bert", path=str(tmp_path / "run")), training=True)
    trained = dict(loaded.model.named_parameters())
    for name, value in again.model.named_parameters():
        assert torch.equal(value, trained[name]), name


def test_lora_trains_the_adapter_only(recipe: Path, tmp_path: Path) -> None:
    short = ["trainer.max_steps=2", *CONSTANT_RATE]
    assert sft.main([str(recipe), "model.lora={r: 2, alpha: 4}", *short]) == 0
    assert (tmp_path / "run" / "adapter_config.json").is_file()
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["sft.pad_to=yes_please"], "sft.pad_to"),
        (["sft.t_mn=0.1"], "did you mean 't_min'"),
        (["sft.pad_to=8"], "more than sft.pad_to = 8 (400 of 400 rows do)"),
        (["evaluation={}"], "sampler"),
        (["trainer.learning_rat=1"], "did you mean 'learning_rate'"),
    ],
)
def test_mistakes_are_told(
    recipe: Path, overrides: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        sft.main([str(recipe), *overrides])
    assert message in capsys.readouterr().err


def test_a_grpo_recipe_is_sent_to_rl_train(capsys: pytest.CaptureFixture[str]) -> None:
    grpo = Path(__file__).parents[1] / "recipes" / "tiny_cpu.yaml"
    with pytest.raises(SystemExit, match="2"):
        sft.main([str(grpo)])
    assert "is a recipe of kind grpo: python -m rl.train" in capsys.readouterr().err


LAUNCH = """
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
use_cpu: true
mixed_precision: 'no'
num_machines: 1
num_processes: 2
machine_rank: 0
main_process_port: 0
same_network: true
rdzv_backend: static
main_training_function: main
"""


@pytest.mark.slow
def test_two_processes_train_as_one(recipe: Path, tmp_path: Path) -> None:
    """Same rows per step, so the same weights up to rounding; SGD, which does not amplify it."""
    settings = [
        *CONSTANT_RATE,
        "trainer.max_steps=2",
        "trainer.optim=sgd",
        "trainer.learning_rate=0.5",
        "trainer.logging_steps=1",
        "sft={pad_to: 20, supervise_padding: false}",
    ]
    assert sft.main([str(recipe), *settings]) == 0
    config = tmp_path / "launch.yaml"
    config.write_text(LAUNCH)
    done = subprocess.run(
        [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(config),
         "-m", "rl.sft", str(recipe), *settings, "trainer.per_device_train_batch_size=8",
         f"trainer.output_dir={tmp_path / 'two'}"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"},
        cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    history = [json.loads((tmp_path / x / "log_history.json").read_text()) for x in ("run", "two")]
    one, two = ([entry["loss"] for entry in run if "loss" in entry] for run in history)
    assert two == pytest.approx(one, rel=1e-4)
    models = [
        load(ModelSource(name="bert", path=str(tmp_path / x)), training=False).model
        for x in ("run", "two")
    ]
    other = dict(models[1].named_parameters())
    for name, value in models[0].named_parameters():
        torch.testing.assert_close(other[name], value, rtol=0, atol=1e-5)
