"""Choosing some of a row's recorded steps: drawn, or those that come first by some number.

    steps s_1..s_m drawn from p, one in each of m equal parts of its cumulative distribution
    E[ sum_k  c_k / (m p_k)  x_k ]  =  sum_k x_k,      c_k the number of times that k was drawn

A step drawn twice is one view with twice the importance. Rows with fewer than m steps draw as many
as they have; from the uniform law that is each of them once.

Shapes: B rows, L completion tokens, K steps, M chosen ones.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .row_random import RowRandom

NO_STEP = 2**31  # later than every step


def tokens_by_step(step: Int[Tensor, "B L"], scored: Bool[Tensor, "B L"]) -> Float[Tensor, "B K"]:
    """Scored tokens that each step committed."""
    return _sum_by_step(scored.double(), step, scored)


def mean_by_step(
    values: Float[Tensor, "B L"], step: Int[Tensor, "B L"], scored: Bool[Tensor, "B L"]
) -> Float[Tensor, "B K"]:
    """Mean over the scored tokens of each step; 0 where there are none."""
    return _sum_by_step(values.double(), step, scored) / tokens_by_step(step, scored).clamp(min=1)


def _sum_by_step(values: Tensor, step: Tensor, scored: Tensor) -> Tensor:
    out = torch.zeros(len(step), max(int(step.max()) + 1, 1), dtype=torch.float64)
    return out.scatter_add_(1, step.long().clamp(min=0), values * scored)


def draw(
    weight: Float[Tensor, "B K"], m: int, random: RowRandom
) -> tuple[Int[Tensor, "B M"], Float[Tensor, "B M"]]:
    """m steps with probability in proportion to weight, and c / (m p); NO_STEP and 0 if fewer."""
    u_BM = random.per_row(m).clamp(max=1 - 2**-40)
    m_B1 = weight.gt(0).sum(-1, keepdim=True).clamp(max=m)
    total_BK = weight.cumsum(-1)
    j_M = torch.arange(m)
    goal_BM = (j_M + u_BM) * (total_BK[:, -1:] / m_B1.clamp(min=1))
    step_BM = torch.searchsorted(total_BK, goal_BM, right=True).clamp(max=weight.shape[1] - 1)
    drawn_BM = j_M < m_B1
    same_BMM = (step_BM[:, :, None] == step_BM[:, None]) & drawn_BM[:, None]
    first_BM = drawn_BM & ~same_BMM.tril(-1).any(-1)
    p_BM = weight.gather(1, step_BM) / total_BK[:, -1:]
    importance_BM = torch.where(first_BM, same_BMM.sum(-1) / (m_B1 * p_BM), 0.0)
    widest = max(int(m_B1.max()), 1)
    return step_BM.masked_fill(~first_BM, NO_STEP)[:, :widest], importance_BM[:, :widest]


def highest(
    key: Float[Tensor, "B K"], exists: Bool[Tensor, "B K"], m: int | Int[Tensor, "B 1"]
) -> Int[Tensor, "B M"]:
    """The m existing steps of highest key; ties go to the earlier; NO_STEP if there are fewer."""
    key_BK = key.masked_fill(~exists, -torch.inf)
    order_BK = key_BK.argsort(dim=-1, descending=True, stable=True)
    wanted_BK = torch.arange(key.shape[1]) < torch.minimum(
        exists.sum(-1, keepdim=True), torch.as_tensor(m)
    )
    widest = int(wanted_BK.sum(-1).max())
    return order_BK.masked_fill(~wanted_BK, NO_STEP)[:, : max(widest, 1)]
