"""Running the estimator on a wrapped model, in step with the other ranks."""

from collections.abc import Sequence

import torch
from accelerate import Accelerator
from torch import nn

from estimators import Estimate, Estimator, MaskPlan, Sequences
from rl.gathered import in_step, no_checkpointing
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel


class Scorer:
    """
    temperature: of the rollouts, for estimators that score at it.
    batch_size: masked copies in one forward.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        estimator: Estimator,
        accelerator: Accelerator,
        *,
        temperature: float,
        batch_size: int,
    ) -> None:
        self.loaded, self.estimator, self.accelerator = loaded, estimator, accelerator
        self.temperature, self.batch_size = temperature, batch_size

    def estimate(self, model: nn.Module, sequences: Sequences, plan: MaskPlan) -> Estimate:
        denoiser = self.denoiser(model, batch_size=self.batch_size, gathered=False)
        return self.estimator(denoiser, sequences, plan, self.temperature)

    def estimate_all(
        self, model: nn.Module, sequences: Sequences, plans: Sequence[MaskPlan]
    ) -> tuple[Estimate, ...]:
        """Without gradients, one estimate per plan."""
        with torch.no_grad(), no_checkpointing(model), self.accelerator.autocast():
            return tuple(self.estimate(model, sequences, plan) for plan in plans)

    def denoiser(
        self, model: nn.Module, *, batch_size: int | None, gathered: bool
    ) -> ModelDenoiser:
        """`gathered`: parameters are whole on every rank, which may then run ahead of others."""
        return ModelDenoiser.of(
            self.loaded,
            model,
            rows_per_forward=batch_size,
            equalize=in_step(self.accelerator, gathered=gathered),
        )
