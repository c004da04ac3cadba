"""Models small enough to enumerate, and small real ones.

`TinyDenoiser` is float64, so identities hold to 1e-9. Its answer at every position depends on every
visible token, on where that token stands, and on nothing else: a wrong mask always shows.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertConfig, LlamaConfig, RobertaPreLayerNormConfig

from estimators import Reduce, RowRandom, Sequences
from rl.models.bert import BERT
from rl.models.denoiser import ModelDenoiser
from rl.models.fresh import new_model
from rl.models.llada import LLADA
from rl.models.roberta_prelayernorm import ROBERTA_PRELAYERNORM
from rl.models.spec import ModelSpec

V = 3  # ids 0, 1, 2 can be written; 0 ends a completion
MASK = V
EOS = 0


SMALL_BERT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "initializer_range": 0.1,
}


class TinyDenoiser(nn.Module):
    """logits_s = W_s tanh(sum over visible positions j of E_j[token j]); positions skip padding."""

    def __init__(self, *, length: int = 12, hidden: int = 10, seed: int = 0) -> None:
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.mask_id = MASK
        self.seen: list[Tensor] = []  # what the model was shown, one [N, S] per call
        self.E = nn.Parameter(torch.randn(length, V + 1, hidden, generator=g, dtype=torch.float64))
        self.W = nn.Parameter(torch.randn(length, V, hidden, generator=g, dtype=torch.float64))

    def logits(self, ids: Tensor, attention: Tensor) -> Tensor:
        """[N, S, V + 1], the mask token at -inf."""
        place = (attention.long().cumsum(-1) - 1).clamp(min=0)
        hidden = torch.tanh((self.E[place, ids] * attention[..., None]).sum(1))
        writable = torch.einsum("nsvh,nh->nsv", self.W[place], hidden)
        return torch.cat([writable, writable.new_full((*ids.shape, 1), -torch.inf)], dim=-1)

    def forward(
        self, ids: Tensor, attention: Tensor, index: Tensor, reduce: Reduce
    ) -> tuple[Tensor, ...]:
        self.seen.append(ids)
        every = torch.arange(len(index))
        return reduce(self.logits(ids, attention).flatten(0, 1)[index], every, every)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        with torch.no_grad():
            yield

    def equalize(self, count: int) -> int:
        return count


SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "initializer_range": 0.5,  # predictions that really differ
}


def bert(*, vocab: int = 12, dropout: float = 0.0, **settings: Any) -> ModelDenoiser:
    both = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return _denoiser(BERT, BertConfig(vocab_size=vocab, **SIZES, **both), **settings)


def llama(*, vocab: int = 12, dropout: float = 0.0, **settings: Any) -> ModelDenoiser:
    own = {"num_key_value_heads": 2, "use_cache": False, "attention_dropout": dropout}
    return _denoiser(LLADA, LlamaConfig(vocab_size=vocab, **SIZES, **own), **settings)


def roberta(*, vocab: int = 12, dropout: float = 0.0, **settings: Any) -> ModelDenoiser:
    both = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    config = RobertaPreLayerNormConfig(vocab_size=vocab, type_vocab_size=1, **SIZES, **both)
    return _denoiser(ROBERTA_PRELAYERNORM, config, **settings)


def _denoiser(spec: ModelSpec, config: Any, **settings: Any) -> ModelDenoiser:
    """Ids 0 to vocab - 3 can be written; then padding, then the mask."""
    vocab = config.vocab_size
    return ModelDenoiser(
        model=new_model(spec, config, seed=0),
        mask_id=vocab - 1,
        forbidden=(vocab - 2, vocab - 1),
        vocab_size=vocab,
        causal_class=spec.causal,
        **settings,
    )


def sequences(
    completions: Sequence[Sequence[int]],
    *,
    prompts: Sequence[Sequence[int]] | None = None,
    step_map: Sequence[Sequence[int]] | None = None,
) -> Sequences:
    """`prompts` default to (1, 2); completions end at the first EOS."""
    completion = torch.tensor(completions)
    prompt = torch.tensor(prompts or [[1, 2]] * len(completion))
    ended = (completion == EOS).long().cumsum(-1) - (completion == EOS).long()
    return Sequences(
        prompt_ids=prompt,
        prompt_mask=torch.ones_like(prompt, dtype=torch.bool),
        completion_ids=completion,
        completion_mask=ended == 0,
        step_map=None if step_map is None else torch.tensor(step_map),
    )


def pad_left(seqs: Sequences, width: int) -> Sequences:
    """The same sequences after `width` more padding tokens, which have id 0."""
    return replace(
        seqs,
        prompt_ids=nn.functional.pad(seqs.prompt_ids, (width, 0)),
        prompt_mask=nn.functional.pad(seqs.prompt_mask, (width, 0)),
    )


def random_rows(*seeds: int, groups: Sequence[int] | None = None) -> RowRandom:
    return RowRandom(list(seeds), groups)


def token_logps(model: TinyDenoiser, seqs: Sequences, hidden: Tensor) -> Tensor:
    """log p(o_l | q, o outside `hidden`) for every l, [B, L], by one dense pass."""
    ids = torch.cat([seqs.prompt_ids, seqs.completion_ids.masked_fill(hidden, MASK)], dim=1)
    attention = torch.cat([seqs.prompt_mask, torch.ones_like(hidden)], dim=1)
    logits = model.logits(ids, attention)[:, seqs.prompt_ids.shape[1] :]
    return logits.log_softmax(-1).gather(-1, seqs.completion_ids[..., None])[..., 0]


def order_logps(model: TinyDenoiser, seqs: Sequences) -> Tensor:
    """log p(o) under each of the L! orders that write one token at a time: [B, L!]."""
    B, L = seqs.completion_ids.shape
    totals: list[Tensor] = []
    for order in itertools.permutations(range(L)):
        total = torch.zeros(B, dtype=torch.float64)
        for j, place in enumerate(order):
            hidden = torch.zeros(B, L, dtype=torch.bool)
            hidden[:, list(order[j:])] = True
            total = total + token_logps(model, seqs, hidden)[:, place]
        totals.append(total)
    return torch.stack(totals, dim=1)
