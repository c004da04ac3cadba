"""How rollouts were written, as far as the probability of a step depends on it.

    p_T(v) = exp(logit_v / T) / sum_{u in S} exp(logit_u / T),    v in S

S is what top_k leaves of the vocabulary, and top_p of that: the smallest set of most likely tokens
whose mass reaches top_p. Samplers draw from p_T and estimators score under it, by the same code.

Shapes: C distinct predictions, V vocabulary, K requests for one of them each.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """What an estimator needs to know of a sampler.

    rule: which positions a step commits (`Sampler.rule`).
    temperature, top_k, top_p: of the tokens; None keeps the whole vocabulary.
    threshold: confidence above which `threshold` decoding commits.
    at_least: tokens that a step of `threshold` decoding commits whatever their confidence.
    position_temperature: of the positions in `plackett_luce` decoding.
    one_by_one: every step commits exactly one token.
    whole_steps: what is scored together is all that a step committed, and nothing else.
    """

    rule: str = "random"
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    threshold: float | None = None
    at_least: int = 1
    position_temperature: float | None = None
    one_by_one: bool = False
    whole_steps: bool = True

    def tempered(self, logits: Float[Tensor, "C V"]) -> Float[Tensor, "C V"]:
        """logits / T, and -inf outside of S. Equal logits stay or go together."""
        if self.temperature != 1:
            logits = logits / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            least_C1 = logits.detach().topk(self.top_k).values[:, -1:]
            logits = logits.masked_fill(logits < least_C1, -torch.inf)
        if self.top_p is not None and self.top_p < 1:
            falling_CV = logits.detach().sort(-1, descending=True).values
            short_CV = falling_CV.softmax(-1).cumsum(-1) < self.top_p
            last_C1 = short_CV.sum(-1, keepdim=True).clamp(max=logits.shape[-1] - 1)
            logits = logits.masked_fill(logits < falling_CV.gather(1, last_C1), -torch.inf)
        return logits

    def token_logp(
        self,
        logits: Float[Tensor, "C V"],
        tempered: Float[Tensor, "C V"],
        row: Int[Tensor, " K"],
        token: Int[Tensor, " K"],
    ) -> Float[Tensor, " K"]:
        """log p_T(token), given `self.tempered(logits)`; a token outside of S is added to S.

        It is outside only after the weights that wrote it have changed.
        """
        total_K = tempered.logsumexp(-1)[row]
        own_K = logits[row, token] / self.temperature
        outside_K = tempered[row, token] == -torch.inf
        return own_K - torch.where(outside_K, torch.logaddexp(total_K, own_K), total_K)

    @property
    def unchanged(self) -> bool:
        """Whether p_T is the model's own p, over all tokens."""
        return self.temperature == 1 and self.top_k is None and self.top_p in (None, 1)

    @property
    def log_threshold(self) -> float:
        """A prediction passes if its log-prob at temperature 1 is above this."""
        assert self.threshold is not None
        return math.log(self.threshold)


PLAIN = Decoding()  # temperature 1, all tokens
