"""LLaDA's training objective for a denoiser.

    loss = - 1/N  sum_b  1/t_b  sum_{l masked}  log p(o_bl | q_b, o_b outside the masks)
    t_b ~ U(t_min, 1)

Each completion token of row b is masked with probability t_b; prompts are shown. N is the number
of completion tokens of the whole optimizer step. With t_min = 0 the expected sum over a row is
exactly its negative ELBO (`estimators.elbo`); t_min > 0 bounds the weights and leaves out a little
of the nearly complete sequences.

Paper     LLaDA, arXiv:2502.09992, algorithm 2
Cost      1 forward pass per row
Shapes    B rows, M = 1 view, Q prompt tokens, L completion tokens
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from estimators import Denoiser, MaskPlan, RowRandom, Sequences, score


def sft_plan(
    seqs: Sequences, supervised: Bool[Tensor, "B L"], random: RowRandom, t_min: float
) -> MaskPlan:
    """Mask each supervised token with its row's probability t, and weigh it by 1/t.

    Tokens that are not supervised follow the first EOS and are shown as masks, without weight.
    """
    supervised_BL, device = supervised.cpu(), supervised.device
    uniform_BV = random.per_row(1 + supervised_BL.shape[1])
    t_B1 = 1 - (1 - t_min) * uniform_BV[:, :1]  # in (t_min, 1]
    masked_BL = (uniform_BV[:, 1:] < t_B1) & supervised_BL
    return MaskPlan(
        prompt=torch.zeros_like(seqs.prompt_mask)[:, None],
        completion=(masked_BL | ~supervised_BL).to(device)[:, None],
        weight=(masked_BL / t_B1).float().to(device)[:, None],
    )


def sft_loss(
    denoiser: Denoiser, seqs: Sequences, plan: MaskPlan, total: float | Tensor
) -> Float[Tensor, ""]:
    """Weighted cross-entropy over `total`, the completion tokens of the optimizer step.

    Without a single masked token the loss is 0, by way of the model: every rank of a distributed
    run needs a backward pass.
    """
    empty = not bool(plan.weight.any())
    if empty:
        plan = plan.rows(slice(0, 1))
        plan = MaskPlan(
            prompt=plan.prompt,
            completion=torch.ones_like(plan.completion),
            weight=torch.ones_like(plan.weight),
        )
        seqs = seqs.rows(slice(0, 1))
    logp_BML = score(denoiser, seqs, plan).token
    return -(plan.weight * logp_BML).sum() * (0.0 if empty else 1.0) / total
