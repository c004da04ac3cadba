"""Whether rewards still mean what they should: metrics of every step, and alarms told once a run.

    answer/...                what the answers look like, see rl/answers.py
    baseline/NAME             what a trivial policy earns, see rl/trivial_policies.py
    completions/length_drift  mean length of a completion by that of the first logs
    time/monitor              seconds that all this took

docs/rewards.md says what each alarm means and what to do. An alarm looks at the last few steps of
this process; the metrics depend on nothing but the step and the logs before it, so that a resumed
run logs what an uninterrupted one does.

Shapes: B rows of this rank, N of all ranks, P prompts, K trivial policies.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from accelerate import Accelerator
from jaxtyping import Bool, Float, Int
from torch import Tensor

from estimators import stable_seed
from rewards.baselines import BASELINES
from rewards.extraction import Extraction
from rl.answers import answer_reader, fingerprint, sameness, shares
from rl.gathered import over_ranks
from rl.metrics import Metrics
from rl.recent import STEPS, Recent
from rl.reward_calls import RewardCalls
from rl.rollout_schemes import Rollouts
from rl.trivial_policies import TrivialPolicy, earned, trivial_policies

logger = logging.getLogger(__name__)

PROMPTS = 8  # fewer prove nothing
CONSTANT = 0.5  # of `sameness`, beyond that of the right answers
FIRST_LOGS = 5  # whose mean length is the one to compare with
DRIFT = 2.0  # times as long, or as short
TIMEOUTS = 0.05  # share of gradings
UNREADABLE = 0.9  # share of completions without an answer
SEE = "see docs/rewards.md, 'Monitors and alarms' (told once a run)"


class RewardMonitor:
    """Looks at every rollout of a run. All ranks call it, with equally many rows."""

    def __init__(self, rewards: RewardCalls, accelerator: Accelerator, metrics: Metrics) -> None:
        self.rewards, self.accelerator, self.metrics = rewards, accelerator, metrics
        self.reader, self.read = answer_reader(rewards.functions)
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
        prompts = torch.tensor([stable_seed(*key[:3]) for key in rollouts.keys])
        if answers:
            paid_B = _rewards(self.reader, values, rollouts) > 0
            self._unreadable(answers, paid_B)
            self._constant(rollouts, answers, prompts)
        if self.policies:
            self._baselines(rollouts, values, prompts)
        self.metrics.add("time/monitor", time.perf_counter() - start)
        return {
            "answer": [each.text for each in answers],
            "answer_status": [each.status for each in answers],
        }

    def timeouts(self, name: str, late: float, count: int) -> None:
        """Told how many of the gradings of a reward were stopped for taking too long."""
        recent = self._add(f"timeouts of {name}", torch.tensor([late / count]).expand(count))
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
        drift_B = rollouts.completions.lengths.double().cpu() * len(first) / sum(first)
        self.metrics.add_all("completions/length_drift", drift_B)
        recent = self._add("length", drift_B)
        self._alarm(
            "length",
            recent.steps >= STEPS // 2 and not 1 / DRIFT < recent.mean < DRIFT,
            f"completions are now {recent.mean:.2g} times as long as in the first "
            f"{FIRST_LOGS} logs: read some of them, and if they pad (or say) nothing that is "
            "asked for, add the reward overlong or repetition, or stop paying for length",
        )

    def _unreadable(self, answers: Sequence[Extraction], paid_B: Bool[Tensor, " B"]) -> None:
        for name, share_B in shares(answers).items():
            self.metrics.add_all(name, share_B)
        unread_B = torch.tensor([each.text is None for each in answers]) & ~paid_B
        recent = self._add("unreadable", unread_B.double())
        self._alarm(
            "unreadable",
            recent.count >= PROMPTS and recent.mean > UNREADABLE,
            f"{100 * recent.mean:.0f} % of the completions have no answer that the reward can "
            "read (answer/... says why): ask for the form that it reads in the prompt, set its "
            "style, raise max_completion_length if they are truncated, or run SFT first",
        )

    def _constant(
        self, rollouts: Rollouts, answers: Sequence[Extraction], prompts: Int[Tensor, " B"]
    ) -> None:
        golds = [row.get("answer") for row in rollouts.rows]
        texts = rollouts.completions.texts
        prints = [
            [prompt, fingerprint(each, text), prompt if gold is None else stable_seed(str(gold))]
            for prompt, each, text, gold in zip(
                prompts.tolist(), answers, texts, golds, strict=True
            )
        ]
        prompt_N, answer_N, gold_N = over_ranks(self.accelerator, torch.tensor(prints)).unbind(1)
        same = sameness(prompt_N, answer_N)
        if same is None:
            return
        self.metrics.add("answer/constant", same)
        excess = same - (sameness(prompt_N, gold_N) or 0.0)
        recent = self._add("constant", torch.full((len(prompt_N.unique()),), excess))
        self._alarm(
            "constant",
            recent.count >= PROMPTS and recent.mean > CONSTANT,
            "most completions give one and the same answer to different prompts, far more often "
            "than it is right: the policy has stopped reading the prompt. Stop the run, look at "
            "what that answer earns, close that hole in the reward, and go on from a checkpoint "
            "before it with more KL (objective.beta) or a lower learning rate",
        )

    def _baselines(
        self,
        rollouts: Rollouts,
        values: Sequence[Sequence[float]] | None,
        prompts: Int[Tensor, " B"],
    ) -> None:
        earned_KB = earned(self.policies, self.rewards, rollouts.rows, rollouts.keys).double()
        for each, earned_B in zip(self.policies, earned_KB, strict=True):
            self.metrics.add_all(f"baseline/{each.label}", earned_B[~earned_B.isnan()])
        if values is None:
            return
        model_KB = torch.stack([_rewards(each.reward, values, rollouts) for each in self.policies])
        prompt_N = over_ranks(self.accelerator, prompts)
        both_KN = over_ranks(self.accelerator, torch.cat([earned_KB, model_KB]).T).T
        for each, earned_N, model_N in zip(self.policies, *both_KN.chunk(2), strict=True):
            both = ~(earned_N.isnan() | model_N.isnan())
            of_prompt = prompt_N[both]
            self._compare(
                each, by_prompt(of_prompt, earned_N[both]), by_prompt(of_prompt, model_N[both])
            )

    def _compare(
        self, each: TrivialPolicy, earned_P: Float[Tensor, " P"], model_P: Float[Tensor, " P"]
    ) -> None:
        trivial = self._add(f"{each.label} earns", earned_P)
        model = self._add(f"{each.label} against", model_P)
        ahead = self._add(f"{each.label} ahead", earned_P - model_P)
        name = self.rewards.names[each.reward]
        self._alarm(
            f"baseline {each.label}",
            ahead.count >= PROMPTS and ahead.mean > 2 * ahead.standard_error,
            f"the trivial policy '{each.label}' earns {trivial.mean:.3f} of reward {name} on the "
            f"same prompts, the model {model.mean:.3f}: until the model is above it, a rising "
            "reward does not show that it solves anything. If the reward pays for parts, pay whole "
            "solutions only; else take prompts that guessing cannot do, or start above it, by SFT",
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


def by_prompt(prompts: Int[Tensor, " N"], values: Float[Tensor, " N"]) -> Float[Tensor, " P"]:
    """The mean over each prompt's completions."""
    _, place_N = prompts.unique(return_inverse=True)
    total_P = values.new_zeros(len(prompts.unique())).scatter_add_(0, place_N, values)
    return total_P / place_N.bincount()


def _rewards(
    place: int, values: Sequence[Sequence[float]] | None, rollouts: Rollouts
) -> Float[Tensor, " B"]:
    """One reward of each completion; their total, where other completions were graded by name."""
    if values is None:
        return rollouts.rewards.double().cpu()
    return torch.tensor([each[place] for each in values], dtype=torch.float64)
