"""The files for `accelerate launch --config_file`, and that every shipped recipe binds."""

from pathlib import Path

import pytest
from accelerate.commands.config.config_args import load_config_from_file

from rl.recipe import load_recipe

RECIPES = Path(__file__).parents[1] / "recipes"
CONFIGS = {path.stem: path for path in sorted((RECIPES / "accelerate").glob("*.yaml"))}


def test_the_four_ways_to_launch() -> None:
    assert set(CONFIGS) == {"cpu", "ddp", "zero2", "zero3"}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_launch_file_is_one_of_accelerate_s(name: str) -> None:
    """MULTI_CPU would start a single process without a word."""
    config = load_config_from_file(str(CONFIGS[name]))
    kinds = {"cpu": "MULTI_GPU", "ddp": "MULTI_GPU", "zero2": "DEEPSPEED", "zero3": "DEEPSPEED"}
    assert config.distributed_type.value == kinds[name]
    assert config.use_cpu is (name == "cpu")
    assert config.num_processes == (2 if name == "cpu" else 8)
    assert config.mixed_precision == ("no" if name == "cpu" else "bf16")
    if name.startswith("zero"):
        assert config.deepspeed_config["zero_stage"] == int(name[-1])


@pytest.mark.parametrize("name", [path.name for path in sorted(RECIPES.glob("*.yaml"))])
def test_every_shipped_recipe_binds(name: str) -> None:
    recipe = load_recipe(RECIPES / name)
    assert recipe.trainer["output_dir"]
