"""Likelihood along the sampler's own trajectory, with its steps merged into N segments.

    log p(o | q)  ~  sum_{n=1..N} sum_{l committed in segment n} log p(o_l | q, o before segment n)

With `segments=None` every step is its own segment. The sum is then the log-probability of the
sampler's actions: exact for rules that choose *where* to write without looking at *what* they
write (confidence_first, random, left_to_right). Low-confidence remasking also chooses by the
proposed tokens; that factor is not included here.

Paper     d2-StepMerge, arXiv:2509.21474; every step: CJ-GRPO, arXiv:2509.23924
Estimates the tokens' log-probability on the trajectory; N < steps merges steps, a surrogate
Cost      N forward passes (number of steps when `segments` is None)
Level     token
"""

from dataclasses import dataclass

import torch

from .base import AfterEos, Estimator, MaskPlan, Sequences
from .row_random import RowRandom

EXACT_RULES = ("confidence_first", "left_to_right", "random")


@dataclass(frozen=True, kw_only=True)
class Trajectory(Estimator):
    paper = "d2, arXiv:2509.21474"
    estimates = "exact"
    level = "token"
    cost = "segments (steps when null)"
    scores = "the tokens of the rollout's own steps, but not the choice of positions"

    segments: int | None = 8
    after_eos: AfterEos = "score"  # tokens after EOS were actions too
    at_rollout_temperature: bool = True

    def __post_init__(self) -> None:
        if self.segments is not None and self.segments < 1:
            raise ValueError(f"segments is {self.segments}; use at least 1, or null for every step")

    def exact_for(self, rule: str) -> bool:
        every_action = self.segments is None and self.after_eos == "score"
        return every_action and self.at_rollout_temperature and rule in EXACT_RULES

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        if seqs.step_map is None:
            raise ValueError(
                "Trajectory needs Sequences.step_map, the step that committed each token; "
                "take sequences from one of our samplers, which record it"
            )
        step_BL = seqs.step_map
        steps_B1 = step_BL.amax(-1, keepdim=True) + 1  # each row's own number of steps
        count_B1 = steps_B1 if self.segments is None else steps_B1.clamp(max=self.segments)
        segment_BL = step_BL * count_B1 // steps_B1

        view_M = torch.arange(int(count_B1.max()), device=step_BL.device)
        now_BML = segment_BL[:, None] == view_M[:, None]
        later_BML = segment_BL[:, None] > view_M[:, None]
        hidden_B1L = self.hidden_after_eos(seqs)[:, None]
        scored_BML = now_BML & self.scored(seqs)[:, None]
        B, M, Q = len(step_BL), len(view_M), seqs.prompt_ids.shape[1]
        return MaskPlan(
            prompt=torch.zeros(B, M, Q, dtype=torch.bool, device=step_BL.device),
            completion=now_BML | later_BML | hidden_B1L,
            weight=scored_BML.float(),
        )
