"""Drawing random masks: what the estimators with synthetic masks share.

Every number is a row's own. What depends on the width of the padded prompts is drawn last and
counted from the prompt's end, so that left padding changes nothing.

Shapes: B rows, M views, Q prompt tokens, L completion tokens.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .row_random import RowRandom
from .rows import Sequences


def uniform(
    random: RowRandom, samples: int, *, stratified: bool = False, over_rows: bool = False
) -> Float[Tensor, "B M"]:
    """`samples` numbers in [0, 1) per row.

    stratified: one in each of as many equal parts. over_rows: the samples of all completions of a
        prompt in different parts.
    """
    u_BM = random.per_row(samples)
    if over_rows:
        return (random.strata(samples) + u_BM) / (random.size * samples)
    return (torch.arange(samples) + u_BM) / samples if stratified else u_BM


def random_sets(
    random: RowRandom, allowed: Bool[Tensor, "B #M L"], size: Int[Tensor, "B M"]
) -> Bool[Tensor, "B M L"]:
    """In each view a uniformly random set of `size` of the allowed positions."""
    noise_BML = random.per_row(size.shape[1], allowed.shape[-1]).masked_fill(~allowed, 2.0)
    rank_BML = noise_BML.argsort(-1).argsort(-1)  # a random order, the allowed positions first
    return (rank_BML < size[..., None]) & allowed


def random_tokens(
    random: RowRandom, allowed: Bool[Tensor, "B #M L"], chance: Float[Tensor, "#B M #L"]
) -> Bool[Tensor, "B M L"]:
    """In each view every allowed position with its own chance."""
    return (random.per_row(chance.shape[1], allowed.shape[-1]) < chance) & allowed


def random_prompt_tokens(
    random: RowRandom, seqs: Sequences, views: int, chance: float
) -> Bool[Tensor, "B M Q"]:
    """Every prompt token with the same chance; padding never. To be drawn last."""
    noise_BQM = random.per_row(seqs.prompt_ids.shape[1], views).flip(1)
    return (noise_BQM.transpose(1, 2) < chance) & seqs.prompt_mask.cpu()[:, None]
