"""Monte Carlo evidence lower bound, with optional coupled (complementary) masks.

    log p(o | q)  >=  E_{k ~ U{1..n}} E_{|z| = k} [ n/k  sum_{l in z} log p(o_l | q, o outside z) ]

where n is the number of scored tokens and z a uniformly random set of k masked positions.
`coupled=True` scores both z and its complement, so that each token is scored once per pair; k
is then drawn from U{0..n} and the weight is (n+1)/k for z, (n+1)/(n-k) for its complement,
halved.

Paper     LLaDA, arXiv:2502.09992; coupling: DiffuCoder, arXiv:2506.20639 and ESPO, arXiv:2512.03759
Estimates a lower bound, without bias for any `samples`
Cost      `samples` forward passes, twice that when coupled
Level     sequence (ESPO) or token (UniGRPO, arXiv:2505.15809)
"""

from dataclasses import dataclass

import torch

from .base import Estimator, MaskPlan, Sequences
from .row_random import RowRandom


@dataclass(frozen=True, kw_only=True)
class Elbo(Estimator):
    paper = "LLaDA, arXiv:2502.09992"
    estimates = "lower bound"
    level = "sequence"
    cost = "samples (2 x samples when coupled)"
    scores = "random-order decoding"

    samples: int = 1
    coupled: bool = False

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}; an ELBO needs at least 1")

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        scored_B1L = self.scored(seqs).cpu()[:, None]
        L = scored_B1L.shape[-1]
        n_B1 = scored_B1L.sum(-1)

        low = 0 if self.coupled else 1
        k_BM = low + (random.per_row(self.samples) * (n_B1 + 1 - low)).long()  # U{low..n}
        noise_BML = random.per_row(self.samples, L).masked_fill(~scored_B1L, 2.0)
        rank_BML = noise_BML.argsort(-1).argsort(-1)  # a random order of the scored tokens
        masked = rank_BML < k_BM[..., None]
        if self.coupled:
            half = 0.5 * (n_B1 + 1) / self.samples
            rest = ~masked & scored_B1L
            weight = torch.cat(
                [
                    masked * (half / k_BM.clamp(min=1))[..., None],
                    rest * (half / (n_B1 - k_BM).clamp(min=1))[..., None],
                ],
                dim=1,
            )
            masked = torch.cat([masked, rest], dim=1)
        else:
            weight = masked * (n_B1 / k_BM)[..., None] / self.samples

        device = seqs.completion_ids.device
        hidden_B1L = self.hidden_after_eos(seqs).cpu()[:, None]
        B, M, Q = len(masked), masked.shape[1], seqs.prompt_ids.shape[1]
        return MaskPlan(
            prompt=torch.zeros(B, M, Q, dtype=torch.bool, device=device),
            completion=(masked | hidden_B1L).to(device),
            weight=weight.float().to(device),
        )
