"""What a sampler returns, and may start from.

Shapes: B rows, L completion tokens, P recorded predictions per row.
"""

from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from estimators import RowAligned


@dataclass(frozen=True, kw_only=True)
class Rollout(RowAligned):
    """Completions, and how they came about. One with unwritten places can be continued."""

    completion_ids: Int[Tensor, "B L"]  # -1 where nothing is written yet
    step_map: Int[Tensor, "B L"]  # step that committed each token; -1: given, or not written
    order_map: Int[Tensor, "B L"]  # rank of each token inside its step, from 0; -1 likewise
    block_map: Int[Tensor, "B L"]  # block of each position, from left to right
    logp: Float[Tensor, "B L"]  # of each token in its step, under the distribution it is drawn from
    entropy: Float[Tensor, "B L"]  # of the prediction in that step, at T = 1, in nats
    nfe: Int[Tensor, " B"]  # forward passes that wrote the row
    predictions: Int[Tensor, "B P L"]  # completions as foreseen in the P recorded steps
    prediction_logp: Float[Tensor, "B P L"]  # of each of their tokens, as `logp`

    @classmethod
    def given(cls, ids: Int[Tensor, "B L"]) -> "Rollout":
        """Text that stays as it is; -1 is what a sampler will write."""
        none = torch.full_like(ids, -1)
        zero = torch.zeros(ids.shape, dtype=torch.float64, device=ids.device)
        return cls(
            completion_ids=ids,
            step_map=none,
            order_map=none,
            block_map=torch.zeros_like(ids),
            logp=zero,
            entropy=zero,
            nfe=torch.zeros_like(ids[:, 0]),
            predictions=ids[:, None, :][:, :0],
            prediction_logp=zero[:, None, :][:, :0],
        )

    @property
    def unwritten(self) -> Bool[Tensor, "B L"]:
        return self.completion_ids < 0

    def shown(self, mask_id: int) -> Int[Tensor, "B L"]:
        """The canvas as a model sees it."""
        return self.completion_ids.masked_fill(self.unwritten, mask_id)

    @property
    def steps(self) -> Int[Tensor, " B"]:
        """Steps that each row has had: the number of its next one."""
        return self.step_map.amax(-1) + 1

    def put(self, index: Int[Tensor, " R"], rows: "Rollout") -> "Rollout":
        """This rollout with other rows at `index`."""
        tensors = {f.name: (getattr(self, f.name), getattr(rows, f.name)) for f in fields(self)}
        return replace(
            self, **{k: old.index_copy(0, index, new) for k, (old, new) in tensors.items()}
        )
