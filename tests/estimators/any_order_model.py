"""A tiny any-order-causal denoiser."""

import torch
from torch import Tensor

from estimators import Reduce
from tests.tiny_models import MASK, TinyDenoiser


class AnyOrderTiny(TinyDenoiser):
    """TinyDenoiser that also answers for a whole order at once.

    Position s sees the tokens whose order is lower than its own and [MASK] elsewhere, which is what
    the bidirectional call sees in the state of its step. `seen` gets one entry per call, as ever.
    """

    def in_order(
        self, ids: Tensor, attention: Tensor, order: Tensor, index: Tensor, reduce: Reduce
    ) -> tuple[Tensor, ...]:
        self.seen.append(ids)
        earlier_NSS = order[:, None, :] < order[:, :, None]
        shown_NSS = torch.where(earlier_NSS, ids[:, None], MASK)
        N, S = ids.shape
        around_NSS = attention[:, None].expand(N, S, S)
        logits = self.logits(shown_NSS.flatten(0, 1), around_NSS.flatten(0, 1)).view(N, S, S, -1)
        own_NSV = logits[:, torch.arange(S), torch.arange(S)]
        return reduce(
            own_NSV.flatten(0, 1)[index], torch.arange(len(index)), torch.arange(len(index))
        )
