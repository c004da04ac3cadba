"""Our trainer against TRL's own GRPOTrainer, where both can express the method."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import trl
from datasets import Dataset
from peft import LoraConfig, get_peft_model

from estimators import MeanField
from rl.advantages import GroupAdvantage
from rl.grpo_config import DiffusionGRPOConfig
from rl.models.lora import LoraSpec, apply_lora
from rl.objectives import Clipped
from rl.reward_calls import RewardCalls
from rl.samplers import LowConfidence
from rl.trainer import DiffusionGRPOTrainer

from .conftest import graded

COMMON = {
    "num_generations": 4,
    "max_completion_length": 8,
    "max_steps": 4,
    "optim": "sgd",  # Adam turns rounding errors of small gradients into whole steps
}
CASES: dict[str, dict[str, Any]] = {
    "token mean": {"aggregation": "token_mean", "mu": 1, "beta": 0.0},
    "KL, two passes, clipping": {"aggregation": "token_mean", "mu": 2, "beta": 0.1},
    "sequence mean, accumulation": {
        "aggregation": "sequence_mean", "mu": 2, "beta": 0.0, "accumulation": 2,
    },
    "constant length, no scaling": {
        "aggregation": "constant", "mu": 2, "beta": 0.0, "scale": "none",
    },
    "sequence ratio, asymmetric clip": {
        "aggregation": "sequence_mean", "mu": 2, "beta": 0.0, "level": "sequence", "high": 0.05,
    },
    "LoRA, KL to the base": {
        "aggregation": "token_mean", "mu": 2, "beta": 0.1, "lora": True, "lr": 30.0,
    },
}  # fmt: skip
LOSS_TYPE = {"token_mean": "dapo", "sequence_mean": "grpo", "constant": "dr_grpo"}
LORA = {"r": 4, "alpha": 8, "targets": ["query", "key", "value"]}


def ours(folder: Path, loaded: Any, rows: list[dict[str, Any]], case: dict[str, Any]) -> Any:
    if case.get("lora"):
        model = apply_lora(loaded.model, loaded.spec, LoraSpec(**LORA), seed=3)
        loaded = type(loaded)(**{**vars(loaded), "model": model})
    size = 16 // case.get("accumulation", 1)
    args = DiffusionGRPOConfig(
        output_dir=str(folder / "ours"), save_strategy="no", disable_tqdm=True,
        shuffle_dataset=False, num_iterations=case["mu"], skip_zero_advantage=False,
        per_device_train_batch_size=size, gradient_accumulation_steps=case.get("accumulation", 1),
        learning_rate=case.get("lr", 0.5), **COMMON,
    )  # fmt: skip
    trainer = DiffusionGRPOTrainer(
        loaded=loaded, args=args, rows=rows, sampler=LowConfidence(steps=4), estimator=MeanField(),
        objective=Clipped(
            beta=case["beta"], kl="k3", epsilon=0.2, epsilon_high=case.get("high"),
            aggregation=case["aggregation"], level=case.get("level", "token"),
        ),
        advantage=GroupAdvantage(scale=case.get("scale", "group")),
        rewards=RewardCalls(["graded"], [graded], [1.0]),
    )  # fmt: skip
    advantages: list[list[float]] = []
    roll = trainer.roller

    def watch(*arguments: Any) -> Any:
        experience = roll(*arguments)
        advantages.append(experience.advantages.tolist())
        return experience

    trainer.roller = watch
    trainer.train()
    return trainer.state.log_history, advantages


def theirs(folder: Path, loaded: Any, rows: list[dict[str, Any]], case: dict[str, Any]) -> Any:
    from .trl_oracle import TrlOracle, trl_config

    size = 16 // case.get("accumulation", 1)
    args = trl_config(
        output_dir=str(folder / "theirs"), num_iterations=case["mu"], beta=case["beta"],
        epsilon=0.2, epsilon_high=case.get("high"), loss_type=LOSS_TYPE[case["aggregation"]],
        importance_sampling_level=case.get("level", "token"), temperature=1.0,
        use_bias_correction_kl=False, scale_rewards=case.get("scale", "group"),
        per_device_train_batch_size=size, gradient_accumulation_steps=case.get("accumulation", 1),
        learning_rate=case.get("lr", 0.5), **COMMON,
    )  # fmt: skip
    if case.get("lora"):
        from rl.models.private_rng import private_rng

        config = LoraConfig(r=LORA["r"], lora_alpha=LORA["alpha"], target_modules=LORA["targets"])
        with private_rng(3):
            loaded = type(loaded)(**{**vars(loaded), "model": get_peft_model(loaded.model, config)})
    trainer = TrlOracle(
        loaded=loaded, sampler=LowConfidence(steps=4), prompt_mask_prob=0.15, args=args,
        train_dataset=Dataset.from_list(rows), reward_funcs=[graded],
    )  # fmt: skip
    trainer.train()
    return trainer.state.log_history, trainer.seen_advantages


@pytest.mark.parametrize("case", CASES)
def test_loss_gradient_norm_and_advantages_equal_trl(
    case: str, tmp_path: Path, new_model: Any, rows: list[dict[str, Any]]
) -> None:
    assert trl.__version__.startswith("1.16."), "the oracle subclasses private parts of TRL 1.16"
    mine, my_advantages = ours(tmp_path, new_model(), rows, CASES[case])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TRL's own deprecations
        other, other_advantages = theirs(tmp_path, new_model(), rows, CASES[case])

    assert my_advantages, "no rollout was graded"
    for a, b in zip(my_advantages, other_advantages, strict=True):
        assert a == pytest.approx(b, abs=1e-5)
    steps = [(a, b) for a, b in zip(mine, other, strict=True) if "grad_norm" in a]
    assert len(steps) == COMMON["max_steps"]
    for a, b in steps:
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=1e-5)
    if CASES[case]["mu"] > 1:
        assert any(a["clip_ratio/low"] + a["clip_ratio/high"] > 0 for a, _ in steps), (
            "nothing clipped"
        )
