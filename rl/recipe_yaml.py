"""Read a recipe's YAML and the command line's `key.sub=value` overrides.

The scalars are those of YAML 1.2, since 1.1 surprises in recipes: there `3e-6` is a string and
`save_strategy: no` is false. A key that is given twice is an error, not the last one silently.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import yaml

Section = dict[str, Any]


class RecipeError(ValueError):
    """Everything that is wrong with a recipe, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(self.problems)
        count = len(self.problems)
        super().__init__(lines if count == 1 else f"{count} mistakes in the recipe\n{lines}")


_TAG = "tag:yaml.org,2002:"
_SCALARS = {
    "bool": (r"true|false", "tf"),
    "int": (r"[-+]?(?:0|[1-9]\d*)", "-+0123456789"),
    "float": (
        r"[-+]?(?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\.inf)|\.nan",
        "-+.0123456789",
    ),
}


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, rule) for tag, rule in rules if tag == f"{_TAG}null"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key_node in keys:
            key = self.construct_object(key_node)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Quotes what either version of YAML would take for something else than a string."""


for _kind, (_pattern, _first) in _SCALARS.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(
            f"{_TAG}{_kind}", re.compile(f"^(?:{_pattern})$"), list(_first)
        )


def parse(text: str) -> Any:
    """One YAML document with the scalars described above."""
    return yaml.load(text, Loader=_Loader)  # a SafeLoader: it builds plain values only


def dump(document: Mapping[str, Any]) -> str:
    """The text that `parse` reads back as `document`."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def inline(value: Any) -> str:
    """A value on one line, as a recipe would have it."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=True, width=1e9)
    return text.removesuffix("\n").removesuffix("\n...")


def read(path: Path) -> Section:
    """A recipe file as a dictionary; RecipeError when it is none."""
    file = path
    if not path.exists() and path.parts[0] == "recipes":  # ours, from an installed wheel
        file = Path(__file__).parent.joinpath("_recipes", *path.parts[1:])
    if not file.is_file():
        recipes = sorted(str(other) for other in file.parent.glob("*.yaml"))
        there = f" There are: {', '.join(recipes)}." if recipes else ""
        raise RecipeError([f"{path}: no such recipe.{there}"])
    try:
        document = parse(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise RecipeError([f"{path}: {_yaml_problem(error)}"]) from error
    except UnicodeDecodeError as error:
        raise RecipeError([f"{path}: not a text file in UTF-8 ({error.reason})"]) from error
    if not isinstance(document, dict):
        raise RecipeError([f"{path}: a recipe is a mapping of sections (model:, task:, ...)"])
    return document


def _yaml_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return str(error)


def override(document: Section, assignments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Apply `key.sub=value` in place; return the keys that were set and what was wrong."""
    keys: list[str] = []
    problems: list[str] = []
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        try:
            if not equals or not all(key.split(".")):
                raise ValueError("an override is key.sub=value, as in trainer.learning_rate=1e-6")
            _assign(document, key.split("."), parse(text))
            keys.append(key)
        except yaml.YAMLError as error:
            problems.append(f"command line: {assignment}: {_yaml_problem(error)}")
        except ValueError as error:
            problems.append(f"command line: {assignment}: {error}")
    return keys, problems


def _assign(document: Section, path: list[str], value: Any) -> None:
    """Set one value; `task=gsm8k` on a section that is there replaces its name only."""
    *parents, last = path
    holder: Any = document
    for depth, part in enumerate(parents):
        at = _slot(holder, part, path[:depth])
        child = holder[at] if isinstance(holder, list) else holder.get(at)
        if child is None:
            child = {}
        elif isinstance(child, str) and depth < 2:
            child = {"name": child}  # `sampler: random` is short for `sampler: {name: random}`
        if not isinstance(child, dict | list):
            raise ValueError(f"{'.'.join(path[: depth + 1])} is {child!r}, not a section")
        holder[at] = child
        holder = child
    at = _slot(holder, last, parents)
    current = holder[at] if isinstance(holder, list) else holder.get(at)
    if isinstance(value, str) and isinstance(current, dict) and "name" in current:
        current["name"] = value
    else:
        holder[at] = value


def _slot(holder: Mapping[str, Any] | list[Any], part: str, parents: list[str]) -> Any:
    if not isinstance(holder, list):
        return part
    if part.isdecimal() and int(part) < len(holder):
        return int(part)
    where = ".".join(parents)
    raise ValueError(
        f"{where} is a list; name one of its entries, {where}.0 to {where}.{len(holder) - 1}"
    )
