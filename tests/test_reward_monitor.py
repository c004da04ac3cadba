"""Every alarm fires where it should, once, and stays silent beside it."""

import json
import logging
from pathlib import Path

import pytest
import torch

import rl.reward_monitor as module
from rewards import reads_answer
from rl.answers import sameness
from rl.grading import Grading
from tests.reward_steps import EACH, GOLDS, new_grading, said, steps, take_step


@pytest.fixture
def grading() -> Grading:
    return new_grading()


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
