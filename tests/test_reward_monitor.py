"""Every alarm fires where it should, once, and stays silent beside it."""

import json
import logging
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

import rl.reward_monitor as module
import rl.trivial_policies as trivial_policies_module
from rewards import per_completion, reads_answer
from rl.answers import sameness
from rl.grading import Grading
from rl.metrics import Metrics
from rl.reward_calls import RewardCalls
from rl.rollout_schemes import Rollouts
from rl.rollouts import Completions
from rl.trivial_policies import earned, trivial_policies
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


@pytest.fixture
def grading() -> Grading:
    return new_grading()


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


def test_shares_of_a_step(grading: Grading) -> None:
    texts = [
        said(1), r"\boxed{2} or \boxed{3}", "no idea", "<answer>...</answer>", "<answer>4", said(4),
        said(5), said(6),
    ]  # fmt: skip
    logged = take_step(grading, texts, GOLDS)
    shares = {name: value for name, value in logged.items() if name.startswith("answer/")}
    assert shares == {
        "answer/ok": 5 / 8, "answer/no_answer": 1 / 8, "answer/template_echo": 1 / 8,
        "answer/truncated": 1 / 8, "answer/garbled": 0.0, "answer/several_boxes": 1 / 8,
        "answer/constant": 0.0,
    }  # fmt: skip
    assert 0 < logged["time/monitor"] < 1


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([1, 1, 2, 2], 0.0),  # every prompt its own
        ([1, 1, 1, 1], 1.0),
        ([1, 2, 1, 2], 0.0),  # half of each: no more than with an answer of its own
        ([1, 1, 1, 2], 0.5),  # 3/4 of the completions: (3/4 - 1/2) / (1/2)
        ([0, 0, 0, 0], 0.0),  # no answer is not an answer
    ],
)
def test_sameness(answers: list[int], expected: float) -> None:
    assert sameness(torch.tensor([7, 7, 8, 8]), torch.tensor(answers)) == pytest.approx(expected)


def test_sameness_of_one_prompt_is_unknown() -> None:
    assert sameness(torch.tensor([7, 7]), torch.tensor([1, 1])) is None


def test_prompts_count_alike_in_sameness() -> None:
    """6 completions of one prompt say a, 2 of the other b: the most is 1 prompt of 2."""
    assert sameness(torch.tensor([7] * 6 + [8] * 2), torch.tensor([1] * 6 + [2] * 2)) == 0.0


CONSTANT = "one and the same answer"


@pytest.mark.parametrize("text", [said(2), "4444"])  # a bare reply is an answer, too
def test_constant_outputs(text: str, grading: Grading, caplog) -> None:
    steps(grading, [text] * 8, GOLDS)
    assert caplog.text.count(CONSTANT) == 1


@pytest.mark.parametrize(
    ("texts", "golds"),
    [
        ([said(i // EACH) for i in range(8)], GOLDS),
        ([said(2)] * 8, ["2"] * 4),  # the same answer is right everywhere
        (["<answer>..."] * 8, GOLDS),  # no answer
        ([f"{i // EACH}?" for i in range(8)], GOLDS),
    ],
)
def test_no_constant_outputs(texts: list[str], golds: list[str], grading: Grading, caplog) -> None:
    steps(grading, texts, golds)
    assert CONSTANT not in caplog.text


def test_a_few_prompts_prove_nothing(grading: Grading, caplog) -> None:
    steps(grading, [said(2)] * 4, GOLDS[:2], count=3)
    assert CONSTANT not in caplog.text
    take_step(grading, [said(2)] * 4, GOLDS[:2])
    assert CONSTANT in caplog.text


UNREADABLE = "have no answer that the reward can read"


def test_unreadable_answers(caplog) -> None:
    steps(new_grading(), ["I do not know"] * 8, GOLDS)
    assert caplog.text.count(UNREADABLE) == 1
    caplog.clear()
    steps(new_grading(), ["I do not know"] * 6 + [said(1), said(2)], GOLDS)
    assert UNREADABLE not in caplog.text


def test_a_bare_reply_that_is_paid_is_no_unreadable_one(caplog) -> None:
    @reads_answer
    def bare(completion: str, answer: str) -> float:
        return float(completion == answer)

    bare.__name__ = "bare"
    steps(new_grading(bare), [gold for gold in GOLDS for _ in range(EACH)], GOLDS)
    assert UNREADABLE not in caplog.text


def test_prompts_count_once_in_a_comparison() -> None:
    """A prompt with three completions and one with one."""
    prompts, values = torch.tensor([9, 4, 9, 9]), torch.tensor([1.0, 5.0, 3.0, 2.0])
    assert module.by_prompt(prompts, values).tolist() == [5.0, 2.0]


LENGTH = "times as long as in the first"


def test_length_drift_is_measured_against_the_first_logs(grading: Grading) -> None:
    history = [{"loss": 1.0}, *({"completions/length": 10.0 + i} for i in (-2, -1, 0, 1, 2, 99))]
    logged = take_step(grading, ["x" * 20, "x" * 9] * 4, GOLDS, history=history)
    assert logged["completions/length_drift"] == pytest.approx(1.5)
    assert "completions/length_drift" not in take_step(
        grading, ["x"] * 8, GOLDS, history=history[:5]
    )


@pytest.mark.parametrize(("length", "fires"), [(21, True), (19, False), (6, False), (4, True)])
def test_length_alarm(length: int, fires: bool, grading: Grading, caplog) -> None:
    history = [{"completions/length": 10.0}] * 5
    for step in range(8):
        take_step(grading, [said("y" * length)[8 : 8 + length]] * 8, GOLDS, step, history)
    assert caplog.text.count(LENGTH) == int(fires)


def test_one_long_step_is_no_drift(grading: Grading, caplog) -> None:
    history = [{"completions/length": 10.0}] * 5
    for step in range(8):
        take_step(grading, ["y" * (40 if step == 5 else 10)] * 8, GOLDS, step, history)
    assert LENGTH not in caplog.text


# --- trivial policies


def always_2(rng: random.Random, answer: str) -> str:
    return said(2)


def random_answer(rng: random.Random, **columns: Any) -> str:
    return said(rng.choice("1234"))


def of_another_task(rng: random.Random, puzzle: str) -> str:
    return puzzle


def broken(rng: random.Random, answer: str) -> str:
    raise IndexError(answer)


POLICIES = {
    "always_2": always_2, "random": random_answer, "other": of_another_task, "broken": broken,
}  # fmt: skip


@pytest.fixture
def with_policies(monkeypatch) -> Grading:
    monkeypatch.setitem(module.BASELINES, "right", POLICIES)
    monkeypatch.setitem(trivial_policies_module.REWARDS, "right", right)
    return new_grading()


def test_what_trivial_policies_earn(with_policies: Grading) -> None:
    logged = take_step(with_policies, [said(1)] * 8, GOLDS)
    assert logged["baseline/always_2"] == 0.25
    assert logged["baseline/random"] in (0.0, 0.25, 0.5, 0.75, 1.0)
    assert "baseline/other" not in logged  # nothing of it was graded
    assert "baseline/broken" not in logged
    assert logged["rewards/right"] == 0.25


def test_trivial_policies_do_not_depend_on_the_rank(with_policies: Grading) -> None:
    rewards = with_policies.rewards
    rows = [{"id": str(i), "prompt": "p", "answer": str(i % 4)} for i in range(64)]
    keys = [(0, row["id"], 3, 0) for row in rows]
    policies = trivial_policies(rewards, module.BASELINES)
    random.seed(1)
    whole = earned(policies, rewards, rows, keys)
    random.seed(2)
    halves = [earned(policies, rewards, rows[h], keys[h]) for h in (slice(32), slice(32, 64))]
    assert torch.equal(torch.cat(halves, dim=1).nan_to_num(9), whole.nan_to_num(9))
    other = earned(policies, rewards, rows, [(1, *key[1:]) for key in keys])
    assert not torch.equal(other[1], whole[1])  # another run, another draw
    assert torch.equal(other[0], whole[0])
    assert 0.05 < whole[1].mean() < 0.5  # 64 draws of probability 1/4: 0.25 with sd 0.054


def test_grading_trivial_policies_leaves_no_trace_in_the_models_logs(monkeypatch) -> None:
    def tells(completions: list[str], answer: list[str], log_extra: Any, log_metric: Any, **_: Any):
        log_extra("seen", completions)
        log_metric("calls", 1.0)
        return [1.0 if "2" in c else math.inf for c in completions]

    tells.grader = right
    monkeypatch.setitem(module.BASELINES, "right", {"always_3": lambda rng, answer: said(3)})
    monkeypatch.setitem(trivial_policies_module.REWARDS, "right", right)
    AcceleratorState._reset_state(reset_partial_state=True)
    grading = Grading(RewardCalls(["tells"], [tells], [1.0]), Accelerator(cpu=True), Metrics())
    logged = take_step(grading, [said(2)] * 8, GOLDS)
    assert logged["rewards/tells/errors"] == 0
    assert "baseline/always_3" not in logged
    assert grading.rewards.take_logs()[0] == {}


AHEAD = "the trivial policy 'always_2' earns 0.250 of reward right on the same prompts, the model 0"


def test_a_trivial_policy_that_earns_more(with_policies: Grading, caplog) -> None:
    steps(with_policies, [said(9)] * 8, GOLDS, count=8)
    assert caplog.text.count(AHEAD) == 1


@pytest.mark.parametrize("texts", [[said(2)] * 8, [said(1 + i // EACH) for i in range(8)]])
def test_a_model_that_is_not_behind(texts: list[str], with_policies: Grading, caplog) -> None:
    """It earns as much as the constant, or everything."""
    steps(with_policies, texts, GOLDS, count=8)
    assert AHEAD[:30] not in caplog.text


def test_a_lead_within_the_noise_is_none(with_policies: Grading, caplog) -> None:
    """Behind by 1/8 on average, once ahead and once behind: no proof in two steps."""
    take_step(with_policies, [said(1), "", said(2), "", "", "", "", ""], GOLDS, 0)
    take_step(with_policies, ["", "", said(2), said(2), "", "", "", ""], GOLDS, 1)
    assert AHEAD[:30] not in caplog.text


def test_two_rewards_with_trivial_policies_are_told_apart(monkeypatch) -> None:
    @reads_answer
    def also(completion: str, answer: str) -> float:
        return 2.0 * right(completion, answer)

    for name, grader in (("right", right), ("also", also)):
        monkeypatch.setitem(module.BASELINES, name, {"always_2": always_2})
        monkeypatch.setitem(trivial_policies_module.REWARDS, name, grader)
    logged = take_step(new_grading(right, also), [said(1)] * 8, GOLDS)
    assert logged["baseline/right/always_2"] == 0.25
    assert logged["baseline/also/always_2"] == 0.5


# --- the rest


def test_time_outs(grading: Grading, caplog) -> None:
    for _ in range(4):
        grading.monitor.timeouts("slow", 1.0, 16)
        grading.monitor.timeouts("fast", 1.0, 32)
    assert caplog.text.count("6 % of the gradings of reward slow were stopped") == 1
    assert "reward fast" not in caplog.text


def test_the_log_of_completions_has_the_answers(grading: Grading, tmp_path: Path) -> None:
    grading.log_to(tmp_path)
    take_step(grading, [said(7), "?"], ["7"])
    grading.write_log(1)
    lines = (tmp_path / "step_000001_rank_0.jsonl").read_text().splitlines()
    found = [(e["answer"], e["answer_status"]) for e in map(json.loads, lines)]
    assert found == [("7", "ok"), (None, "no_answer")]


def test_a_reward_that_reads_no_answer_has_no_shares(caplog) -> None:
    def length(completion: str) -> float:
        return float(len(completion))

    caplog.set_level(logging.WARNING)
    grading = new_grading(length)
    logged = take_step(grading, ["same"] * 8, GOLDS)
    steps(grading, ["same"] * 8, GOLDS, count=8)
    assert not [name for name in logged if name.startswith(("answer/", "baseline/"))]
    assert CONSTANT not in caplog.text
