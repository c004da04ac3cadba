"""The published rewards of open-r1 (by hand) and TRL (against TRL's own functions)."""

import math
import time

import pytest
from trl.rewards import (
    accuracy_reward,
    get_cosine_scaled_reward,
    get_repetition_penalty_reward,
    get_soft_overlong_punishment,
    think_format_reward,
)

from rewards import PARITY
from rewards.parity_pool import POOL
from rewards.values import Unsettled


def chat(*texts: str) -> list[list[dict[str, str]]]:
    return [[{"role": "assistant", "content": text}] for text in texts]


def grade(name: str, *texts: str, **columns: object) -> list[float | None]:
    return PARITY[f"parity:{name}"](["?"] * len(texts), chat(*texts), **columns)


THOUGHT = "<think>\na\nb\n</think>\n<answer>\n7\n</answer>"


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (THOUGHT, 1.0),
        ("<think>\na\n</think>\n<answer>\n</answer>\n7\n</answer>", 1.0),
        ("<think>\na\n</think>\n<answer>\n7\n</answer>\nand more\n", 1.0),  # any line's end
        (THOUGHT.replace("b", "b\n</think>\n<think>\nc"), 1.0),  # several blocks (issue 359)
        (THOUGHT + " more", 0.0),
        (THOUGHT.replace("\n</answer>", "</answer>"), 0.0),
        (THOUGHT.removeprefix("<think>\n"), 0.0),  # prefilled
        ("<think>\n</think>\n<answer>\n7\n</answer>", 0.0),  # one newline cannot serve twice
        ("", 0.0),
    ],
)
def test_open_r1_format(text: str, score: float):
    assert PARITY["parity:open_r1_format"](text) == score


def test_open_r1_format_is_linear():
    started = time.process_time()
    text = "<think>\n" + "\n</think>\n<answer>\n" * 50_000
    assert PARITY["parity:open_r1_format"](text) == 0.0
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (THOUGHT, 1.0),
        ("\n</answer>\n<answer>\n\n</think>\n<think>\n", 1.0),  # order does not matter
        ("<think>\n", 0.25),
        (THOUGHT + "\n</answer>", 0.75),
    ],
)
def test_open_r1_tag_count(text: str, score: float):
    assert PARITY["parity:open_r1_tag_count"](text) == score


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("First,Second,Next,", 1.0),  # gamed
        ("Step 1: a\nStep 2: b", 2 / 3),
        ("1. a\n2. b\n3. c", 1 / 3),  # only the start of the text
        ("a\n- b\n* c", 2 / 3),
        ("because", 0.0),
    ],
)
def test_open_r1_reasoning_steps(text: str, score: float):
    assert PARITY["parity:open_r1_reasoning_steps"](text) == pytest.approx(score)


@pytest.mark.parametrize(
    ("text", "score"),
    [("a b c d", 0.0), ("a a a a", -0.5), ("A a a A", -0.5), ("ab", 0.0), ("", 0.0), ("aaaa", 0.0)],
)
def test_open_r1_repetition(text: str, score: float):
    assert PARITY["parity:open_r1_repetition"](text) == pytest.approx(score)


@pytest.mark.slow
def test_open_r1_accuracy_len_and_cosine():
    right, wrong = r"so \boxed{3}", r"so it must be \boxed{4}"
    assert grade(
        "open_r1_accuracy", right, wrong, right, right, solution=["$3$", "$3$", "3", ""]
    ) == [
        1.0,
        0.0,
        None,  # a gold without $ is not parsed
        None,
    ]
    n = [len(right), len(wrong), 60]
    padded = right.ljust(60)
    found = grade("open_r1_len", right, wrong, padded, solution=["$3$"] * 3)
    share = (n[1] - n[0]) / (n[2] - n[0])
    assert found == pytest.approx([0.5, min(0.0, 0.5 - share), -0.5])
    assert grade("open_r1_len", right, right, solution=["$3$"] * 2) == [0.0, 0.0]
    assert grade("open_r1_len", right, padded, solution=["3", "3"]) == [0.5, -0.5]
    cosine = grade("open_r1_cosine", right, wrong, right, solution=["$3$", "$3$", "3"], max_len=40)
    share = [(1 + math.cos(math.pi * length / 40)) / 2 for length in n]
    assert cosine == pytest.approx([0.5 + 0.5 * share[0], -0.5 - 0.5 * share[1], 1.0])
    # not clamped: twice the length is as good as none
    assert grade("open_r1_cosine", right.ljust(80), solution=["$3$"], max_len=40) == [1.0]


@pytest.mark.slow
def test_trl_accuracy_and_cosine_are_trls():
    cases = [
        (r"\boxed{\frac{1}{3}}", r"\frac{1}{3}"),
        (r"\boxed{3}", r"$3$"),
        (r"\boxed{3}", r"3-\sqrt{5}"),  # paid: the gold is read as its first number
        (r"\boxed{\frac43}", r"$\frac43$"),  # refused: "units" normalisation
        (r"\boxed{B}", r"\text{(B)}"),
        ("it is 3", "$3$"),
        (r"\boxed{4}", r"$3$"),
        (r"\boxed{3}", ""),
    ]
    texts, golds = zip(*cases, strict=True)
    theirs = accuracy_reward(chat(*texts), list(golds))
    ours = grade("trl_accuracy", *texts, solution=golds)
    assert ours == theirs
    assert ours[:4] == [1.0, 1.0, 1.0, 0.0]
    assert None in ours
    ids = [[1] * (30 * i) for i in range(len(cases))]
    theirs = get_cosine_scaled_reward(max_len=100)(chat(*texts), list(golds), ids)
    ours = grade("trl_cosine", *texts, solution=golds, completion_ids=ids, max_len=100)
    assert ours == [value if value is None else pytest.approx(value) for value in theirs]


@pytest.mark.slow
def test_what_hangs_trl_costs_the_limit_and_is_wrong(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(POOL, "limit", 2.0)
    tower = r"\boxed{9^{9^{9^{9^{9}}}}}"
    found = grade("trl_accuracy", tower, r"\boxed{3}", solution=["$3$", "$3$"])
    assert found == [0.0, 1.0]
    assert isinstance(found[0], Unsettled)  # counted as a time-out


@pytest.mark.parametrize(
    "text",
    [
        "<think>\na\n</think>\nb",
        "<think></think>",
        "<think>a<think>b</think>",
        "<think>a</think><think>b</think>",
        "<think>a\nb",
        "a</think>b",
        " <think>a</think>b",
        "<think>a</think>b</think>",
        "",
    ],
)
def test_trl_think_format_is_trls(text: str):
    assert [PARITY["parity:trl_think_format"](text)] == think_format_reward(chat(text))


def test_trl_lengths_are_trls():
    ids = [[1] * n for n in (0, 1, 79, 80, 81, 99, 100, 101, 500)]
    texts = [""] * len(ids)
    theirs = get_soft_overlong_punishment(max_completion_len=100, soft_punish_cache=20)(ids)
    settings = {"max_completion_len": 100, "soft_punish_cache": 20}
    ours = grade("trl_soft_overlong", *texts, completion_ids=ids, **settings)
    assert ours == pytest.approx(theirs)
    ids = [[1, 2, 3, 4], [5] * 5, [1, 2, 1, 2, 1], [1], [], [0, 0, 0, 7]]
    for size in (1, 2, 3):
        theirs = get_repetition_penalty_reward(ngram_size=size, max_penalty=-0.5)(ids)
        settings = {"ngram_size": size, "max_penalty": -0.5}
        ours = grade("trl_repetition", *[""] * len(ids), completion_ids=ids, **settings)
        assert ours == pytest.approx(theirs)


@pytest.mark.parametrize("name", ["trl_repetition", "open_r1_repetition"])
def test_a_penalty_is_no_bonus(name: str):
    arguments = (["?"], ["x"], [[1]]) if name.startswith("trl") else ("x",)
    with pytest.raises(ValueError, match="use 0 or less"):
        PARITY[f"parity:{name}"](*arguments, max_penalty=1.0)
