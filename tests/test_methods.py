"""Presets: what they expand to, and that each fits recipes of any length."""

import re
from pathlib import Path

import pytest

from rl.methods import METHODS, Method, expand, undecided
from rl.objectives import Preference
from rl.recipe import Recipe, RecipeError, load_recipe
from rl.recipe_checks import trainer_value

ROOT = Path(__file__).parents[1]
PUBLISHED = [
    "diffu_grpo", "unigrpo", "wd1", "wd1pp", "coupled_grpo", "vrpo", "spg", "gdpo", "bgpo", "espo",
    "ebpo", "d2_step_merge", "d2_any_order", "trace_rl", "cj_grpo", "mdpo", "agrpo", "just_grpo",
    "dmpo", "stable_drl", "egspo", "d_tree_rpo", "rldf", "mask_aware_pg", "dipod", "gdsd", "igpo",
]  # fmt: skip
PAIRS = """\
method: vrpo
model: {name: llada, path: GSAI-ML/LLaDA-8B-Instruct}
task: {name: preference_pairs, path: pairs.jsonl}
trainer: {output_dir: out}
"""
PRESET = {
    "estimator": {"name": "elbo", "samples": 2},
    "objective": {"name": "clipped", "beta": 1.0},
}


def test_the_published_methods_and_ours() -> None:
    assert list(METHODS) == [*PUBLISHED, "last_step_tree"]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_method_says_where_it_is_from(method: Method) -> None:
    assert re.fullmatch(r"arXiv:\d{4}\.\d{5}|this project", method.paper)
    assert method.repository is None or re.fullmatch(r"[\w-]+/[\w.-]+", method.repository)
    assert method.title
    assert method.notes
    assert all(note.endswith(".") and "\n" not in note for note in method.notes)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "vrpo"])
@pytest.mark.parametrize("recipe", ["tiny_cpu", "llada_8b_gsm8k_mean_field"])
def test_every_method_fits_every_recipe(recipe: str, method: str) -> None:
    """16 tokens in 4 steps, and 256 in 128 with blocks: the rest is the method's."""
    bound = load_recipe(ROOT / "recipes" / f"{recipe}.yaml", [f"method={method}"])
    assert bound.method == method
    preset = METHODS[method]
    assert bound.raw["estimator"] == preset.estimator
    assert bound.raw["objective"] == preset.objective
    assert bound.raw["advantage"] == preset.advantage
    assert bound.raw["rollout"] == (preset.rollout or {"name": "independent"})
    assert bound.sampler.rule == preset.sampler["name"]
    bound.sampler.validate(trainer_value(bound, "max_completion_length"))


def test_preferences_are_learned_from_pairs(tmp_path: Path) -> None:
    """What a recipe for written completions has too much is told."""
    path = tmp_path / "R.yaml"
    path.write_text(PAIRS)
    bound = load_recipe(path)
    assert (bound.sampler, bound.rewards, bound.advantage) == (None, (), None)
    assert bound.objective == Preference(beta_dpo=0.2)
    path.write_text(PAIRS + "rewards: [sudoku]\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert str(caught.value) == (
        f"{path}: rewards: leave this section out: rollout Recorded brings the rewards with the "
        "completions; they are in task preference_pairs or preference_labels, as in "
        "recipes/llada_8b_vrpo.yaml"
    )


@pytest.mark.parametrize("name", ["vrpo", "unigrpo", "gdpo", "ebpo", "trace_rl", "mask_aware_pg"])
def test_a_method_tells_which_numbers_no_text_gave(name: str) -> None:
    told = re.compile(r"are common values|are our reading|could not check")
    assert any(told.search(note) for note in METHODS[name].notes)


def test_a_recipe_wins_key_by_key() -> None:
    assert expand(PRESET, {"objective": {"beta": 0.5}}) == {
        "estimator": {"name": "elbo", "samples": 2},
        "objective": {"name": "clipped", "beta": 0.5},
    }
    assert expand(PRESET, {"estimator": "elbo"})["estimator"] == PRESET["estimator"]
    assert expand(PRESET, {"estimator": "mean_field"})["estimator"] == "mean_field"


def test_what_is_no_mapping_is_kept_for_the_binder_to_report() -> None:
    assert expand({"objective": PRESET["objective"]}, {"objective": 3}) == {"objective": 3}
    assert expand({"objective": PRESET["objective"]}, {"objective": None}) == {
        "objective": PRESET["objective"]
    }


def test_a_method_on_the_command_line_replaces_how_to_learn() -> None:
    document = {
        "task": "gsm8k",
        "method": "wd1",
        "estimator": "elbo",
        "objective": "clipped",
        "advantage": {"scale": "none"},
        "rollout": "tree",
        "sampler": {"name": "random", "steps": 4, "block_length": 2, "temperature": 0.5},
        "trainer": {"learning_rate": 1e-3},
    }
    assert undecided(document) == {
        "task": "gsm8k",
        "sampler": {"steps": 4, "block_length": 2},
        "trainer": {"learning_rate": 1e-3},
    }
    assert undecided({"sampler": "random"}) == {}


def written(folder: Path, *overrides: str) -> Recipe:
    path = folder / "R.yaml"
    path.write_text((ROOT / "recipes" / "tiny_cpu.yaml").read_text())
    return load_recipe(path, overrides)


def test_other_overrides_win_over_the_method(tmp_path: Path) -> None:
    recipe = written(tmp_path, "estimator.prompt_mask_prob=0", "method=diffu_grpo")
    assert recipe.raw["estimator"] == {"name": "mean_field", "prompt_mask_prob": 0}
    assert recipe.written["estimator"] == {"prompt_mask_prob": 0}
    assert recipe.trainer["num_generations"] == 8  # the file's
    assert recipe.trainer["num_iterations"] == 12  # the method's
    assert written(tmp_path).method is None
