"""Preferences between the completions of a group: DPO on estimated log-probs.

    x_i  = beta_dpo (log p(o_i) - log p_ref(o_i))
    loss = mean over pairs (w, l) of a group with A_w > A_l of
           -(1 - smoothing) log sigmoid(x_w - x_l) - smoothing log sigmoid(x_l - x_w)

pairs "all" takes every such pair, "extremes" the best against the worst (every one of them, if
several are as good or as bad). Each group's mean counts by its number of rows, and a group whose
completions are all equal counts as 0. Two recorded completions with advantages +1 and -1 make
plain DPO.

VRPO is this on ELBOs. Noise of x biases the loss; the current and the reference policy share their
plan, which cancels most of it, and more samples average the rest.

Papers    DPO, arXiv:2305.18290; VRPO, arXiv:2505.19223; smoothing: E. Mitchell, "A note on DPO with
          noisy preferences", 2023

Shapes: B rows of whole groups.
"""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Bool
from torch import Tensor
from torch.nn.functional import logsigmoid

from .base import Metrics, Objective
from .comparison import Aggregation, Comparison, Totals


@dataclass(frozen=True, kw_only=True)
class Preference(Objective):
    summary = "DPO between the completions of a group"
    paper = "DPO, arXiv:2305.18290; VRPO, arXiv:2505.19223"
    needs_old = False
    needs_reference = True
    whole_groups = True
    zero_is_silent = False

    beta_dpo: float = 0.1
    pairs: Literal["all", "extremes"] = "all"
    smoothing: float = 0.0
    aggregation: Aggregation = "sequence_sum"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.beta_dpo < float("inf"):
            raise ValueError(f"beta_dpo is {self.beta_dpo}; it must be positive")
        if not 0 <= self.smoothing < 0.5:
            raise ValueError(
                f"smoothing is {self.smoothing}; it is the share of wrong preferences, from 0 to "
                f"below 0.5"
            )

    def surrogate(self, c: Comparison, totals: Totals) -> tuple[Tensor, Metrics]:
        x_B = self.beta_dpo * c.sequence_difference(c.reference)
        pair_BB, rows_B = self._pairs(c)
        margin_BB = x_B[:, None] - x_B
        loss_BB = -(1 - self.smoothing) * logsigmoid(margin_BB)
        loss_BB = loss_BB - self.smoothing * logsigmoid(-margin_BB)
        wins = ((margin_BB.detach() > 0) & pair_BB).sum()
        metrics = {
            "preference/accuracy": (wins, pair_BB.sum()),
            "preference/margin": ((margin_BB.detach() * pair_BB).sum(), pair_BB.sum()),
        }
        return self.mean((loss_BB * pair_BB).sum(-1) * rows_B, c, totals), metrics

    def _pairs(self, c: Comparison) -> tuple[Bool[Tensor, "B B"], Tensor]:
        """Whether i is preferred to j; and rows per pair of each row's group."""
        if c.groups is None:
            raise ValueError("preferences are between the completions of a group; got no groups")
        advantage_B = c.row_advantages
        group_BB = c.groups[:, None] == c.groups
        pair_BB = group_BB & (advantage_B[:, None] > advantage_B)
        if self.pairs == "extremes":
            beaten_B, beats_B = pair_BB.any(0), pair_BB.any(1)
            pair_BB = pair_BB & ~beaten_B[:, None] & ~beats_B
        count_B = (group_BB * pair_BB.sum(-1)).sum(-1)
        return pair_BB, group_BB.sum(-1) / count_B.clamp(min=1)
