"""Supervised training: the loss by hand and against the exact ELBO, and every split of a step."""

import itertools
import json
import logging
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import TrainingArguments

from estimators import MaskPlan, Reduce, RowRandom, Sequences
from rl import sft
from rl.gathered import save_whole
from rl.models.loading import LoadedModel, load
from rl.models.source import ModelSource
from rl.sft_data import SftConfig, tokenize_rows
from rl.sft_loss import sft_loss, sft_plan
from rl.sft_trainer import SftTrainer
from rl.tasks import TASKS

CONFIG = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "initializer_range": 0.1,
}
MASK = 4  # of the table denoiser, which has the tokens 0 to 3


class TableDenoiser:
    """A distribution for every partly masked completion of 3 tokens, drawn at random."""

    mask_id = MASK

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        table = torch.randn(5, 5, 5, 3, 4, generator=generator, dtype=torch.float64).float()
        self.logits = table.requires_grad_()

    def __call__(
        self, ids: Tensor, attention: Tensor, index: Tensor, reduce: Reduce
    ) -> tuple[Tensor, ...]:
        S = ids.shape[1]
        z = ids[index // S, -3:]
        place = index % S - (S - 3)
        logits = self.logits[z[:, 0], z[:, 1], z[:, 2], place]
        entries = torch.arange(len(index))
        return reduce(logits, entries, entries)

    def logp(self, completion: Sequence[int], masked: set[int], place: int) -> float:
        z = [MASK if i in masked else token for i, token in enumerate(completion)]
        at = self.logits.detach()[z[0], z[1], z[2], place]
        return float(at.log_softmax(-1)[completion[place]])


class GivenNumbers(RowRandom):
    """Uniform numbers written down in a test."""

    def __init__(self, numbers: list[list[float]]) -> None:
        super().__init__(range(len(numbers)))
        self.numbers = torch.tensor(numbers, dtype=torch.float64)

    def per_row(self, *shape: int) -> Tensor:
        assert self.numbers.shape[1:] == shape
        return self.numbers


def sequences(completion: list[list[int]], prompt: int = 2) -> Sequences:
    ids = torch.tensor(completion)
    return Sequences(
        prompt_ids=torch.zeros(len(ids), prompt, dtype=torch.long),
        prompt_mask=torch.ones(len(ids), prompt, dtype=torch.bool),
        completion_ids=ids,
        completion_mask=torch.ones_like(ids, dtype=torch.bool),
    )


# --- where the masks go


def test_plan_by_hand() -> None:
    """t = 1 - (1 - t_min) u; a token is masked where its own number is below t, weight 1/t."""
    supervised = torch.tensor([[True, True, True], [True, True, False]])
    numbers = GivenNumbers([[0.5, 0.59, 0.61, 0.0], [0.0, 0.99, 0.0, 0.0]])
    plan = sft_plan(sequences([[1, 2, 3], [1, 2, 3]]), supervised, numbers, t_min=0.2)
    # row 0: t = 1 - 0.8 x 0.5 = 0.6; row 1: t = 1, and its last token is not supervised
    assert plan.completion.tolist() == [[[True, False, True]], [[True, True, True]]]
    assert plan.weight.tolist() == [[pytest.approx([1 / 0.6, 0, 1 / 0.6])], [[1, 1, 0]]]
    assert not plan.prompt.any()


def test_no_ratio_is_below_t_min_and_none_is_zero() -> None:
    rows = sequences([[1, 2, 3]] * 500)
    supervised = torch.ones(500, 3, dtype=torch.bool)
    for t_min in (0.0, 0.3):
        plan = sft_plan(rows, supervised, RowRandom(range(500)), t_min)
        weights = plan.weight[plan.completion]
        assert weights.isfinite().all()
        assert weights.min() >= 1
        if t_min:
            assert 3 < weights.max() <= 1 / t_min + 1e-6


# --- the loss


class TwoTokens:
    """Answers 1/4 for the first of two tokens, and 1/8 for the second where the first is hidden."""

    mask_id = 9

    def __call__(
        self, ids: Tensor, attention: Tensor, index: Tensor, reduce: Reduce
    ) -> tuple[Tensor, ...]:
        S = ids.shape[1]
        probability = torch.empty(len(index), 2)
        for k, flat in enumerate(index.tolist()):
            row, place = flat // S, flat % S - (S - 2)
            p = 1 / 4 if place == 0 else 1 / 8 if ids[row, -2] == self.mask_id else 1 / 2
            probability[k] = torch.tensor([1 - p, p])
        entries = torch.arange(len(index))
        return reduce(probability.log(), entries, entries)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [  # u -> t = 1 - u (t_min is 0); a token is masked where its number is below t
        ([0.5, 0.2, 0.9], math.log(4) / 0.5 / 2),  # first token only
        ([0.75, 0.9, 0.1], math.log(2) / 0.25 / 2),  # second only, which sees the first
        ([0.0, 0.2, 0.9], (math.log(4) + math.log(8)) / 2),  # both
        ([0.9, 0.2, 0.9], 0.0),  # none
    ],
)
def test_loss_of_two_tokens_by_hand(numbers: list[float], expected: float) -> None:
    rows = sequences([[1, 1]])
    supervised = torch.ones(1, 2, dtype=torch.bool)
    plan = sft_plan(rows, supervised, GivenNumbers([numbers]), t_min=0.0)
    assert float(sft_loss(TwoTokens(), rows, plan, 2.0)) == pytest.approx(expected, abs=1e-6)


def test_weights_integrate_to_the_exact_elbo() -> None:
    """With t_min = 0 the mean over t and masks is the mean over all orders of the chain rule."""
    denoiser, completion = TableDenoiser(), [2, 0, 3]
    orders = list(itertools.permutations(range(3)))
    elbo = sum(
        denoiser.logp(completion, set(order[k:]), order[k]) for order in orders for k in range(3)
    ) / len(orders)
    assert expected_loss(denoiser, completion, 0.0) * 3 == pytest.approx(-elbo, abs=1e-6)
    assert expected_loss(denoiser, completion, 0.3) * 3 != pytest.approx(-elbo, abs=1e-2)


def expected_loss(denoiser: TableDenoiser, completion: list[int], t_min: float) -> float:
    """Mean loss per token: midpoint rule over t, every set of masked positions."""
    points = 20_000
    t = [t_min + (1 - t_min) * (i + 0.5) / points for i in range(points)]
    total = 0.0
    for k in (1, 2, 3):
        chance = sum(x ** (k - 1) * (1 - x) ** (3 - k) for x in t) / points  # t^k (1-t)^(3-k) / t
        for masked in itertools.combinations(range(3), k):
            total -= chance * sum(denoiser.logp(completion, set(masked), i) for i in masked)
    return total / 3


def test_monte_carlo_mean_is_the_integral() -> None:
    """Drawn masks and weights: within 4 standard errors, which are below 1 % of the value."""
    denoiser, completion, n = TableDenoiser(), [2, 0, 3], 40_000
    rows = sequences([completion] * n)
    supervised = torch.ones(n, 3, dtype=torch.bool)
    plan = sft_plan(rows, supervised, RowRandom(range(n)), t_min=0.05)
    with torch.no_grad():
        loss = float(sft_loss(denoiser, rows, plan, 3.0 * n))
        each = row_losses(denoiser, rows, plan) / 3
    assert loss == pytest.approx(float(each.mean()), rel=1e-4)
    error = float(each.std()) / math.sqrt(n)
    expected = expected_loss(denoiser, completion, 0.05)
    assert error < 0.01 * expected
    assert abs(loss - expected) < 4 * error


def row_losses(denoiser: TableDenoiser, rows: Sequences, plan: MaskPlan) -> Tensor:
    ids = rows.completion_ids.masked_fill(plan.completion[:, 0], MASK)
    logp = denoiser.logits[ids[:, 0], ids[:, 1], ids[:, 2]].log_softmax(-1)
    return -(plan.weight[:, 0] * logp.gather(-1, rows.completion_ids[..., None])[..., 0]).sum(-1)


def test_gradient_reaches_the_parameters() -> None:
    denoiser, rows = TableDenoiser(), sequences([[2, 0, 3]])
    plan = sft_plan(
        rows, torch.ones(1, 3, dtype=torch.bool), GivenNumbers([[0.5, 0.1, 0.9, 0.2]]), 0.0
    )
    sft_loss(denoiser, rows, plan, 3.0).backward()
    at = denoiser.logits[MASK, 0, MASK].detach().softmax(-1)
    # d(-log p_token)/d logits = p - onehot, times weight 1/t = 2, over 3 tokens
    expected = torch.zeros(3, 4)
    expected[0] = 2 / 3 * (at[0] - torch.eye(4)[2])
    expected[2] = 2 / 3 * (at[2] - torch.eye(4)[3])
    torch.testing.assert_close(denoiser.logits.grad[MASK, 0, MASK], expected)


def test_without_masks_the_gradient_is_zero_not_missing() -> None:
    denoiser, rows = TableDenoiser(), sequences([[2, 0, 3]])
    plan = sft_plan(
        rows, torch.ones(1, 3, dtype=torch.bool), GivenNumbers([[0.9, 0.5, 0.5, 0.5]]), 0.0
    )
    loss = sft_loss(denoiser, rows, plan, 3.0)
    loss.backward()
    assert loss.item() == 0
    assert denoiser.logits.grad.count_nonzero() == 0


# --- data


@pytest.fixture(scope="module")
def fresh() -> LoadedModel:
    return load(ModelSource(name="bert", config=CONFIG), training=True, seed=0)


def row(name: str, completion: str | None, prompt: str = "q") -> dict:
    return {"id": name, "prompt": prompt, "completion": completion}


def texts(loaded: LoadedModel, ids: Tensor) -> list[str]:
    return loaded.tokenizer.batch_decode(ids)


def test_completions_are_padded_with_eos(fresh: LoadedModel) -> None:
    data = tokenize_rows(fresh, [row("a", "xy"), row("b", "xyz")], SftConfig())
    assert texts(fresh, data.completion_ids) == ["xy<eos><eos>", "xyz<eos>"]
    assert data.completion_mask.tolist() == [[True, True, True, False], [True] * 4]
    assert data.supervised.all()
    wide = tokenize_rows(fresh, [row("a", "xy")], SftConfig(pad_to=5, supervise_padding=False))
    assert texts(fresh, wide.completion_ids) == ["xy<eos><eos><eos>"]
    assert wide.supervised.tolist() == [[True, True, True, False, False]]


def test_batches_are_left_padded_and_keep_their_keys(fresh: LoadedModel) -> None:
    data = tokenize_rows(fresh, [row("a", "x", "pq"), row("b", "y", "p")], SftConfig())
    batch = data.collate([1, 0])
    assert batch["prompt_mask"].tolist() == [[False, True], [True, True]]
    assert texts(fresh, batch["prompt_ids"]) == ["<pad>p", "pq"]
    assert texts(fresh, batch["completion_ids"]) == ["y<eos>", "x<eos>"]
    assert batch["key"].tolist() == data.key.tolist()[::-1]
    assert len(set(data.key.tolist())) == 2


def test_too_long_completions(fresh: LoadedModel, caplog: pytest.LogCaptureFixture) -> None:
    rows = [row("short", "x"), row("long", "wxyz"), row("exact", "wxy")]
    with pytest.raises(ValueError, match=r"row 'long': its completion has 4 tokens.*pad_to = 3"):
        tokenize_rows(fresh, rows, SftConfig(pad_to=3))
    with caplog.at_level(logging.INFO, logger="rl"):
        cut = tokenize_rows(fresh, rows, SftConfig(pad_to=3, too_long="truncate"))
        left = tokenize_rows(fresh, rows, SftConfig(pad_to=3, too_long="drop"))
    assert texts(fresh, cut.completion_ids) == ["x<eos><eos>", "wxy", "wxy"]
    assert texts(fresh, left.completion_ids) == ["x<eos><eos>", "wxy"]
    assert "1 of 3 completions are cut off" in caplog.text
    assert "1 of 3 rows do not fit and are left out" in caplog.text


def test_prompts_that_exceed_the_model(fresh: LoadedModel) -> None:
    rows = [row("big", "x", "p" * 61), row("fits", "x", "p" * 60)]
    with pytest.raises(ValueError, match=r"row 'big': a prompt of 61 tokens and a canvas of 4"):
        tokenize_rows(fresh, rows, SftConfig(pad_to=4, too_long="truncate"))
    assert len(tokenize_rows(fresh, rows, SftConfig(pad_to=4, too_long="drop"))) == 1
    with pytest.raises(ValueError, match="none of the 1 rows fits"):
        tokenize_rows(fresh, rows[:1], SftConfig(pad_to=4, too_long="drop"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no training rows"),
        ([row("a", None)], "row 'a' has no gold completion"),
        ([row("a", "fine"), row("b", "caf\N{LATIN SMALL LETTER E WITH ACUTE}")], "row 'b'.*<unk>"),
        ([row("a", "x<mask>")], "token 1 of its completion is '<mask>'"),
    ],
)
def test_rows_that_cannot_be_trained_on(fresh: LoadedModel, rows: list[dict], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tokenize_rows(fresh, rows, SftConfig())


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"t_min": 1.0}, "t_min is 1.0"), ({"pad_to": 0}, "pad_to is 0"), ({"train_size": 0}, "is 0")],
)
def test_wrong_settings(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SftConfig(**settings)


# --- training


def one_step(folder: Path, batch: int, accumulation: int) -> tuple[float, dict[str, Tensor]]:
    """One SGD step on 8 rows of different lengths: the logged loss, and the weights."""
    loaded = load(ModelSource(name="bert", config=CONFIG), training=True, seed=0)
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
    start = load(ModelSource(name="bert", config=CONFIG), training=True, seed=0).model
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
    path.write_text(RECIPE.format(config=json.dumps(CONFIG), folder=tmp_path / "run"))
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
    from rl.models.denoiser import ModelDenoiser

    with torch.no_grad():
        loss = float(sft_loss(ModelDenoiser.of(again), rows, plan, 64.0 * 16))
    assert loss < 1.7


def test_saved_weights_are_the_trained_ones(tmp_path: Path) -> None:
    loaded = load(ModelSource(name="bert", config=CONFIG), training=True, seed=0)
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
    assert "is a grpo recipe: python -m rl.train" in capsys.readouterr().err


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
