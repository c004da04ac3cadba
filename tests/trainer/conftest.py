"""A checkpoint and a task small enough to train for a few steps in a test."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from estimators import Estimator, MeanField
from rl.advantages import GroupAdvantage
from rl.grpo_config import DiffusionGRPOConfig
from rl.models.loading import LoadedModel, load, save_native
from rl.models.source import ModelSource
from rl.objectives import Clipped, Objective
from rl.reward_calls import RewardCalls
from rl.rollout_schemes import RolloutScheme
from rl.samplers import LowConfidence
from rl.trainer import DiffusionGRPOTrainer

BERT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny_bert")
    loaded = load(ModelSource(name="bert", config=BERT), training=False)
    save_native(loaded.model, loaded.tokenizer, folder)
    return folder


@pytest.fixture
def new_model(tiny_bert: Path) -> Callable[[], LoadedModel]:
    """The same weights every time, in a model of their own."""
    return lambda: load(ModelSource(name="bert", path=str(tiny_bert)), training=True)


@pytest.fixture(scope="session")
def rows() -> list[dict[str, Any]]:
    """Prompts of two lengths, so that batches are padded."""
    rng = random.Random(0)
    return [
        {"id": str(i), "prompt": "f" + "".join(rng.choices("01234", k=rng.choice([4, 7]))) + "="}
        for i in range(48)
    ]


def graded(completions: list[str], **_: Any) -> list[float]:
    """A reward with many different values."""
    return [sum(ord(c) % 7 for c in text) / 48 for text in completions]


Make = Callable[..., DiffusionGRPOTrainer]


@pytest.fixture
def make(tmp_path: Path, new_model: Callable[[], LoadedModel], rows: list[dict[str, Any]]) -> Make:
    def make(
        *,
        estimator: Estimator | None = None,
        objective: Objective | None = None,
        scheme: RolloutScheme | None = None,
        reward: Any = graded,
        **config: Any,
    ) -> DiffusionGRPOTrainer:
        defaults = {
            "output_dir": str(tmp_path / "run"), "save_strategy": "no", "disable_tqdm": True,
            "num_generations": 4, "per_device_train_batch_size": 16, "max_completion_length": 8,
            "max_steps": 3, "learning_rate": 0.5, "optim": "sgd",
        }  # fmt: skip
        return DiffusionGRPOTrainer(
            loaded=new_model(),
            args=DiffusionGRPOConfig(**(defaults | config)),
            rows=rows,
            sampler=LowConfidence(steps=4),
            estimator=estimator or MeanField(),
            objective=objective or Clipped(),
            advantage=GroupAdvantage(),
            rewards=RewardCalls(["reward"], [reward], [1.0]),
            scheme=scheme,
        )

    return make


def weights(trainer: DiffusionGRPOTrainer) -> dict[str, Tensor]:
    return {k: v.detach().clone() for k, v in trainer.loaded.model.state_dict().items()}


def assert_close(a: dict[str, Tensor], b: dict[str, Tensor], tolerance: float = 1e-5) -> None:
    worst = max((a[k] - b[k]).abs().max().item() for k in a)
    assert worst <= tolerance, worst


def steps(trainer: DiffusionGRPOTrainer) -> list[dict[str, float]]:
    return [entry for entry in trainer.state.log_history if "grad_norm" in entry]
