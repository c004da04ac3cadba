"""Steps of a run for the monitor of rewards: made-up completions, and what is logged of them."""

from collections.abc import Sequence
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from rewards import per_completion, reads_answer
from rl.grading import Grading
from rl.metrics import Metrics
from rl.reward_calls import RewardCalls
from rl.rollout_schemes import Rollouts
from rl.rollouts import Completions
from tests.tiny_models import EOS, sequences

PROMPTS, EACH = 4, 2  # of a step


@reads_answer
def right(completion: str, answer: str) -> float:
    """1 for the answer in tags, which the monitor reads too."""
    return float(f"<answer>{answer}</answer>" in completion)


def new_grading(*graders: Any) -> Grading:
    AcceleratorState._reset_state(reset_partial_state=True)
    graders = graders or (right,)
    names = [grader.__name__ for grader in graders]
    calls = RewardCalls(names, [per_completion(g) for g in graders], [1.0] * len(names))
    return Grading(calls, Accelerator(cpu=True), Metrics())


def take_step(
    grading: Grading,
    texts: Sequence[str],
    golds: Sequence[str],
    step: int = 0,
    history: Sequence[dict[str, float]] = (),
    **columns: Any,
) -> dict[str, float]:
    """One rollout of `EACH` completions a prompt; what it logs."""
    each, longest = len(texts) // len(golds), max(map(len, texts))
    rows = [
        {"id": str(i // each), "prompt": "p", "answer": golds[i // each]} | columns
        for i in range(len(texts))
    ]
    written = Completions(
        sequences=sequences([[*map(ord, text), *[EOS] * (longest - len(text))] for text in texts]),
        texts=list(texts),
        nfe=torch.ones(len(texts), dtype=torch.long),
    )
    rewards = grading(rows, written, None)
    rollouts = Rollouts(
        rows=rows,
        keys=[(0, row["id"], step, i % each) for i, row in enumerate(rows)],
        completions=written,
        advantages=torch.zeros(len(texts)),
        rewards=rewards,
    )
    grading.record(rollouts, step, history)
    return grading.metrics.take(lambda x: x)


def said(text: object) -> str:
    return f"<answer>{text}</answer>"


def steps(grading: Grading, texts: Any, golds: Sequence[str], count: int = 6) -> None:
    for step in range(count):
        take_step(grading, texts(step) if callable(texts) else texts, golds, step)


GOLDS = ["1", "2", "3", "4"]
