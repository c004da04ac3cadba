"""Drawing tokens from logits inside a denoiser's reduce.

Proposals invert the cumulative distribution at one uniform number each, which belongs to the row:
who else is in the batch does not matter.

Shapes: C distinct predictions, V vocabulary, K requests for one of them each.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from estimators import Decoding


class Draw:
    """Reduce logits to a token, its log-prob in the rollout and at T = 1, the peak's, the entropy.

    greedy: take the most likely token, with rollout log-prob 0.
    """

    def __init__(self, decoding: Decoding, uniform: Float[Tensor, " K"], *, greedy: bool) -> None:
        self.decoding = decoding
        self.greedy = greedy
        self.uniform = uniform.clamp(max=1 - 2**-40)

    def __call__(self, logits: Tensor, entries: Tensor, row: Tensor) -> tuple[Tensor, ...]:
        logp_CV = logits.log_softmax(-1)
        peak = logp_CV.amax(-1)[row]
        entropy = torch.special.entr(logp_CV.exp()).sum(-1)[row]
        if self.greedy:
            token = logp_CV.argmax(-1)[row]
            rollout_logp = torch.zeros_like(peak)
        else:
            tempered_CV = self.decoding.tempered(logits)
            token = self._invert(tempered_CV.softmax(-1, torch.float64), entries, row)
            rollout_logp = self.decoding.token_logp(logits, tempered_CV, row, token)
        return token, rollout_logp, logp_CV[row, token], peak, entropy

    def _invert(self, p_CV: Tensor, entries: Tensor, row: Tensor) -> Tensor:
        """The token whose slice of the cumulative distribution holds the entry's uniform number."""
        cumulative_CV = p_CV.cumsum_(-1)
        tokens: list[Tensor] = []
        for at in range(0, len(row), len(p_CV)):  # several entries may share a row
            here = cumulative_CV[row[at : at + len(p_CV)]]
            goal = self.uniform[entries[at : at + len(p_CV)], None] * here[:, -1:]
            tokens.append(torch.searchsorted(here, goal, right=True)[:, 0])
        return torch.cat(tokens) if tokens else row
