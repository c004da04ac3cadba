"""Names of the user's own: "package.module:attr" and "path/file.py:attr"."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rewards import REWARDS, with_batch
from rl.recipe import RecipeError, load_recipe
from rl.resolve import lookup, plug_in
from rl.reward_binding import BoundReward, bind_reward
from rl.reward_registry import known_rewards

MINE = """
from dataclasses import dataclass
from estimators import MeanField
from rl.models import MODELS

LIMIT = 3
SPEC = MODELS["llada"]

@dataclass(frozen=True, kw_only=True)
class Sharper(MeanField):
    power: float = 2.0

def score(completion, answer, bonus: float = 0.0):
    return float(completion == answer) + bonus

async def slow_score(completion):
    return float(len(completion))

def trl_reward(prompts, completions, scale: float = 1.0, **columns):
    return [scale * len(c) for c in completions]

@dataclass(frozen=True, kw_only=True)
class Shorter:
    limit: int

    def __call__(self, completion):
        return None if len(completion) > self.limit else 1.0

def neither(text, other):
    return 0.0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("x = 1\nraise RuntimeError('no licence')\n")
    (tmp_path / "syntax.py").write_text("def f(:\n")
    return tmp_path


def bound(folder: Path, entry: Any) -> BoundReward:
    problems: list[str] = []
    reward = bind_reward(entry, "rewards.0", folder, lambda w, t: problems.append(f"{w}: {t}"))
    assert problems == []
    assert reward is not None
    return reward


def refused(folder: Path, entry: Any) -> str:
    problems: list[str] = []
    assert bind_reward(entry, "R", folder, lambda w, t: problems.append(f"{w}: {t}")) is None
    (problem,) = problems
    return problem.replace(f"{folder}/", "")


def test_a_file_is_imported_once(folder: Path) -> None:
    first = plug_in("mine.py:score", folder)
    assert plug_in(f"{folder}/mine.py:score", Path("/")) is first


def test_a_file_is_looked_for_beside_the_recipe_then_here(folder: Path, monkeypatch) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.py").write_text("LIMIT = 4\n")
    monkeypatch.chdir(elsewhere)
    assert plug_in("mine.py:LIMIT", folder) == 3
    (folder / "mine.py").unlink()
    assert plug_in("mine.py:LIMIT", folder) == 4


def test_a_module_is_a_plug_in_and_a_name_is_not(folder: Path) -> None:
    assert lookup("task", "json:dumps", {}, folder) is __import__("json").dumps
    assert lookup("task", "known", {"known": 3}, folder) == 3


def test_graders_are_lifted_and_rewards_are_not(folder: Path) -> None:
    grader = bound(folder, {"name": "mine.py:score", "weight": 2, "bonus": 1})
    assert (grader.name, grader.weight) == ("score", 2.0)
    assert grader.function(["", ""], ["a", "b"], answer=["a", "a"]) == [2.0, 1.0]
    reward = bound(folder, {"name": "mine.py:trl_reward", "scale": 3})
    assert reward.function(prompts=["", ""], completions=["a", "bb"]) == [3.0, 6.0]
    instance = bound(folder, {"name": "mine.py:Shorter", "limit": 1})
    assert instance.function(["", ""], ["a", "bb"]) == [1.0, None]


def test_an_async_grader_becomes_an_async_reward(folder: Path) -> None:
    reward = bound(folder, {"name": "mine.py:slow_score", "in_process": True})
    assert asyncio.run(reward.function([""] * 3, ["a", "bb", ""])) == [1.0, 2.0, 0.0]


def batched(completions: list[str], k: int = 1) -> list[float]:
    return [10.0 * k for _ in completions]


@with_batch(batched)
def constant(completion: str, k: int = 1) -> float:
    return float(k)


def test_settings_reach_the_batch_version_too(folder: Path, monkeypatch) -> None:
    monkeypatch.setitem(REWARDS, "constant", constant)
    reward = bound(folder, {"name": "constant", "k": 3})
    assert reward.function(["", ""], ["a", "b"]) == [30.0, 30.0]
    assert reward.function.__name__ == "constant"


SENTENCES = {
    "parity:d1_gsm8": "R: unknown reward 'parity:d1_gsm8'; did you mean 'parity:d1_gsm8k'? Known: "
    f'{", ".join(sorted(known_rewards()))}. Your own: "my_file.py:my_reward".',
    "mine.py": f"R: unknown reward 'mine.py'. Known: {', '.join(sorted(known_rewards()))}. "
    'Your own: "mine.py:my_reward".',
    "mine.py:scor": "R: 'mine.py:scor': mine.py has no 'scor'; did you mean 'score'? It defines: "
    "LIMIT, MODELS, MeanField, SPEC, Sharper, Shorter, dataclass, neither, score, slow_score, "
    "trl_reward.",
    "nope.nada:f": "R: 'nope.nada:f' cannot be imported: ModuleNotFoundError: No module named "
    "'nope'",
    "broken.py:x": "R: 'broken.py:x' cannot be imported: RuntimeError: no licence (broken.py, "
    "line 2)",
    "syntax.py:f": "R: 'syntax.py:f' cannot be imported: SyntaxError: invalid syntax (syntax.py, "
    "line 1)",
    "mine.py:": "R: 'mine.py:' is not a plug-in: write 'package.module:attr' or "
    "'path/file.py:attr'",
    "mine.py:LIMIT": "R: 'mine.py:LIMIT' is 3, which cannot be called",
    "mine.py:neither": "R: 'mine.py:neither' takes (text, other); a reward takes (prompts, "
    "completions, **columns) and returns a list, a grader takes (completion, **columns) and "
    "returns one number",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_what_is_wrong_with_a_plug_in(folder: Path, name: str) -> None:
    assert refused(folder, name) == SENTENCES[name]


def test_settings_are_checked_against_the_signature(folder: Path) -> None:
    assert refused(folder, {"name": "mine.py:score", "bonsu": 1}) == (
        "R.bonsu: unknown key; did you mean 'bonus'? Known: answer, bonus, "
        "in_process, memory_gib, timeout, weight, workers."
    )
    assert refused(folder, {"name": "mine.py:score", "bonus": "x"}) == (
        "R.bonus: expected a number, got 'x' (a string)"
    )
    assert refused(folder, {"name": "mine.py:Shorter"}) == (
        "R.limit: missing; an integer is required"
    )
    assert refused(folder, {"weight": 1}) == (
        "R: a reward is a name or {name: ..., weight: 1.0, ...}, got {'weight': 1}"
    )


def test_a_missing_file_names_the_places(folder: Path, monkeypatch) -> None:
    here = folder / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert refused(folder, "none.py:f") == (
        "R: no file 'none.py'; looked for none.py and here/none.py"
    )


RECIPE = """
model: {name: "mine.py:SPEC", config: {hidden_size: 64}}
task: free_sudoku4
rewards: ["mine.py:score"]
sampler: {name: low_confidence, steps: 8}
estimator: {name: "mine.py:Sharper", power: 3}
objective: clipped
trainer: {output_dir: out}
"""


def test_plug_ins_work_in_every_section(folder: Path) -> None:
    (folder / "R.yaml").write_text(RECIPE)
    recipe = load_recipe(folder / "R.yaml")
    assert type(recipe.estimator).__name__ == "Sharper"
    assert recipe.estimator.power == 3.0
    assert recipe.model.name is plug_in("mine.py:SPEC", folder)


def test_rewards_of_one_name_are_told_apart_in_the_logs(folder: Path) -> None:
    (folder / "other.py").write_text("def score(completion): return 0.0\n")
    names = 'rewards: [xml_count, "mine.py:score", "other.py:score", xml_count]'
    (folder / "R.yaml").write_text(RECIPE.replace('rewards: ["mine.py:score"]', names))
    recipe = load_recipe(folder / "R.yaml")
    assert [r.name for r in recipe.rewards] == ["xml_count", "score", "score_2", "xml_count_2"]


def test_a_plug_in_of_the_wrong_kind_is_named(folder: Path) -> None:
    (folder / "R.yaml").write_text(RECIPE)
    wrong = ["estimator=mine.py:LIMIT", "task=collections:Counter", "model=mine.py:LIMIT"]
    with pytest.raises(RecipeError) as caught:
        load_recipe(folder / "R.yaml", wrong)
    assert list(caught.value.problems) == [
        "command line: model: 'mine.py:LIMIT' is 3, not a rl.models.ModelSpec",
        "command line: task: 'collections:Counter' makes a Counter, which is not derived from "
        "rl.tasks.base.Task",
        "command line: estimator: 'mine.py:LIMIT' is 3, not a class derived from "
        "estimators.base.Estimator",
    ]
