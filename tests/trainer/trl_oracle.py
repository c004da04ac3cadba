"""The same method on TRL's own GRPOTrainer: an independent second opinion on our trainer.

TRL does batching, advantages, loss, clipping, KL and optimisation; only rollouts and the one-step
log-probs are replaced, and those are computed densely from the native logits.
"""

from typing import Any

import torch
from transformers import GenerationConfig
from trl import GRPOConfig, GRPOTrainer
from trl.models import unwrap_model_for_generation

from estimators import RowRandom, stable_seed
from rl.generation import left_pad
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel
from rl.samplers import Sampler


class TrlOracle(GRPOTrainer):
    def __init__(
        self, *, loaded: LoadedModel, sampler: Sampler, prompt_mask_prob: float, **kwargs: Any
    ) -> None:
        self.loaded, self.sampler = loaded, sampler
        self.prompt_mask_prob = prompt_mask_prob
        self.seen_advantages: list[list[float]] = []
        loaded.model.generation_config = GenerationConfig()
        super().__init__(model=loaded.model, processing_class=loaded.tokenizer, **kwargs)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        G = self.args.num_generations
        self._keys = [
            (self.args.seed, row["id"], self.state.global_step, i % G)
            for i, row in enumerate(inputs)
        ]
        out = super()._generate_and_score_completions(inputs)
        out["prompt_masked"] = self._passes
        self.seen_advantages.append(out["advantages"].tolist())
        return out

    def _generate_single_turn(
        self, prompt_ids, images, multimodal_fields, num_generations, has_tool_images=False
    ):
        batch = left_pad(prompt_ids, self.loaded.pad_id)
        self._passes = self._prompt_masks(batch.mask)  # [B, mu, Q]
        seeds = [stable_seed("rollout", *key) for key in self._keys]
        with unwrap_model_for_generation(self.model_wrapped, self.accelerator) as model:
            denoiser = ModelDenoiser.of(self.loaded, model)
            rollout = self.sampler(
                denoiser, batch.ids, batch.mask, self.max_completion_length, seeds
            )
        rows = rollout.completion_ids.tolist()
        eos = self.loaded.stop_ids[0]
        return [row[: row.index(eos) + 1] if eos in row else row for row in rows], None

    def _prompt_masks(self, attention: torch.Tensor) -> torch.Tensor:
        Q = attention.shape[1]
        passes = []
        for k in range(self.num_iterations):
            random = RowRandom(
                rows=[stable_seed("plan", k, *key) for key in self._keys],
                groups=[stable_seed("plan", k, *key[:-1]) for key in self._keys],
            )
            passes.append(random.per_group(Q).flip(-1) < self.prompt_mask_prob)
        return torch.stack(passes, dim=1) & attention.bool()[:, None]

    def _get_per_token_logps_and_entropies(
        self,
        model,
        input_ids,
        attention_mask,
        logits_to_keep,
        batch_size=None,
        compute_entropy=False,
        **unused,
    ):
        split = input_ids.shape[1] - logits_to_keep
        prompt, targets = input_ids[:, :split], input_ids[:, split:]
        if self._iteration is None:  # inside the rollout: every pass at once, stored as [B, mu, C]
            every = [
                self._one_step(
                    model, prompt, attention_mask[:, :split], targets, self._passes[:, k]
                )
                for k in range(self.num_iterations)
            ]
            return torch.stack([logp for logp, _ in every], dim=1), None, None
        logp, entropy = self._one_step(
            model, prompt, attention_mask[:, :split], targets, self._masked[:, self._iteration]
        )
        return logp, entropy, None

    def _one_step(self, model, prompt, attention, targets, masked):
        L = self.max_completion_length
        canvas = torch.full((len(prompt), L), self.loaded.mask_id)
        ids = torch.cat([prompt.masked_fill(masked, self.loaded.mask_id), canvas], dim=1)
        seen = torch.cat([attention, torch.ones_like(canvas)], dim=1)
        logits = model(
            input_ids=ids, attention_mask=seen, position_ids=(seen.cumsum(-1) - 1).clamp(min=0)
        ).logits[:, prompt.shape[1] : prompt.shape[1] + targets.shape[1]]
        logits = logits.index_fill(-1, torch.tensor(self.loaded.forbidden_ids), -torch.inf)
        logp = logits.log_softmax(-1)
        entropy = torch.special.entr(logp.exp()).sum(-1).detach()
        # positions after EOS are padding, which may be a forbidden id; they carry no weight
        return logp.gather(-1, targets[..., None])[..., 0].clamp(min=-1e4), entropy

    _iteration: int | None = None

    def _compute_loss(self, model, inputs):
        self._iteration = (self._step // self.args.steps_per_generation) % self.num_iterations
        self._masked = inputs["prompt_masked"]
        now = dict(inputs)
        for name in ("old_per_token_logps", "ref_per_token_logps"):
            if now.get(name) is not None:
                now[name] = now[name][:, self._iteration]
        try:
            return super()._compute_loss(model, now)
        finally:
            self._iteration = None


def trl_config(**kwargs: Any) -> GRPOConfig:
    return GRPOConfig(
        bf16=False,
        use_cpu=True,
        activation_checkpointing=False,
        gradient_checkpointing=False,
        disable_dropout=True,
        report_to="none",
        save_strategy="no",
        shuffle_dataset=False,
        logging_steps=1,
        disable_tqdm=True,
        **kwargs,
    )
