"""FlashAttention-2's functions, computed densely: what transformers hands them, without a GPU."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers.modeling_flash_attention_utils as utils
from torch import Tensor

MODULES = "lazy_import_flash_attention"


def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float, window: Any) -> Tensor:
    """[S, H, D] each, with fewer heads in k and v."""
    repeat = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeat, dim=1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * scale
    far = torch.arange(q.shape[0])[:, None] - torch.arange(k.shape[0])[None]
    hidden = (far < 0) & causal
    if window[0] >= 0:
        hidden = hidden | (far > window[0]) | (-far > window[1])
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, -torch.inf).softmax(-1), v)


def install(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Count the calls of the two functions, and whether one was causal."""
    seen = SimpleNamespace(dense=0, varlen=0, causal=set())

    def dense(
        q: Any, k: Any, v: Any, dropout_p: float = 0.0, softmax_scale: Any = None,
        causal: bool = False, window_size: Any = (-1, -1),
    ) -> Tensor:  # fmt: skip
        seen.dense += 1
        seen.causal.add(causal)
        scale = softmax_scale or q.shape[-1] ** -0.5
        rows = zip(q, k, v, strict=True)
        return torch.stack([attend(*row, causal, scale, window_size) for row in rows])

    def varlen(
        q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: Any,
        max_seqlen_k: Any, dropout_p: float = 0.0, softmax_scale: Any = None,
        causal: bool = False, window_size: Any = (-1, -1),
    ) -> Tensor:  # fmt: skip
        seen.varlen += 1
        seen.causal.add(causal)
        scale = softmax_scale or q.shape[-1] ** -0.5
        ends = cu_seqlens_q.tolist()
        parts = [slice(lo, hi) for lo, hi in pairwise(ends)]
        rows = [attend(q[p], k[p], v[p], causal, scale, window_size) for p in parts]
        return torch.cat(rows)

    process = utils._lazy_define_process_function(varlen)
    functions = (dense, varlen, None, utils._pad_input, utils._unpad_input)
    monkeypatch.setattr(utils, MODULES, lambda *_, **__: (functions, (process, process)))
    return seen
