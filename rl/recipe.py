"""A recipe: one experiment as YAML, bound to objects before anything is loaded.

    recipe = load_recipe("recipes/tiny_cpu.yaml", ["trainer.learning_rate=1e-5"])

A section is a constructor call, `{name: elbo, samples: 2}` is `Elbo(samples=2)`, and a new setting
is a new dataclass field and nothing else. All mistakes are collected and told together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from estimators import ESTIMATORS, Estimator
from rl.advantages import GroupAdvantage
from rl.binding import located
from rl.evaluation import EvaluationConfig
from rl.methods import METHODS, undecided
from rl.models import MODELS
from rl.models.source import ModelSource
from rl.objectives import OBJECTIVES, Objective
from rl.recipe_binder import Kind, bind_sections
from rl.recipe_yaml import RecipeError, override, read
from rl.resolve import did_you_mean
from rl.reward_binding import BoundReward
from rl.reward_registry import known_rewards
from rl.rollout_schemes import ROLLOUTS, RolloutScheme
from rl.samplers import SAMPLERS, Sampler
from rl.sft_data import SftConfig
from rl.tasks import TASKS, Task

__all__ = ["BoundReward", "Recipe", "RecipeError", "known_names", "load_recipe"]

LISTS: dict[str, Mapping[str, Any]] = {
    "methods": METHODS,
    "estimators": ESTIMATORS,
    "objectives": OBJECTIVES,
    "samplers": SAMPLERS,
    "rollouts": ROLLOUTS,
    "models": MODELS,
    "tasks": TASKS,
    "rewards": known_rewards(),
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Bound sections; those that a kind of recipe does not have are None.

    raw: the sections as dictionaries, after overrides and presets.
    written: the same without the preset, which `method` names.
    trainer: keyword arguments of the trainer's config, checked against its fields.
    """

    path: Path
    kind: Kind
    raw: dict[str, Any]
    written: dict[str, Any]
    method: str | None
    model: ModelSource
    task: Task
    trainer: dict[str, Any]
    rewards: tuple[BoundReward, ...] = ()
    sampler: Sampler | None = None
    rollout: RolloutScheme | None = None
    estimator: Estimator | None = None
    objective: Objective | None = None
    advantage: GroupAdvantage | None = None
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    sft: SftConfig | None = None


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read, override and bind a recipe, or raise one RecipeError with all that is wrong.

    `method=NAME` among the overrides replaces whatever the file says of how to learn.
    """
    document = read(Path(path))
    if any(assignment.startswith("method=") for assignment in overrides):
        document = undecided(document)
    written = frozenset(document)
    keys, problems = override(document, overrides)

    def report(where: str, text: str) -> None:
        source = "command line" if _is_overridden(where, keys, written) else path
        problems.append(f"{source}: {located(where, text)}")

    kind, raw, bound = bind_sections(document, Path(path).parent, report)
    if problems:
        raise RecipeError(problems)
    method = document.pop("method", None)
    return Recipe(path=Path(path), kind=kind, raw=raw, written=document, method=method, **bound)


def _is_overridden(where: str, overridden: Sequence[str], written: frozenset[str]) -> bool:
    """Whether the command line is to blame for what is wrong at `where`."""
    if any(where == key or where.startswith(f"{key}.") for key in overridden):
        return True
    return where not in written and any(key.startswith(f"{where}.") for key in overridden)


def known_names(kind: str) -> list[str]:
    """The names that a registry has, in its own order; `kind` is a plural as in `--list tasks`."""
    if not kind:
        raise ValueError(f"which list? Known: {', '.join(LISTS)}.")
    if kind not in LISTS:
        near = did_you_mean(kind, LISTS)
        raise ValueError(f"unknown list {kind!r}{near} Known: {', '.join(LISTS)}.")
    return list(LISTS[kind])
