"""Whether rewards still mean what they should: metrics of every step, and alarms told once a run.

    answer/...                what the answers look like, see rl/answers.py
    baseline/NAME             what a trivial policy earns, see rl/trivial_policies.py
    completions/length_drift  mean length of a completion by that of the first logs
    time/monitor              seconds that all this took

docs/rewards.md says what each alarm means and what to do. An alarm looks at the last few steps of
this process; the metrics depend on nothing but the step and the logs before it, so that a resumed
run logs what an uninterrupted one does.

Shapes: B rows of this rank, N of all ranks, K trivial policies.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from accelerate import Accelerator
from jaxtyping import Float
from torch import Tensor

from estimators import stable_seed
from rewards.baselines import BASELINES
from rewards.extraction import Extraction
from rl.answers import NOTHING, answer_reader, fingerprint, sameness, shares
from rl.gathered import over_ranks
from rl.metrics import Metrics
from rl.reward_calls import RewardCalls
from rl.rollout_schemes import Rollouts
from rl.trivial_policies import TrivialPolicy, earned, trivial_policies

logger = logging.getLogger(__name__)

STEPS = 8  # that an alarm looks back
PROMPTS = 8  # fewer prove nothing
CONSTANT = 0.5  # of `sameness`, beyond that of the right answers
FIRST_LOGS = 5  # whose mean length is the one to compare with
DRIFT = 2.0  # times as long, or as short
TIMEOUTS = 0.05  # share of gradings
UNREADABLE = 0.9  # share of completions without an answer
SEE = "see docs/rewards.md, 'Alarms' (told once a run)"


class Recent:
    """Sums over the last steps: of weights, of values and of their squares."""

    def __init__(self) -> None:
        self._steps: deque[Tensor] = deque(maxlen=STEPS)

    def add(self, values: Tensor) -> None:
        x = values[~values.isnan()].double()
        self._steps.append(torch.stack([x.new_tensor(float(len(x))), x.sum(), x.square().sum()]))

    @property
    def steps(self) -> int:
        return len(self._steps)

    @property
    def count(self) -> float:
        return sum(float(step[0]) for step in self._steps)

    @property
    def mean(self) -> float:
        return sum(float(step[1]) for step in self._steps) / max(self.count, 1.0)

    @property
    def standard_error(self) -> float:
        n = max(self.count, 2.0)
        squares = sum(float(step[2]) for step in self._steps)
        return math.sqrt(max(squares / n - self.mean**2, 0.0) / (n - 1))


class RewardMonitor:
    """Looks at every rollout of a run. All ranks call it, with equally many rows."""

    def __init__(self, rewards: RewardCalls, accelerator: Accelerator, metrics: Metrics) -> None:
        self.rewards, self.accelerator, self.metrics = rewards, accelerator, metrics
        self.read = answer_reader(rewards.functions)
        self.policies = trivial_policies(rewards, BASELINES)
        self._recent: dict[str, Recent] = {}
        self._told: set[str] = set()

    def __call__(
        self,
        rollouts: Rollouts,
        values: Sequence[Sequence[float]] | None,
        history: Sequence[Mapping[str, Any]],
    ) -> dict[str, list[Any]]:
        """The answer of each completion and how it was read, for the log of completions.

        values: rewards of these completions by name; None where others were graded.
        history: what was logged so far.
        """
        start = time.perf_counter()
        answers = [self.read(text) for text in rollouts.completions.texts] if self.read else []
        self._lengths(rollouts, history)
        if answers:
            self._answers(rollouts, answers)
        if self.policies:
            self._baselines(rollouts, values)
        self.metrics.add("time/monitor", time.perf_counter() - start)
        return {
            "answer": [each.text for each in answers],
            "answer_status": [each.status for each in answers],
        }

    def timeouts(self, name: str, late: float, count: int) -> None:
        """Told how many of the gradings of a reward were stopped for taking too long."""
        share = torch.tensor([late / count], dtype=torch.float64).expand(count)
        recent = self._add(f"timeouts of {name}", over_ranks(self.accelerator, share))
        self._alarm(
            f"timeouts of {name}",
            recent.count >= PROMPTS and recent.mean > TIMEOUTS,
            f"{100 * recent.mean:.0f} % of the gradings of reward {name} were stopped at its time "
            "limit, and those completions are not paid: raise its limit if it is slow by nature, "
            "give it more workers if the machine is busy, else read such completions in the log",
        )

    def _lengths(self, rollouts: Rollouts, history: Sequence[Mapping[str, Any]]) -> None:
        logged = [entry["completions/length"] for entry in history if "completions/length" in entry]
        first = logged[:FIRST_LOGS]
        if len(first) < FIRST_LOGS or not sum(first):
            return
        drift_B = rollouts.completions.lengths.double() * len(first) / sum(first)
        self.metrics.add_all("completions/length_drift", drift_B)
        recent = self._add("length", over_ranks(self.accelerator, drift_B.cpu()))
        self._alarm(
            "length",
            recent.steps >= STEPS // 2 and not 1 / DRIFT < recent.mean < DRIFT,
            f"completions are now {recent.mean:.2g} times as long as in the first "
            f"{FIRST_LOGS} logs: read some of them, and if they pad (or say) nothing that is "
            "asked for, add the reward overlong or repetition, or stop paying for length",
        )

    def _answers(self, rollouts: Rollouts, answers: Sequence[Extraction]) -> None:
        for name, share_B in shares(answers).items():
            self.metrics.add_all(name, share_B)
        prompts = [stable_seed(*key[:3]) for key in rollouts.keys]
        golds = [row.get("answer") for row in rollouts.rows]
        prints = [
            [prompt, fingerprint(each.text), prompt if gold is None else fingerprint(str(gold))]
            for prompt, each, gold in zip(prompts, answers, golds, strict=True)
        ]
        prompt_N, answer_N, gold_N = over_ranks(self.accelerator, torch.tensor(prints)).unbind(1)
        unread = self._add("unreadable", answer_N.eq(NOTHING).double())
        self._alarm(
            "unreadable",
            unread.count >= PROMPTS and unread.mean > UNREADABLE,
            f"{100 * unread.mean:.0f} % of the completions declare no answer that the reward can "
            "read (answer/... says why): ask for the form that it reads in the prompt, set its "
            "style, raise max_completion_length if they are truncated, or run SFT first",
        )
        same = sameness(prompt_N, answer_N)
        if same is None:
            return
        self.metrics.add("answer/constant", same)
        count = float(len(prompt_N.unique()))
        excess = same - (sameness(prompt_N, gold_N) or 0.0)
        recent = self._add("constant", torch.full((int(count),), excess))
        self._alarm(
            "constant",
            recent.count >= PROMPTS and recent.mean > CONSTANT,
            "most completions give one and the same answer to different prompts, far more often "
            "than it is right: the policy has stopped reading the prompt. Stop the run, look at "
            "what that answer earns, close that hole in the reward, and go on from a checkpoint "
            "before it with more KL (objective.beta) or a lower learning rate",
        )

    def _baselines(self, rollouts: Rollouts, values: Sequence[Sequence[float]] | None) -> None:
        earned_KB = earned(self.policies, self.rewards, rollouts.rows, rollouts.keys)
        for each, earned_B in zip(self.policies, earned_KB, strict=True):
            self.metrics.add_all(f"baseline/{each.label}", earned_B[~earned_B.isnan()])
        if values is None:
            return
        model_BR = torch.tensor(values)
        for each, earned_B in zip(self.policies, earned_KB, strict=True):
            self._compare(each, earned_B, model_BR[:, each.reward])

    def _compare(
        self, each: TrivialPolicy, earned_B: Float[Tensor, " B"], model_B: Float[Tensor, " B"]
    ) -> None:
        both_N2 = over_ranks(self.accelerator, torch.stack([earned_B, model_B], dim=1))
        trivial = self._add(f"{each.label} earns", both_N2[:, 0])
        model = self._add(f"{each.label} against", both_N2[:, 1])
        ahead = self._add(f"{each.label} ahead", both_N2[:, 0] - both_N2[:, 1])
        name = self.rewards.names[each.reward]
        self._alarm(
            f"baseline {each.label}",
            ahead.count >= PROMPTS and ahead.mean > 2 * ahead.standard_error,
            f"the trivial policy '{each.label}' earns {trivial.mean:.3f} of reward {name} on the "
            f"same prompts, the model {model.mean:.3f}: a rising reward would not show that it "
            "solves anything. Pay whole solutions only (no shaped credit), and start from a model "
            "that is above it, by SFT or by easier prompts",
        )

    def _add(self, name: str, values: Tensor) -> Recent:
        recent = self._recent.setdefault(name, Recent())
        recent.add(values)
        return recent

    def _alarm(self, kind: str, fires: bool, message: str) -> None:
        if fires and kind not in self._told:
            self._told.add(kind)
            if self.accelerator.is_main_process:
                logger.warning("%s; %s", message, SEE)
