"""Every scheme through the trainer: it learns, in any micro-batches, and resumes bit for bit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from estimators import Elbo, Estimator, MeanField, PredictedX0, RowRandom, Trajectory
from rl.advantages import GroupAdvantage
from rl.canvas import on_canvas, text_ids
from rl.grpo_config import DiffusionGRPOConfig
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import load, save_native
from rl.models.source import ModelSource
from rl.objectives import Clipped, Kto, Objective, Preference
from rl.reward_calls import RewardCalls
from rl.rollout_schemes import Inpaint, Intermediate, Recorded, RolloutScheme, Tree
from rl.rollouts import completions
from rl.samplers import RandomOrder
from rl.trainer import DiffusionGRPOTrainer

from .conftest import LENGTH, SIZES
from .test_recorded import pair

SOLUTION = "0123456789"


def graded(completions: list[str], **_: Any) -> list[float]:
    return [sum(ord(c) % 7 for c in text) / 48 for text in completions]


def placed(completions: list[str], **_: Any) -> list[float]:
    """1 where two digits of the solution stand in their places."""
    pairs = [zip(text, SOLUTION, strict=False) for text in completions]
    return [float(sum(a == b for a, b in pair) >= 2) for pair in pairs]


SCHEMES: dict[str, tuple[RolloutScheme, Estimator, Any]] = {
    "tree": (Tree(branching=(2, 2)), Trajectory(segments=2), graded),
    "intermediate": (Intermediate(kept=2), PredictedX0(), graded),
    "inpaint": (Inpaint(min_chunk=2, max_chunk=3), MeanField(), placed),
}
PROMPTS = [
    {"id": str(i), "prompt": "p" + "ab" * (i % 3) + str(i), "completion": SOLUTION}
    for i in range(16)
]
PAIRS = [pair(f"q{i}", f"{i % 7}good", f"{i % 5}bad") for i in range(16)]

Make = Callable[..., DiffusionGRPOTrainer]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    loaded = load(ModelSource(name="bert", config=SIZES), training=False)
    save_native(loaded.model, loaded.tokenizer, folder)
    return folder


@pytest.fixture
def make(tmp_path: Path, checkpoint: Path) -> Make:
    def make(
        scheme: RolloutScheme,
        estimator: Estimator,
        reward: Any = graded,
        *,
        objective: Objective | None = None,
        rows: list[dict[str, Any]] = PROMPTS,
        **config: Any,
    ) -> DiffusionGRPOTrainer:
        defaults = {
            "output_dir": str(tmp_path / "run"), "save_strategy": "no", "disable_tqdm": True,
            "num_generations": 4, "per_device_train_batch_size": 8, "max_steps": 2,
            "max_completion_length": LENGTH, "learning_rate": 0.1, "optim": "sgd",
        }  # fmt: skip
        return DiffusionGRPOTrainer(
            loaded=load(ModelSource(name="bert", path=str(checkpoint)), training=True),
            args=DiffusionGRPOConfig(**(defaults | config)),
            rows=rows,
            sampler=RandomOrder(steps=4, temperature=2.0) if scheme.writes else None,
            estimator=estimator,
            objective=objective or Clipped(),
            advantage=GroupAdvantage(scale="none"),
            rewards=RewardCalls(["reward"], [reward], [1.0]),
            scheme=scheme,
        )

    return make


def weights(trainer: DiffusionGRPOTrainer) -> dict[str, Tensor]:
    return {k: v.detach().clone() for k, v in trainer.loaded.model.state_dict().items()}


def furthest(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    return max((a[k] - b[k]).abs().max().item() for k in a)


def steps(trainer: DiffusionGRPOTrainer) -> list[dict[str, float]]:
    return [entry for entry in trainer.state.log_history if "grad_norm" in entry]


@pytest.mark.parametrize("name", SCHEMES)
def test_micro_batches_do_not_change_what_is_learned(make: Make, name: str) -> None:
    whole = make(*SCHEMES[name])
    before = weights(whole)
    whole.train()
    assert all(entry["grad_norm"] > 0 for entry in steps(whole))
    assert furthest(before, weights(whole)) > 1e-4
    cut = make(*SCHEMES[name], per_device_train_batch_size=2, gradient_accumulation_steps=4)
    cut.train()
    assert furthest(weights(whole), weights(cut)) < 1e-5


@pytest.mark.parametrize("name", SCHEMES)
def test_a_run_resumed_between_two_passes_is_the_same(
    make: Make, tmp_path: Path, name: str
) -> None:
    config = {"num_iterations": 2, "max_steps": 4, "optim": "adamw_torch", "learning_rate": 1e-3}
    whole = make(
        *SCHEMES[name], **config, output_dir=str(tmp_path / "a"), save_strategy="steps",
        save_steps=3.0,
    )  # fmt: skip
    whole.train()
    resumed = make(*SCHEMES[name], **config, output_dir=str(tmp_path / "b"))
    resumed.train(resume_from_checkpoint=str(tmp_path / "a/checkpoint-3"))
    assert furthest(weights(whole), weights(resumed)) == 0.0


def test_what_a_scheme_says_is_logged(make: Make) -> None:
    trainer = make(*SCHEMES["inpaint"])
    trainer.train()
    first = steps(trainer)[0]
    assert first["inpaint/failed"] == 1.0
    assert 0 < first["inpaint/replaced"] <= 0.5
    assert first["reward"] == first["inpaint/replaced"]


def margin(trainer: DiffusionGRPOTrainer) -> float:
    """Chosen less rejected ELBO, mean over all pairs."""
    loaded = trainer.loaded
    examples = [x for row in PAIRS for x in row["recorded"]]
    ids = on_canvas(loaded, text_ids(loaded, [x["completion"] for x in examples]), LENGTH)
    sequences = completions(loaded, examples, ids).sequences
    estimator = Elbo(samples=32)
    denoiser = ModelDenoiser.of(loaded)
    with denoiser.evaluating():
        plan = estimator.plan(sequences, RowRandom(list(range(len(examples)))))
        logp = estimator(denoiser, sequences, plan).sequence_logp
    return float((logp[0::2] - logp[1::2]).mean())


RECORDED = {
    "rows": PAIRS, "num_generations": 2, "max_steps": 5, "optim": "adamw_torch",
    "learning_rate": 5e-3,
}  # fmt: skip


def test_dpo_makes_the_chosen_likelier_than_the_rejected(make: Make) -> None:
    trainer = make(Recorded(), Elbo(samples=4), objective=Preference(), **RECORDED)
    before = margin(trainer)
    trainer.train()
    assert margin(trainer) > before + 5
    first, last = steps(trainer)[0], steps(trainer)[-1]
    assert first["preference/margin"] == pytest.approx(0.0, abs=1e-6)  # the reference is the start
    assert last["preference/accuracy"] == 1.0
    assert first["rollout/nfe"] == 0


def test_kto_learns_from_labels_without_partners(make: Make) -> None:
    trainer = make(Recorded(), Elbo(samples=4), objective=Kto(), **RECORDED)
    before = margin(trainer)
    trainer.train()
    assert margin(trainer) > before + 5
