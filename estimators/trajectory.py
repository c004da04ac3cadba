"""Likelihood along the sampler's own trajectory, with its steps merged into N segments.

    log p(o | q)  ~  sum_{n=1..N} sum_{l committed in segment n} log p(o_l | q, o before segment n)

With `segments=None` every step is its own segment. The sum is then the log-probability of the
sampler's actions: exact for rules that choose *where* to write without looking at *what* they
write (confidence_first, random, left_to_right). Low-confidence remasking, threshold and
Plackett-Luce decoding also choose by the predictions; `selection=1` includes that factor, and the
sum is exact for them too. One segment is the one-step value.

Also  step_mean=True, every step: CJ-GRPO, arXiv:2509.23924; segments: TraceRL, arXiv:2509.06949
      a step map that holds the levels of a tree: d-TreeRPO, arXiv:2512.09675
      selection=1 with Plackett-Luce decoding: LLaDOU, arXiv:2505.10446; Mask-Aware Policy
      Gradients, arXiv:2607.15200. For low-confidence and threshold decoding it is ours.

Paper     d2-StepMerge, arXiv:2509.21474
Estimates the log-probability of the sampler's actions; N < steps merges steps, a surrogate
Cost      N forward passes (number of steps when `segments` is None); `selection` adds none
Level     token
"""

from dataclasses import dataclass

import torch

from .decoding import Decoding
from .row_random import RowRandom
from .rows import MaskPlan, Sequences
from .stepwise import Stepwise


@dataclass(frozen=True, kw_only=True)
class Trajectory(Stepwise):
    paper = "d2, arXiv:2509.21474"
    estimates = "exact"
    level = "token"
    cost = "segments (steps when null)"
    scores = "the rollout's own steps, and with selection 1 its choice of positions"

    exact_settings = ({"segments": None}, {"segments": None, "selection": 1.0})

    segments: int | None = 8

    def exact_for(self, decoding: Decoding) -> bool:
        return self.every_action(decoding) and not self.step_mean

    def plan(self, seqs: Sequences, random: RowRandom) -> MaskPlan:
        segment_BL = self.segment_map(seqs)
        every_M = torch.arange(max(int(segment_BL.max()) + 1, 1))
        return self.views_at(seqs, segment_BL, every_M.expand(len(segment_BL), -1))

    def views(self, *, length: int, steps: int) -> int:
        return steps if self.segments is None else min(self.segments, steps)
