"""The YAML that recipes are written in."""

from pathlib import Path

import pytest

from rl import recipe_yaml
from rl.recipe_yaml import RecipeError, dump, parse, read

YAML_SCALARS = [
    ("3e-6", 3e-6), ("1e3", 1000.0), ("1.5", 1.5), (".5", 0.5), ("-2", -2), (".inf", float("inf")),
    ("no", "no"), ("on", "on"), ("true", True), ("null", None), ("~", None), ("010", "010"),
    ("12:30", "12:30"), ("2026-12-01", "2026-12-01"), ("1_000", "1_000"), ("'3e-6'", "3e-6"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), YAML_SCALARS)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    parsed = parse(text)
    assert (parsed, type(parsed)) == (value, type(value))
    assert parse(dump({"key": value})) == {"key": value}


def test_no_tag_builds_an_object() -> None:
    with pytest.raises(Exception, match="could not determine a constructor"):
        parse("!!python/object/apply:os.getcwd []")


def test_no_recipe_inherits_from_another() -> None:
    assert parse("a: &base {x: 1}\nb: {<<: *base}")["b"] == {"<<": {"x": 1}}


def test_the_recipes_of_an_installed_wheel_are_found(tmp_path: Path, monkeypatch) -> None:
    packaged = tmp_path / "rl" / "_recipes"
    packaged.mkdir(parents=True)
    (packaged / "tiny.yaml").write_text("task: gsm8k")
    monkeypatch.setattr(recipe_yaml, "__file__", str(tmp_path / "rl" / "recipe_yaml.py"))
    monkeypatch.chdir(tmp_path)
    assert read(Path("recipes/tiny.yaml")) == {"task": "gsm8k"}
    with pytest.raises(RecipeError, match=r"recipes/tinny.yaml: no such recipe. There are: .*tiny"):
        read(Path("recipes/tinny.yaml"))
