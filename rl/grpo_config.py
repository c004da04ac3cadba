"""TRL's GRPOConfig, less the fields that mean nothing for a masked diffusion model."""

from dataclasses import dataclass, field, fields
from typing import Literal

import torch
from trl.trainer.grpo_config import GRPOConfig

_SAMPLER = "it belongs to the sampler: set it in the `sampler:` section"
_OBJECTIVE = "it belongs to the objective: set it in the `objective:` section"
_ADVANTAGE = "it belongs to the advantages: set it in the `advantage:` section"
_AUTOREGRESSIVE = (
    "it configures autoregressive generation; a masked diffusion model has no use for it"
)
_ENGINE = "rollouts come from our own denoising samplers; no external engine is used"
_TRL_LOSS = "it tunes a loss of TRL's own trainer, which is not used here"

_REFUSED = {
    "temperature": _SAMPLER,
    "epsilon": _OBJECTIVE,
    "epsilon_high": _OBJECTIVE,
    "beta": _OBJECTIVE,
    "loss_type": "it belongs to the objective: set `objective.aggregation` (token_mean is dapo, "
    "sequence_mean is grpo, constant is dr_grpo)",
    "importance_sampling_level": "it belongs to the objective: set `objective.level`",
    "scale_rewards": "it belongs to the advantages: set `advantage.scale` to none, group or batch",
    "reward_weights": "weights stand beside the rewards: rewards: [{name: ..., weight: 2.0}]",
    "multi_objective_aggregation": _ADVANTAGE,
    "model_init_kwargs": "models are described in the `model:` section",
    "trust_remote_code": "no remote modelling code is ever run; native classes load every family",
    "sync_ref_model": "the reference policy stays the model that training started from",
    "ref_model_mixup_alpha": "the reference policy stays the model that training started from",
    "ref_model_sync_steps": "the reference policy stays the model that training started from",
    "cast_lm_head_to_fp32": "logits are always reduced in fp32, at the requested positions only",
    **dict.fromkeys(
        (
            "top_p",
            "top_k",
            "min_p",
            "repetition_penalty",
            "generation_kwargs",
            "cache_implementation",
        ),
        _AUTOREGRESSIVE,
    ),
    **dict.fromkeys(
        ("max_tool_calling_iterations", "router_aux_loss_coef", "pad_to_multiple_of"),
        _AUTOREGRESSIVE,
    ),
    **dict.fromkeys(
        (
            "use_transformers_continuous_batching",
            "transformers_continuous_batching_config",
            "use_transformers_paged",
        ),
        _ENGINE,
    ),
    **dict.fromkeys(
        ("use_liger_kernel", "off_policy_mask_threshold", "use_bias_correction_kl"), _TRL_LOSS
    ),
    **dict.fromkeys(
        ("delta", "top_entropy_quantile", "entropy_coef", "use_adaptive_entropy"), _TRL_LOSS
    ),
    **dict.fromkeys(
        (
            "log_multimodal",
            "num_completions_to_print",
            "log_unique_prompts",
            "log_completions_hub_repo",
        ),
        "completions are logged to OUTPUT_DIR/completions as JSON lines",
    ),
}
_REFUSED_PREFIXES = {
    "vllm_": _ENGINE,
    "use_vllm": _ENGINE,
    "sapo_": _TRL_LOSS,
    "vespo_": _TRL_LOSS,
    "entropy_": _TRL_LOSS,
}


def _refused_reason(name: str) -> str | None:
    """Why a field of GRPOConfig may not be set in a recipe; None if it may."""
    if name in _REFUSED:
        return _REFUSED[name]
    return next((why for prefix, why in _REFUSED_PREFIXES.items() if name.startswith(prefix)), None)


@dataclass(frozen=True, kw_only=True)
class RolloutShape:
    """How many of what one rollout consists of, after the config has settled its defaults.

    prompts: distinct prompts, over all ranks; each has num_generations completions.
    micro_batches: pieces into which a rank cuts its completions for the updates.
    iterations: passes of the updates over the completions.
    length: tokens of a completion.
    """

    num_generations: int
    prompts: int
    micro_batches: int
    iterations: int
    length: int

    @property
    def uses(self) -> int:
        """Micro-batches processed before the next rollout."""
        return self.micro_batches * self.iterations


@dataclass
class DiffusionGRPOConfig(GRPOConfig):
    """The keys of a recipe's `trainer:` section: TRL's own names, and a few of ours.

    max_prompt_length: leave out training prompts with more tokens; None keeps all.
    fresh_masks: draw new masks for each of the num_iterations passes over a rollout (d1), or
        score every pass under the same masks.
    skip_zero_advantage: leave out completions whose advantage is 0 (all rewards of the group
        equal). Exact when beta is 0; with a KL term, those completions then carry no KL.
    backward: how gradients are made where a completion has several views (`rl/backward.py`): joint,
        linear or replay. None is linear where that is exact, else replay.
    rollout_batch_size: completions denoised in one forward; None is all of a rank's.
    scoring_batch_size: masked copies scored in one forward; None is per_device_train_batch_size.
    """

    disable_dropout: bool = field(default=True)
    gradient_checkpointing: bool = field(default=False)
    ddp_broadcast_buffers: bool | None = field(default=False)
    report_to: str | list[str] | None = field(default="none")
    log_completions: bool = field(default=True)
    logging_steps: float = field(default=1)

    max_prompt_length: int | None = field(default=None)
    fresh_masks: bool = field(default=True)
    skip_zero_advantage: bool = field(default=True)
    backward: Literal["joint", "linear", "replay"] | None = field(default=None)
    rollout_batch_size: int | None = field(default=None)
    scoring_batch_size: int | None = field(default=None)

    def __post_init__(self) -> None:
        gpu = torch.cuda.is_available()
        if not gpu:
            self.use_cpu = True
        if self.bf16 is None and not self.fp16:
            self.bf16 = gpu and torch.cuda.is_bf16_supported()
        self._use_current_names()
        super().__post_init__()
        if self.shape.uses % self.gradient_accumulation_steps:
            raise ValueError(
                f"an optimizer step takes gradient_accumulation_steps "
                f"{self.gradient_accumulation_steps} micro-batches, but a rollout gives "
                f"steps_per_generation {self.steps_per_generation} x num_iterations "
                f"{self.num_iterations}; make that a multiple, so that no step mixes two rollouts"
            )
        if self.backward not in (None, "joint", "linear", "replay"):
            raise ValueError(f"backward is {self.backward!r}; use joint, linear or replay, or null")
        for name in ("rollout_batch_size", "scoring_batch_size", "max_prompt_length"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; use at least 1, or null")

    def _use_current_names(self) -> None:
        """TRL passes on two arguments by names that transformers 5.2x is leaving behind."""
        for suffix in ("", "_kwargs"):
            new, old = f"activation_checkpointing{suffix}", f"gradient_checkpointing{suffix}"
            if getattr(self, new, ...) is None:
                setattr(self, new, getattr(self, old))

    @property
    def shape(self) -> RolloutShape:
        group, total = self.num_generations, self.generation_batch_size
        pieces, length = self.steps_per_generation, self.max_completion_length
        assert group is not None
        assert total is not None
        assert pieces is not None
        assert length is not None
        return RolloutShape(
            num_generations=group,
            prompts=total // group,
            micro_batches=pieces,
            iterations=self.num_iterations,
            length=length,
        )

    @property
    def plans_per_rollout(self) -> int:
        return self.num_iterations if self.fresh_masks else 1

    @property
    def rollout_is_on_policy(self) -> bool:
        """Whether every gradient step is the first one after its rollout: old equals new."""
        return self.gradient_accumulation_steps % self.shape.uses == 0


REFUSED = {
    f.name: why for f in fields(DiffusionGRPOConfig) if (why := _refused_reason(f.name)) is not None
}
