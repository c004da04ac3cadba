"""Running the estimator on a wrapped model, in step with the other ranks."""

from collections.abc import Sequence

import torch
from accelerate import Accelerator
from torch import nn

from estimators import Decoding, Estimate, Estimator, MaskPlan, Scores, Sequences
from rl.gathered import in_step, no_checkpointing
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel


class Scorer:
    """
    decoding: how the rollouts are written.
    batch_size: masked copies in one forward.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        estimator: Estimator,
        accelerator: Accelerator,
        *,
        decoding: Decoding,
        batch_size: int,
    ) -> None:
        self.loaded, self.estimator, self.accelerator = loaded, estimator, accelerator
        self.decoding, self.batch_size = estimator.seen(decoding), batch_size
        self._made: list[ModelDenoiser] = []

    def run(self, model: nn.Module, sequences: Sequences, plan: MaskPlan) -> Scores:
        denoiser = self.denoiser(model, batch_size=self.batch_size, gathered=False)
        return self.estimator.run(denoiser, sequences, plan, self.decoding)

    def combine(self, sequences: Sequences, plan: MaskPlan, scores: Scores) -> Estimate:
        return self.estimator.combine(sequences, plan, scores, self.decoding)

    def without_gradients(self, model: nn.Module, sequences: Sequences, plan: MaskPlan) -> Scores:
        with torch.no_grad(), no_checkpointing(model), self.accelerator.autocast():
            return self.run(model, sequences, plan)

    def estimate_all(
        self, model: nn.Module, sequences: Sequences, plans: Sequence[MaskPlan]
    ) -> tuple[Estimate, ...]:
        """Without gradients, one estimate per plan."""
        return tuple(
            self.combine(sequences, plan, self.without_gradients(model, sequences, plan))
            for plan in plans
        )

    def denoiser(
        self, model: nn.Module, *, batch_size: int | None, gathered: bool
    ) -> ModelDenoiser:
        """`gathered`: parameters are whole on every rank, which may then run ahead of others."""
        denoiser = ModelDenoiser.of(
            self.loaded,
            model,
            rows_per_forward=batch_size,
            equalize=in_step(self.accelerator, gathered=gathered),
        )
        self._made.append(denoiser)
        return denoiser

    def take_forwards(self) -> int:
        """Rows that went through the model since the last call; equal ones went once."""
        rows = sum(denoiser.forwards for denoiser in self._made)
        self._made.clear()
        return rows
