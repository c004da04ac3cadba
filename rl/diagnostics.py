"""Whether an estimate can be trusted, from numbers that training has at hand anyway.

    logp/gap               mean over completions of (estimated - recorded log-prob) / n
    logp/correlation       of the two over completions, each divided by n
    ratio/level_25/mean    log-ratio per token, over the views that mask up to a quarter of the
    ratio/level_25/std     completion; _50, _75, _100: up to a half, ... , all of it
    ratio/ess              (sum r)^2 / (N sum r^2) of the sequence ratios r: 1 if all are equal,
                           1/N if one has all the weight
    entropy                of the predictions at the committed tokens, in nats
    entropy/step_25        the same in the first quarter of the denoising steps; _50, _75, _100
    completions/duplicates share of completions that another one of their group repeats

n is the number of scored tokens. The recorded log-prob is the sampler's, of those tokens when it
committed them. No function here runs the model.

Shapes: B rows, L completion tokens, M views.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from estimators import Estimate, MaskPlan, Sequences, stable_seed
from rl.metrics import Sums, correlation, effective_share, mean, std

QUARTERS = (25, 50, 75, 100)
LARGEST_LOG_RATIO = 300.0  # its square fits a double


def agreement(new: Estimate, sequences: Sequences, scored: Bool[Tensor, "B L"]) -> dict[str, Sums]:
    """Estimates by the policy that wrote the rollouts against what the sampler recorded."""
    if sequences.rollout_logp is None:
        return {}
    n_B = scored.sum(-1).clamp(min=1)
    x_B = new.sequence_logp.detach().double() / n_B
    y_B = (sequences.rollout_logp.double() * scored).sum(-1) / n_B
    one_B = torch.ones_like(x_B)
    moments = torch.stack([one_B, x_B, y_B, x_B * x_B, y_B * y_B, x_B * y_B]).sum(-1)
    return {
        "logp/gap": Sums(torch.stack([(x_B - y_B).sum(), one_B.sum()]), mean),
        "logp/correlation": Sums(moments, correlation),
    }


def ratios(
    new: Estimate, old: Estimate, plan: MaskPlan, scored: Bool[Tensor, "B L"]
) -> dict[str, Sums]:
    """How far the policy has moved from the one that wrote the rollouts, by masking level."""
    log_ratio_B = (new.sequence_logp - old.sequence_logp).detach().double()
    ratio_B = log_ratio_B.clamp(max=LARGEST_LOG_RATIO).exp()
    ess = torch.stack([torch.ones_like(ratio_B), ratio_B, ratio_B * ratio_B]).sum(-1)
    found = {"ratio/ess": Sums(ess, effective_share)}
    if new.view_logp is None or old.view_logp is None:
        return found
    weight_BM = plan.weight.double().sum(-1)
    run_BM = weight_BM.ne(0)
    change_BM = (new.view_logp - old.view_logp).detach().double()
    x_BM = change_BM / weight_BM.where(run_BM, torch.ones_like(weight_BM))
    hidden_BM = (plan.completion & scored[:, None]).sum(-1)
    n_B1 = scored.sum(-1, keepdim=True).clamp(min=1)
    quarter_BM = (4 * hidden_BM - 1) // n_B1  # 0 for up to a quarter, ... , 3 for up to all
    for i, percent in enumerate(QUARTERS):
        here_BM = (quarter_BM == i) & run_BM
        count, x = here_BM.sum().double(), (x_BM * here_BM).sum()
        found[f"ratio/level_{percent}/mean"] = Sums(torch.stack([x, count]), mean)
        moments = torch.stack([count, x, (x_BM.square() * here_BM).sum()])
        found[f"ratio/level_{percent}/std"] = Sums(moments, std)
    return found


def entropies(sequences: Sequences) -> dict[str, Sums]:
    """Of what the policy wrote, by quarter of the denoising steps of each completion."""
    if sequences.entropy is None or sequences.step_map is None:
        return {}
    written_BL = sequences.completion_mask & ~sequences.fixed
    entropy_BL = sequences.entropy.double() * written_BL
    steps_B1 = sequences.step_map.amax(-1, keepdim=True) + 1
    quarter_BL = 4 * sequences.step_map // steps_B1.clamp(min=1)
    found = {"entropy": _mean_where(entropy_BL, written_BL)}
    for i, percent in enumerate(QUARTERS):
        here_BL = (quarter_BL == i) & written_BL
        found[f"entropy/step_{percent}"] = _mean_where(entropy_BL, here_BL)
    return found


def fingerprints(completion_ids: Sequence[Sequence[int]]) -> Int[Tensor, " B"]:
    """Equal for equal completions, for ranks to exchange."""
    return torch.tensor([stable_seed(tuple(ids)) for ids in completion_ids])


def duplicates(groups: Int[Tensor, " N"], prints: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
    """1 for completions that are equal to another one of their group, of all ranks."""
    pairs = torch.stack([groups, prints], dim=1)
    _, member_N, count = torch.unique(pairs, dim=0, return_inverse=True, return_counts=True)
    return count[member_N].gt(1).double()


def _mean_where(values: Tensor, where: Tensor) -> Sums:
    return Sums(torch.stack([(values * where).sum(), where.sum().double()]), mean)
