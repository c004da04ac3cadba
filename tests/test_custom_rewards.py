"""Rewards of one's own from a recipe, in worker processes: hanging, crashing, lying, and well."""

import time
from pathlib import Path
from typing import Any

import pytest

from rewards.values import Failed, RewardError
from rl.answers import answer_reader
from rl.pooled_reward import PooledReward
from rl.reward_binding import bind_reward
from rl.reward_calls import RewardCalls, probe

ROWS = [{"id": str(i), "prompt": f"{i}+1=", "answer": str(i + 1)} for i in range(6)]
GRADERS = """
import asyncio, ctypes, os, signal, sys, time
from dataclasses import dataclass
from near import BONUS
from rewards import reads_answer

def right(completion, answer): return completion == answer
def setting(completion, answer="column", *, bonus=0.0): return len(answer) + bonus
def hangs_at_3(completion): return time.sleep(1000) if completion == "3" else 1
def crashes_at_3(completion): return ctypes.string_at(0) if completion == "3" else 1.0
def raises_at_3(completion): return 1 / (completion != "3")
def nan_at_3(completion): return float("nan") if completion == "3" else BONUS
def exits_at_3(completion): return sys.exit(0) if completion == "3" else 1.0
def parts(completion): return {"long": float(len(completion)), "none": None, "odd": True}
def skips_odd(completion): return None if int(completion) % 2 else 1.0
def text(completion): return "good"
async def slowly(completion):
    await asyncio.sleep(0.5)
    return float(completion)
async def async_mixed(completion):
    if completion == "2": await asyncio.sleep(1000)
    if completion == "3": raise KeyError("three")
    if completion == "4": time.sleep(1000)
    return 1.0
def many(completions): return [time.sleep(1000) if c == "3" else 10.0 for c in completions]
def with_many(completion): return time.sleep(1000) if completion == "3" else 10.0
with_many.batch = many
@dataclass(frozen=True, kw_only=True)
class Shorter:
    limit: int
    def __call__(self, completion): return None if len(completion) > self.limit else 1.0
class Refuses:
    def __init__(self, level: int = 0):
        if level < 3: raise ValueError("level is too low; use 3")
    def __call__(self, completion): return 1.0
def batch(prompts, completions, completion_ids, answer, trainer_state, log_extra, log_metric, **rest
):
    log_extra("seen", [f"{p}{c}" for p, c in zip(prompts, completions)])
    log_metric("steps", trainer_state.global_step)
    log_metric("pid", os.getpid())
    return [float(a == c) + len(ids) + sum(map(len, rest.values()))
            for a, c, ids in zip(answer, completions, completion_ids)]
async def async_batch(prompts, completions, **_):
    await asyncio.sleep(0.01)
    return [float(c) for c in completions]
def batch_hangs(completions, **_): time.sleep(1000)
@reads_answer
def reads_a_box(completion, answer, *, style="box", mode="strict"): return 0.0
def batch_short(completions, **_): return [1.0]
def tensors(completions, **_):
    import torch
    assert torch.ones(500, 500).mm(torch.ones(500, 500))[0, 0] == 500
    return torch.arange(len(completions))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(GRADERS)
    (tmp_path / "near.py").write_text("BONUS = 0.5\n")
    return tmp_path


def bound(folder: Path, name: str, **entry: Any) -> Any:
    problems: list[str] = []
    reward = bind_reward(
        {"name": f"mine.py:{name}", **entry}, "R", folder, lambda w, t: problems.append(f"{w}: {t}")
    )
    assert problems == []
    return reward.function


def refused(folder: Path, entry: Any) -> str:
    problems: list[str] = []
    assert bind_reward(entry, "R", folder, lambda w, t: problems.append(f"{w}: {t}")) is None
    return "; ".join(problems)


def graded(function: Any, **columns: Any) -> list[Any]:
    """Values for the completions 0 to 5; of a failure, its kind."""
    texts = [str(i) for i in range(6)]
    columns = {"answer": [row["answer"] for row in ROWS]} | columns
    values = function(prompts=["p"] * 6, completions=texts, **columns)
    return [value.kind if isinstance(value, Failed) else value for value in values]


NINE = {
    "hangs_at_3": "timeouts",
    "crashes_at_3": "crashes",
    "raises_at_3": "exceptions",
    "exits_at_3": "exceptions",
}


@pytest.mark.parametrize("name", NINE)
def test_a_completion_that_cannot_be_graded_costs_only_itself(folder: Path, name: str) -> None:
    function = bound(folder, name, timeout=1.0)
    assert isinstance(function, PooledReward)
    assert graded(function) == [1.0, 1.0, 1.0, NINE[name], 1.0, 1.0]


def test_values_of_every_kind(folder: Path) -> None:
    assert graded(bound(folder, "right"), answer=["0", "x", None, "3", "", "5"]) == [
        1.0, 0.0, None, 1.0, 0.0, 1.0,
    ]  # fmt: skip
    assert graded(bound(folder, "skips_odd")) == [1.0, None] * 3
    assert graded(bound(folder, "parts"))[0] == {"long": 1.0, "none": None, "odd": 1.0}
    with pytest.raises(RewardError, match="reward text returned 'good' for a completion"):
        graded(bound(folder, "text"))


def test_settings_are_never_columns(folder: Path) -> None:
    function = bound(folder, "setting", bonus=3)
    assert graded(function, answer=["ab"] * 6, bonus=[100.0] * 6) == [5.0] * 6
    assert graded(bound(folder, "setting"), answer=["ab"] * 6, bonus=[100.0] * 6) == [2.0] * 6
    assert graded(bound(folder, "setting", answer="abc"), answer=["ab"] * 6) == [3.0] * 6


def test_a_class_is_made_in_the_worker(folder: Path) -> None:
    assert graded(bound(folder, "Shorter", limit=0)) == [None] * 6
    assert refused(folder, {"name": "mine.py:Shorter"}) == (
        "R.limit: missing; an integer is required"
    )
    assert refused(folder, {"name": "mine.py:Refuses"}) == "R: level is too low; use 3"


def test_async_gradings_run_together_and_fail_apart(folder: Path) -> None:
    function = bound(folder, "slowly", workers=1)
    started = time.monotonic()
    assert graded(function) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert time.monotonic() - started < 2.5, "one after the other takes 3 s"
    mixed = bound(folder, "async_mixed", timeout=1.0)
    assert graded(mixed) == [1.0, 1.0, "timeouts", "exceptions", "timeouts", 1.0]


def test_a_batch_version_is_used_and_its_overrun_costs_one_completion(folder: Path) -> None:
    function = bound(folder, "with_many", timeout=1.0)
    assert graded(function) == [10.0, 10.0, 10.0, "timeouts", 10.0, 10.0]


def test_trls_call_gets_what_the_trainer_has_and_logs(folder: Path) -> None:
    function = bound(folder, "batch")
    calls = RewardCalls(["batch"], [function], [1.0])

    class State:
        def __init__(self) -> None:
            self.global_step, self.trainer = 7, object()

    found = calls(ROWS, ["1", "x", "3", "4", "5", "6"], [[1, 2]] * 6, State())
    assert [row[0] for row in found] == [3.0 + 6, 2.0 + 6, 9.0, 9.0, 9.0, 9.0]  # ids of 6 rows
    extra, metrics, _ = calls.take_logs()
    assert extra["seen"][:2] == ["0+1=1", "1+1=x"]
    assert metrics["steps"] == [7.0]
    assert metrics["pid"][0] in function.pool.processes()


def test_trls_call_async_with_tensors_and_late(folder: Path) -> None:
    assert graded(bound(folder, "async_batch")) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert graded(bound(folder, "tensors")) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert graded(bound(folder, "batch_hangs", timeout=0.5)) == ["timeouts"] * 6
    with pytest.raises(RewardError, match="reward batch_short returned 1 values for 6 completions"):
        graded(bound(folder, "batch_short"))


def test_the_answers_of_a_marked_grader_are_watched(folder: Path) -> None:
    """By its own style: that of its signature, or of the recipe."""
    text = r"<answer>6</answer> \boxed{7}"
    for settings, answer in (({}, "7"), ({"style": "tag"}, "6")):
        marked = bound(folder, "reads_a_box", **settings)
        place, read = answer_reader([bound(folder, "right"), marked])
        assert place == 1
        assert read is not None
        assert read(text).text == answer


@pytest.mark.parametrize(
    "entry",
    [{"name": "reward_model", "path": "x"}, {"name": "http_endpoint", "url": "http://localhost/"}],
)
def test_adapters_have_no_workers(folder: Path, entry: dict[str, str]) -> None:
    assert refused(folder, {**entry, "in_process": False}) == (
        f"R: {entry['name']!r} runs in the trainer's own process; leave out `in_process: false`"
    )


def test_in_process_is_in_the_trainer(folder: Path) -> None:
    function = bound(folder, "right", in_process=True)
    assert not isinstance(function, PooledReward)
    assert function([""], ["1"], answer=["1"]) == [True]
    problems: list[str] = []
    reward = bind_reward(
        {"name": "soft_format", "in_process": False},
        "R",
        folder,
        lambda *p: problems.append(str(p)),
    )
    assert problems == []
    assert reward is not None
    assert isinstance(reward.function, PooledReward)
    assert reward.function(prompts=["p"], completions=["x"]) == [0.0]


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({"timeout": 0}, "R.timeout: is 0.0; use a positive number"),
        ({"timeout": "1s"}, "R.timeout: expected a number, got '1s' (a string)"),
        ({"timeout": float("inf")}, "R.timeout: is inf; use a finite number"),
        ({"workers": 0}, "R.workers: is 0; use a positive number"),
        ({"workers": 1.5}, "R.workers: expected an integer, got 1.5 (a number)"),
        ({"memory_gib": -1}, "R.memory_gib: is -1.0; use a positive number"),
        ({"in_process": "yes"}, "R.in_process: expected true or false, got 'yes'"),
        (
            {"in_process": True, "timeout": 3},
            "R.timeout: 'mine.py:right' runs in the trainer's own process, which this does not "
            "limit; `in_process: false` runs it in worker processes",
        ),
        (
            {"nope": 3},
            "R.nope: unknown key. Known: answer, in_process, memory_gib, timeout, weight, workers.",
        ),
    ],
    ids=str,
)
def test_keys_of_an_entry(folder: Path, entry: dict[str, Any], what: str) -> None:
    assert refused(folder, {"name": "mine.py:right", **entry}) == what


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import time; time.sleep(1000)", "its import was not done after 3 s"),
        ("import os; os._exit(7)", "it ended with exit code 7"),
    ],
)
def test_an_import_that_hangs_or_crashes_is_told(
    tmp_path: Path, code: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rl.reward_binding.IMPORT_LIMIT", 3.0)
    (tmp_path / "bad.py").write_text(code + "\ndef f(completion): return 1.0\n")
    told = refused(tmp_path, "bad.py:f")
    assert told == (
        f"R: 'bad.py:f' cannot be imported in a worker process: {what}. Move what is slow or "
        "fragile into the function, or set `in_process: true` in its entry of `rewards:`"
    )


def test_threads_that_start_at_import(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import threading, time\n"
        "done = threading.Event()\n"
        "threading.Thread(target=done.wait, daemon=True).start()\n"
        "def f(completion): return float(threading.active_count())\n"
    )
    assert graded(bound(tmp_path, "f")) == [2.0] * 6


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (
            "hangs_at_3",
            "reward hangs_at_3 was not done within 1 s per completion for 1 of 2 completions; "
            "make it",
        ),
        ("crashes_at_3", r"reward crashes_at_3 crashed \(its process ended with exit code -11\)"),
        ("batch_hangs", "reward batch_hangs was not done within 1 s per call; make it faster, or"),
        ("nan_at_3", "reward nan_at_3 returned nan for 1 of 2 completions"),
    ],
)
def test_the_trial_call_survives_and_tells(folder: Path, name: str, what: str) -> None:
    rewards = RewardCalls([name], [bound(folder, name, timeout=1)], [1.0])
    rows = [{"prompt": "p", "completion": "3"}, {"prompt": "q", "completion": "1"}]
    with pytest.raises(RewardError, match=what):
        probe(rewards, rows)
