"""Recipes: what binds, and the exact sentence for what does not."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from estimators import Elbo, MeanField
from rl.advantages import GroupAdvantage
from rl.methods import METHODS, expand
from rl.models.lora import LoraSpec
from rl.objectives import Clipped
from rl.recipe import Recipe, RecipeError, known_names, load_recipe
from rl.samplers import LowConfidence
from rl.sft_data import SftConfig
from rl.tasks import FreeSudoku4

GOOD = """
model: {name: llada, config: {hidden_size: 64}, lora: {r: 8, alpha: 16}}
task: free_sudoku4
rewards: [sudoku, {name: xml_count, weight: 0.5}]
sampler: {name: low_confidence, steps: 8, block_length: 16}
estimator: {name: mean_field, prompt_mask_prob: 0.3}
objective: {name: clipped, epsilon: 0.5, beta: 0.04}
trainer: {output_dir: out, num_generations: 4, max_completion_length: 16, learning_rate: 3e-6}
"""
OBJECTIVE = "objective: {name: clipped, epsilon: 0.5, beta: 0.04}"
SECTIONS = "model, task, rewards, sampler, estimator, objective, trainer"
MEAN_FIELD_KEYS = ", ".join(sorted(field.name for field in fields(MeanField)))


def load(folder: Path, text: str = GOOD, *overrides: str) -> Recipe:
    (folder / "R.yaml").write_text(text)
    return load_recipe(folder / "R.yaml", overrides)


def mistakes(folder: Path, text: str = GOOD, *overrides: str) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        load(folder, text, *overrides)
    return [problem.replace(f"{folder}/", "") for problem in caught.value.problems]


def without(section: str) -> str:
    return "".join(line for line in GOOD.splitlines(True) if not line.startswith(f"{section}:"))


def names(kind: str) -> str:
    return ", ".join(sorted(known_names(kind)))


def test_a_section_is_a_constructor_call(tmp_path: Path) -> None:
    recipe = load(tmp_path)
    assert recipe.kind == "grpo"
    assert recipe.task == FreeSudoku4()
    assert recipe.sampler == LowConfidence(steps=8, block_length=16)
    assert recipe.estimator == MeanField(prompt_mask_prob=0.3)
    assert recipe.objective == Clipped(epsilon=0.5, beta=0.04)
    assert recipe.advantage == GroupAdvantage()
    assert recipe.model.lora == LoraSpec(r=8, alpha=16)
    assert recipe.trainer["learning_rate"] == 3e-6
    assert [(r.name, r.weight) for r in recipe.rewards] == [("sudoku", 1.0), ("xml_count", 0.5)]


def test_an_sft_recipe_has_other_sections(tmp_path: Path) -> None:
    text = "kind: sft\nmodel: {name: llada, path: a/b}\ntask: gsm8k\ntrainer: {max_steps: 3}\n"
    recipe = load(tmp_path, text)
    assert (recipe.kind, recipe.estimator, recipe.rewards) == ("sft", None, ())
    assert recipe.trainer == {"max_steps": 3}
    assert recipe.sft == SftConfig()
    assert load(tmp_path, text + "sft: {t_min: 0.1}\n").sft == SftConfig(t_min=0.1)
    assert mistakes(tmp_path, text + "estimator: mean_field\n")[0].startswith(
        "R.yaml: estimator: unknown section. A sft recipe has model, task, trainer"
    )


def test_a_method_is_a_preset_that_the_recipe_may_change(tmp_path: Path) -> None:
    text = without("estimator").replace(OBJECTIVE, "")
    preset = load(tmp_path, text + "method: diffu_grpo\n")
    assert preset.estimator == MeanField(prompt_mask_prob=0.15)
    assert preset.objective == Clipped(epsilon=0.5, beta=0.04, kl="k3")
    assert preset.advantage == GroupAdvantage(scale="none")
    assert "method" not in preset.raw
    changed = load(tmp_path, text + "method: diffu_grpo\n", "objective.beta=0", "estimator=elbo")
    assert changed.objective == Clipped(epsilon=0.5, beta=0.0, kl="k3")
    assert changed.estimator == Elbo()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_binds(tmp_path: Path, method: str) -> None:
    text = without("estimator").replace(OBJECTIVE, "")
    if METHODS[method].sampler is None:  # completions and their rewards come from the data set
        unused = ("sampler:", "rewards:")
        text = "".join(line for line in text.splitlines(True) if not line.startswith(unused))
    recipe = load(tmp_path, f"{text}method: {method}\n")
    assert recipe.estimator is not None
    assert recipe.objective is not None


def test_expand_keeps_what_is_no_mapping_for_the_binder_to_report() -> None:
    preset = {"objective": {"name": "clipped", "beta": 1.0}}
    assert expand(preset, {"objective": 3}) == {"objective": 3}
    assert expand(preset, {"objective": None}) == preset
    assert expand(preset, {"objective": {"name": "other"}}) == {"objective": {"name": "other"}}


OVERRIDES = [
    ("trainer.learning_rate=1e-5", lambda r: r.trainer["learning_rate"] == 1e-5),
    ("trainer.save_strategy=no", lambda r: r.trainer.get("save_strategy") == "no"),
    ("estimator=elbo", lambda r: r.raw["estimator"]["name"] == "elbo"),
    ("estimator={name: elbo, samples: 2}", lambda r: r.estimator == Elbo(samples=2)),
    ("task.min_empty=3", lambda r: r.task == FreeSudoku4(min_empty=3)),
    ("rewards.1.weight=2", lambda r: r.rewards[1].weight == 2.0),
    ("rewards.0.weight=3", lambda r: r.rewards[0].weight == 3.0),
    ("rewards.0=gsm8k", lambda r: [x.name for x in r.rewards] == ["gsm8k", "xml_count"]),
    ("rewards=[math]", lambda r: [x.name for x in r.rewards] == ["math"]),
    ("model.lora=null", lambda r: r.model.lora is None),
    ("advantage.scale=none", lambda r: r.advantage == GroupAdvantage(scale="none")),
    ("evaluation.steps=[4, 8]", lambda r: r.evaluation.steps == (4, 8)),
]


@pytest.mark.parametrize(("override", "holds"), OVERRIDES, ids=[o for o, _ in OVERRIDES])
def test_overrides(tmp_path: Path, override: str, holds) -> None:
    assert not holds(load(tmp_path))
    if override == "estimator=elbo":
        text = GOOD.replace(", prompt_mask_prob: 0.3", "")
        assert holds(load(tmp_path, text, override))
    else:
        assert holds(load(tmp_path, GOOD, override))


ONE_MISTAKE = {
    "a key": (
        GOOD.replace("prompt_mask_prob", "prompt_mask_prb"),
        "R.yaml: estimator.prompt_mask_prb: unknown key; did you mean 'prompt_mask_prob'? "
        f"Known: {MEAN_FIELD_KEYS}.",
    ),
    "a name": (
        GOOD.replace("name: clipped", "name: cliped"),
        "R.yaml: objective: unknown objective 'cliped'; did you mean 'clipped'? "
        f'Known: {names("objectives")}. Your own: "my_file.py:MyObjective".',
    ),
    "a reward's name": (
        GOOD.replace("[sudoku", "[sudokku"),
        "R.yaml: rewards.0: unknown reward 'sudokku'; did you mean 'sudoku'? "
        f'Known: {names("rewards")}. Your own: "my_file.py:my_reward".',
    ),
    "no name": (
        GOOD.replace("{name: clipped, ", "{"),
        f"R.yaml: objective.name: missing; which objective? Known: {names('objectives')}.",
    ),
    "a type": (
        GOOD.replace("steps: 8", "steps: eight"),
        "R.yaml: sampler.steps: expected an integer, got 'eight' (a string)",
    ),
    "true is no number": (
        GOOD.replace("steps: 8", "steps: true"),
        "R.yaml: sampler.steps: expected an integer, got true",
    ),
    "a nested type": (
        GOOD.replace("r: 8", "r: 8.5"),
        "R.yaml: model.lora.r: expected an integer, got 8.5 (a number)",
    ),
    "a choice": (
        GOOD.replace("epsilon: 0.5", "level: tokn"),
        "R.yaml: objective.level: expected one of 'token', 'step', 'sequence', got 'tokn' "
        "(a string); did you mean 'token'?",
    ),
    "a missing key": (
        GOOD.replace("steps: 8, ", ""),
        "R.yaml: sampler.steps: missing; an integer is required",
    ),
    "a value that the class refuses": (
        GOOD.replace("beta: 0.04", "beta: -1"),
        "R.yaml: objective: beta is -1.0; use 0 for no KL term, or a positive weight",
    ),
    "a missing section": (
        without("sampler"),
        f"R.yaml: missing sections: sampler; a grpo recipe needs {SECTIONS}.",
    ),
    "missing estimator": (
        without("estimator"),
        f"R.yaml: missing sections: estimator; a grpo recipe needs {SECTIONS} "
        "(`method: NAME` gives estimator and objective, see --list methods).",
    ),
    "a section's name": (
        GOOD + "evaluatoin: {every: 3}\n",
        "R.yaml: evaluatoin: unknown section; did you mean 'evaluation'? "
        f"A grpo recipe has {SECTIONS}, rollout, advantage, evaluation.",
    ),
    "a section's form": (
        GOOD.replace("task: free_sudoku4", "task: [free_sudoku4]"),
        "R.yaml: task: expected a name or {name: ..., ...}, got ['free_sudoku4']",
    ),
    "no reward": (
        GOOD.replace("[sudoku, {name: xml_count, weight: 0.5}]", "[]"),
        "R.yaml: rewards: expected a list with at least one reward, got []",
    ),
    "a reward's weight": (
        GOOD.replace("weight: 0.5", "weight: half"),
        "R.yaml: rewards.1.weight: expected a number, got 'half' (a string)",
    ),
    "a trainer's key": (
        GOOD.replace("learning_rate", "learnin_rate"),
        "R.yaml: trainer.learnin_rate: unknown key; did you mean 'learning_rate'? It is...",
    ),
    "a refused trainer's key": (
        GOOD.replace("learning_rate", "epsilon"),
        "R.yaml: trainer.epsilon: cannot be set here: it belongs to the objective...",
    ),
    "an enumeration": (
        GOOD.replace("learning_rate: 3e-6", "lr_scheduler_type: cosin"),
        "R.yaml: trainer.lr_scheduler_type: expected one of 'linear', 'cosine'...",
    ),
    "a method": (
        GOOD + "method: difu_grpo\n",
        "R.yaml: method: unknown method 'difu_grpo'; did you mean 'diffu_grpo'? "
        f"Known: {', '.join(METHODS)}.",
    ),
    "a kind": (
        GOOD + "kind: grop\n",
        "R.yaml: kind: unknown kind 'grop'; did you mean 'grpo'? Known: grpo, sft.",
    ),
    "the same key twice": (
        GOOD + "task: gsm8k\n",
        "R.yaml: line 9, column 1: the key 'task' is given twice",
    ),
    "no YAML": (GOOD + "a: [\n", "R.yaml: line 10, column 1: expected the node content..."),
    "no mapping": ("- a\n", "R.yaml: a recipe is a mapping of sections (model:, task:, ...)"),
}


@pytest.mark.parametrize(("text", "sentence"), ONE_MISTAKE.values(), ids=ONE_MISTAKE)
def test_one_mistake_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """A sentence here that ends in ... is the beginning of a longer one."""
    (told,) = mistakes(tmp_path, text)
    start = sentence.removesuffix("...")
    assert told == sentence if start == sentence else told.startswith(start)


OVERRIDE_MISTAKES = {
    "foo": "command line: foo: an override is key.sub=value, as in trainer.learning_rate=1e-6",
    "a..b=1": "command line: a..b=1: an override is key.sub=value, as in "
    "trainer.learning_rate=1e-6",
    "rewards.2.weight=1": "command line: rewards.2.weight=1: rewards is a list; name one of its "
    "entries, rewards.0 to rewards.1",
    "sampler.steps.x=1": "command line: sampler.steps.x=1: sampler.steps is 8, not a section",
    "sampler.steps=[": "command line: sampler.steps=[: line 1, column 2: expected the node "
    "content, but found '<stream end>'",
    "sampler.step=9": "command line: sampler.step: unknown key; did you mean 'steps'? "
    "Known: block_length, steps, temperature, top_k, top_p.",
    "trainr.seed=9": "command line: trainr: unknown section; did you mean 'trainer'? "
    f"A grpo recipe has {SECTIONS}, rollout, advantage, evaluation.",
    "estimator=mean_feild": "command line: estimator: unknown estimator 'mean_feild'; did you mean "
    f"'mean_field'? Known: {names('estimators')}. Your own: \"my_file.py:MyEstimator\".",
}


@pytest.mark.parametrize("override", OVERRIDE_MISTAKES)
def test_the_command_line_is_blamed_for_its_own(tmp_path: Path, override: str) -> None:
    assert mistakes(tmp_path, GOOD, override) == [OVERRIDE_MISTAKES[override]]


def test_all_mistakes_are_told_together(tmp_path: Path) -> None:
    text = without("rewards").replace("free_sudoku4", "sudoku").replace("epsilon", "epsillon")
    with pytest.raises(RecipeError) as caught:
        load(tmp_path, text, "sampler.steps=x")
    lines = str(caught.value).splitlines()
    assert lines[0] == "4 mistakes in the recipe"
    starts = [line.replace(f"{tmp_path}/", "").split(" ", 4)[:4] for line in lines[1:]]
    assert [start[:3] for start in starts] == [
        ["R.yaml:", "missing", "sections:"],
        ["R.yaml:", "task:", "unknown"],
        ["command", "line:", "sampler.steps:"],
        ["R.yaml:", "objective.epsillon:", "unknown"],
    ]


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(GOOD)
    with pytest.raises(RecipeError) as caught:
        load_recipe(tmp_path / "tinny.yaml")
    assert str(caught.value) == (
        f"{tmp_path}/tinny.yaml: no such recipe. There are: {tmp_path}/tiny.yaml."
    )


def test_known_names_are_the_registries(tmp_path: Path) -> None:
    assert known_names("estimators")[0] == "mean_field"
    assert "diffu_grpo" in known_names("methods")
    with pytest.raises(ValueError, match="unknown list 'task'; did you mean 'tasks'"):
        known_names("task")


def test_integral_floats_are_integers_and_lists_are_tuples(tmp_path: Path) -> None:
    recipe = load(tmp_path, GOOD, "trainer.max_steps=1e3", "evaluation.steps=[4]")
    assert json.dumps(recipe.trainer["max_steps"]) == "1000"
    assert recipe.evaluation.steps == (4,)
