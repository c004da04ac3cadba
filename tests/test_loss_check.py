"""Sections that do not fit each other are told before a model is loaded."""

from pathlib import Path

import pytest

from rl.recipe import RecipeError, load_recipe
from rl.recipe_checks import check_recipe

RECIPE = Path(__file__).parents[1] / "recipes" / "tiny_cpu.yaml"
TREE = [
    "rollout={name: tree, branching: [4, 4]}",
    "trainer.num_generations=16",
    "estimator={name: trajectory, segments: null}",
]
MISFITS = {
    "a bound that is not estimated": (
        ["estimator={name: elbo}", "objective={name: policy_gradient, negative: mixture}"],
        "this estimator gives no upper bound",
    ),
    "steps of random masks": (
        ["estimator={name: elbo, samples: 2}", "objective={name: clipped, level: step}"],
        "the step level needs an estimator that scores each token in one view",
    ),
    "a clip of choices that are not scored": (
        ["estimator={name: trajectory}", "objective={name: clipped, epsilon_choice: 0.2}"],
        "epsilon_choice clips the choices of positions, but this estimator scores none",
    ),
    "a tree and whole sequences": (
        [*TREE, "objective={name: clipped, level: sequence}"],
        "these advantages are per token, but this objective",
    ),
    "a tree and a regression": ([*TREE, "objective=squared"], "these advantages are per token"),
    "a tree and reweighed completions": (
        [*TREE, "objective=weighted"],
        "weighs whole completions, but rollout tree credits",
    ),
    "a grid without passes": (
        ["estimator={name: random_mask, grid: true}", "trainer.fresh_masks=false"],
        "all passes share one",
    ),
    "segments that are not the parts": (
        [*TREE[:2], "rollout.parts=last_step", "estimator={name: trajectory, segments: 2}"],
        "2 segments of equal length are not the parts of this tree",
    ),
}


@pytest.mark.parametrize(("overrides", "message"), MISFITS.values(), ids=MISFITS)
def test_misfits_are_told_before_anything_is_loaded(overrides: list[str], message: str) -> None:
    recipe = load_recipe(RECIPE, overrides)
    with pytest.raises(RecipeError, match=message):
        check_recipe(recipe, files=False)


@pytest.mark.parametrize(
    "overrides",
    [
        TREE,
        [*TREE, "rollout.parts=last_step"],
        [*TREE[:2], "estimator={name: trajectory, segments: 2}"],
        [*TREE, "estimator.selection=1.0"],
        ["estimator={name: sandwich, block_length: 4}",
         "objective={name: policy_gradient, negative: mixture}"],
        ["method=last_step_tree", "trainer.num_generations=32"],
    ],
)  # fmt: skip
def test_what_fits_passes(overrides: list[str]) -> None:
    check_recipe(load_recipe(RECIPE, overrides), files=False)
