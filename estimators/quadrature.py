"""The ELBO's integral over masking ratios by Gauss-Legendre quadrature (GDPO).

    integral_0^1 g(t) dt  ~  sum_{i=1..N} w_i g(t_i),
    g(t) = 1/t  E_z [ sum_{l in z} log p(o_l | q, o outside z) ]

with one mask z per node. Under law "bernoulli" every scored token is masked with probability t;
g is then a polynomial of degree n - 1, and the mean of the estimate is the ELBO exactly if the
completion has n <= 2N tokens. Under law "count", GDPO's own, exactly round(n t) tokens are masked,
at least one: less noise, and a bias by rounding that is large for a few tokens only.

The ratios are the same in every draw, which removes most of the noise of an ELBO, and leaves a bias
where log-probs fall steeply near the fully masked completion.

Paper     GDPO, arXiv:2510.08554
Estimates a lower bound up to the error of the quadrature
Cost      N forward passes
Level     sequence
"""

from dataclasses import dataclass
from typing import Literal, cast

import torch
from jaxtyping import Float
from torch import Tensor

from .base import Estimator
from .masks import random_sets, random_tokens
from .row_random import RowRandom
from .rows import MaskPlan, Sequences


@dataclass(frozen=True, kw_only=True)
class Quadrature(Estimator):
    paper = "GDPO, arXiv:2510.08554"
    estimates = "surrogate"
    level = "sequence"
    cost = "nodes"
    scores = "random-order decoding"

    nodes: int = 2
    law: Literal["count", "bernoulli"] = "count"

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise ValueError(f"nodes is {self.nodes}; use at least 1, GDPO uses 2 or 3")

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        scored_B1L = self.scored(seqs).cpu()[:, None]
        t_N, w_N = gauss_legendre(self.nodes)
        if self.law == "count":
            n_B1 = scored_B1L.sum(-1)
            k_BN = (n_B1 * t_N).round().long().clamp(min=1)
            masked = random_sets(random, scored_B1L, k_BN)
        else:
            masked = random_tokens(random, scored_B1L, t_N[None, :, None])
        return self.planned(seqs, masked=masked, weight=masked * (w_N / t_N)[:, None])

    def views(self, *, length: int, steps: int) -> int:
        return self.nodes


def gauss_legendre(nodes: int) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Nodes in (0, 1) and weights that add up to 1: exact for polynomials of degree 2N - 1.

    Golub and Welsch: the nodes on (-1, 1) are the eigenvalues of the recurrence's matrix.
    """
    i = torch.arange(1, nodes, dtype=torch.float64)
    beta = i / (4 * i.square() - 1).sqrt()
    recurrence = torch.diag(beta, 1) + torch.diag(beta, -1)
    x_N, vectors = cast("tuple[Tensor, Tensor]", torch.linalg.eigh(recurrence))  # pyright: ignore
    return (x_N + 1) / 2, vectors[0].square()
