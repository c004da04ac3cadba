"""From the command line's words to estimators and samplers, as in a recipe.

elbo                                   a name of the registry
'{name: elbo, samples: 4}'             with settings
my_file.py:MyEstimator                 your own class
'{name: "my_file.py:MyEstimator", strength: 2}'
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from rl.binding import bind
from rl.resolve import lookup

Thing = TypeVar("Thing")


def build(kind: str, text: str, registry: Mapping[str, Any], base: type[Thing]) -> Thing:
    """The estimator, sampler or task that `text` describes; ValueError says what is wrong."""
    try:
        section = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{kind} {text!r} is not YAML: {' '.join(str(error).split())}") from error
    if isinstance(section, str):
        section = {"name": section}
    if not isinstance(section, Mapping) or not isinstance(section.get("name"), str):
        raise ValueError(
            f"{kind} {text!r}: expected a name, my_file.py:MyClass or '{{name: ..., ...}}'"
        )
    problems: list[str] = []
    target: Any = lookup(kind, section["name"], registry, Path.cwd())
    if not callable(target):
        raise ValueError(f"{kind} {section['name']!r} is {target!r}, not a class")
    settings = {key: value for key, value in section.items() if key != "name"}
    built = bind(target, settings, kind, lambda where, told: problems.append(f"{where}: {told}"))
    if problems:
        raise ValueError("\n".join(problems))
    if not isinstance(built, base):
        raise ValueError(
            f"{kind} {section['name']!r} makes a {type(built).__name__}, which is not derived from "
            f"{base.__module__}.{base.__name__}"
        )
    return built


def build_all(
    kind: str, texts: list[str], registry: Mapping[str, Any], base: type[Thing]
) -> dict[str, Thing]:
    """Several of them, by what was written."""
    return {text: build(kind, text, registry, base) for text in texts}
