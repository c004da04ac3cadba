"""What a recipe does, told without loading a model: `python -m rl.train --explain RECIPE`."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from estimators import Estimator
from rl.costs import phases, training_shape
from rl.methods import METHODS
from rl.pairs import exact_estimators
from rl.recipe import Recipe
from rl.recipe_checks import check_recipe
from rl.recipe_yaml import inline
from rl.rollout_schemes import Independent
from rl.samplers import SAMPLERS, Sampler

_SECTIONS = ("sampler", "rollout", "estimator", "objective", "advantage", "trainer")
_KINDS = {
    "exact": "the log-probability",
    "exact in expectation": "an unbiased estimate of the log-probability",
    "lower and upper bound": "a lower and an upper bound of the log-probability",
    "surrogate": "a surrogate for the log-probability",
}
_ALWAYS = ("num_generations", "num_iterations", "max_completion_length")  # of the trainer's keys

# what else shapes a gradient: clipping and passes, scaled or cut advantages, hints
_UNBIASED = "its gradient is unbiased, until advantages are scaled and ratios leave 1"


def explanation(recipe: Recipe) -> RenderableType:
    """The expansion of the method, what is estimated, and what a completion costs."""
    check_recipe(recipe, files=False)
    length = training_shape(recipe).shape.length
    parts = [
        *_heading(recipe),
        _title("Settings"),
        _settings(recipe),
        _title("What is estimated"),
        _items(_estimate(recipe, length)),
        _title("Forward passes per completion"),
        _costs(recipe),
    ]
    return Group(*parts)


def _heading(recipe: Recipe) -> list[RenderableType]:
    if recipe.method is None:
        return [_title(f"{recipe.path}: no method, its sections are written out")]
    method = METHODS[recipe.method]
    source = f"{method.title}, {method.paper}"
    if method.published:
        code = f"github.com/{method.repository}" if method.repository else "no code known to us"
        source += f", {code}"
    return [
        _title(f"{recipe.path}: method {recipe.method}"),
        _items([source, *method.notes]),
    ]


def _settings(recipe: Recipe) -> Table:
    """Every key that the method or the recipe sets, and which of them did."""
    table = _table("section", "key", "value", "from")
    preset = METHODS[recipe.method].sections if recipe.method else {}
    for section in _SECTIONS:
        offered, given = _mapping(preset.get(section)), _mapping(recipe.written.get(section))
        label = section
        for key, value in _mapping(recipe.raw.get(section)).items():
            ours = key in given and (section != "trainer" or key in _ALWAYS)
            if ours or key in offered:
                table.add_row(label, key, inline(value), _source(key, given, offered))
                label = ""
    return table


def _source(key: str, given: Mapping[str, Any], offered: Mapping[str, Any]) -> str:
    if key not in given:
        return "method"
    if key not in offered:
        return "recipe"
    if given[key] == offered[key]:
        return "recipe, as the method"
    return f"recipe; the method has {inline(offered[key])}"


def _mapping(section: Any) -> Mapping[str, Any]:
    if isinstance(section, str):
        return {"name": section}
    return section if isinstance(section, Mapping) else {}


def _estimate(recipe: Recipe, length: int) -> list[str]:
    estimator, scheme = recipe.estimator, recipe.rollout
    assert estimator is not None
    assert scheme is not None
    name = _mapping(recipe.raw["estimator"])["name"]
    said = [f"{name} gives {_kind(estimator)} of {estimator.scores}; level: {estimator.level}."]
    if not isinstance(scheme, Independent):
        said.append(f"Rollouts: {scheme.changes} ({scheme.paper}).")
    if recipe.sampler is None or not scheme.writes or scheme.rows_per_completion > 1:
        return said
    return [*said, *_pair(estimator, recipe.sampler, length)]


def _kind(estimator: Estimator) -> str:
    """What it gives with these settings: a merged trajectory, for one, is no exact one."""
    every = [sampler(steps=1).decoding(1) for sampler in SAMPLERS.values()]
    kind = estimator.estimates
    if kind.startswith("exact") and not any(map(estimator.unbiased_for, every)):
        kind = "surrogate"
    return _KINDS.get(kind, f"a {kind} of the log-probability")


def _pair(estimator: Estimator, sampler: Sampler, length: int) -> list[str]:
    decoding = sampler.decoding(length)
    support = ("top_k", sampler.top_k), ("top_p", sampler.top_p)
    cut = "".join(f", {key} {value}" for key, value in support if value is not None)
    written = (
        f"Completions are written by {sampler.rule} decoding: {length} tokens in {sampler.steps} "
        f"steps at temperature {sampler.temperature}{cut}."
    )
    if estimator.exact_for(decoding):
        return [written, f"The estimate is their exact log-probability: {_UNBIASED}."]
    if estimator.unbiased_for(decoding):
        return [
            written,
            f"In the mean, the estimate is their log-probability: {_UNBIASED}.",
        ]
    exact = exact_estimators(sampler, length)
    instead = " or ".join(inline(section) for section in exact)
    return [
        written,
        "The estimate is not their log-probability: a biased gradient.",
        f"Exact: estimator: {instead}" if exact else "No estimator is exact for this sampler.",
    ]


def _costs(recipe: Recipe) -> Table:
    table = _table("phase", "how", "forwards", "with backward")
    every = phases(recipe)
    for phase in every:
        backward = str(phase.forwards) if phase.backward else ""
        table.add_row(phase.name, phase.why, str(phase.forwards), backward)
    total = sum(phase.forwards for phase in every)
    trained = sum(phase.forwards for phase in every if phase.backward)
    table.add_row("total", "", str(total), str(trained), style="bold")
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 2), header_style="dim")
    for column in columns:
        number = column in ("forwards", "with backward")
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _title(text: str) -> Padding:
    return Padding(Text(text, style="bold"), (1, 0, 0, 0), expand=False)


def _items(texts: list[str]) -> Table:
    grid = Table.grid(padding=(0, 1))
    for text in texts:
        grid.add_row("-", Text(text))
    return grid
