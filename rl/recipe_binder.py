"""The sections of a recipe -> objects; see `rl.recipe` for how to get there.

Every function reports what is wrong and goes on, so that one run tells all the mistakes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeGuard

from estimators import ESTIMATORS, Estimator
from rl.advantages import GroupAdvantage
from rl.binding import Report, bind, check_values, parameters
from rl.evaluation import EvaluationConfig
from rl.methods import METHODS, expand
from rl.models import MODELS, ModelSpec
from rl.models.source import ModelSource
from rl.objectives import OBJECTIVES, Objective
from rl.resolve import did_you_mean, lookup
from rl.reward_binding import BoundReward, bind_reward
from rl.rollout_schemes import ROLLOUTS, RolloutScheme
from rl.samplers import SAMPLERS, Sampler
from rl.sft_data import SftConfig
from rl.tasks import TASKS, Task

Kind = Literal["grpo", "sft"]

_NAMED: dict[str, tuple[Mapping[str, Any], type]] = {
    "task": (TASKS, Task),
    "sampler": (SAMPLERS, Sampler),
    "rollout": (ROLLOUTS, RolloutScheme),
    "estimator": (ESTIMATORS, Estimator),
    "objective": (OBJECTIVES, Objective),
}
_PLAIN = {"advantage": GroupAdvantage, "evaluation": EvaluationConfig, "sft": SftConfig}
_REQUIRED: dict[Kind, tuple[str, ...]] = {
    "grpo": ("model", "task", "rewards", "sampler", "estimator", "objective", "trainer"),
    "sft": ("model", "task", "trainer"),
}
_NOT_EVALUATED_THERE: Mapping[str, str] = dict.fromkeys(
    (
        "do_eval", "eval_strategy", "eval_steps", "eval_delay", "eval_on_start",
        "eval_accumulation_steps", "per_device_eval_batch_size", "num_generations_eval",
        "load_best_model_at_end", "metric_for_best_model", "greater_is_better",
    ),
    "held-out accuracy is measured by the `evaluation:` section, as evaluation.every says",
)  # fmt: skip
_OPTIONAL: dict[Kind, tuple[str, ...]] = {
    "grpo": ("rollout", "advantage", "evaluation"),
    "sft": ("sft", "sampler", "evaluation"),
}


def bind_sections(
    document: Mapping[str, Any], folder: Path, report: Report
) -> tuple[Kind, dict[str, Any], dict[str, Any]]:
    """(kind of recipe, its sections with the method's preset filled in, the bound sections)."""
    kind = document.get("kind", "grpo")
    if not _is_kind(kind):
        near = did_you_mean(str(kind), _REQUIRED)
        report("kind", f"unknown kind {kind!r}{near} Known: {', '.join(_REQUIRED)}.")
        return "grpo", {}, {}
    sections = _with_method(document, kind, report)
    sections.pop("provenance", None)  # a resolved recipe says where it came from
    allowed = (*_REQUIRED[kind], *_OPTIONAL[kind])
    for key in sections:
        if key not in (*allowed, "kind"):
            near = did_you_mean(str(key), (*allowed, "kind", "method"))
            report(str(key), f"unknown section{near} A {kind} recipe has {', '.join(allowed)}.")
    bound: dict[str, Any] = {}
    unused: Mapping[str, str] = {}
    if kind == "grpo":
        sections.setdefault("rollout", {"name": "independent"})
        bound["rollout"] = _bind("rollout", sections["rollout"], kind, folder, report)
        unused = _unused(bound["rollout"], sections)
    for key in unused:
        if document.get(key):
            report(key, f"leave this section out: {unused[key]}")
        sections.pop(key, None)
    _report_missing(sections, kind, unused, report)
    bound |= {
        key: _bind(key, sections[key], kind, folder, report)
        for key in allowed
        if key in sections and key != "rollout"
    }
    if kind == "sft":
        bound.setdefault("sft", SftConfig())
    elif "advantage" not in unused:
        bound.setdefault("advantage", GroupAdvantage())
    return kind, {key: sections[key] for key in allowed if key in sections}, bound


def _unused(scheme: RolloutScheme | None, sections: Mapping[str, Any]) -> dict[str, str]:
    """Sections that a rollout scheme makes pointless, and why."""
    unused: dict[str, str] = {}
    if scheme is None:
        return unused
    name = type(scheme).__name__
    if not scheme.writes and "evaluation" not in sections:
        unused["sampler"] = f"rollout {name} writes no completions, and there is no evaluation"
    if not scheme.grades:
        unused["rewards"] = f"rollout {name} brings the rewards with the completions"
        if scheme.brought_by:
            unused["rewards"] += f"; they are in {scheme.brought_by}"
    if not scheme.compares:
        unused["advantage"] = f"rollout {name} does not compare completions"
    return unused


def _is_kind(kind: object) -> TypeGuard[Kind]:
    return kind in _REQUIRED


def _with_method(document: Mapping[str, Any], kind: Kind, report: Report) -> dict[str, Any]:
    if kind != "grpo" or "method" not in document:
        return dict(document)
    sections = {key: value for key, value in document.items() if key != "method"}
    name = document["method"]
    if name not in METHODS:
        near = did_you_mean(str(name), METHODS)
        report("method", f"unknown method {name!r}{near} Known: {', '.join(METHODS)}.")
        return sections
    return expand(METHODS[name].sections, sections)


def _report_missing(
    sections: Mapping[str, Any], kind: Kind, unused: Iterable[str], report: Report
) -> None:
    required = [key for key in _REQUIRED[kind] if key not in unused]
    missing = [key for key in required if key not in sections]
    preset = {"estimator", "objective"} & set(missing)
    instead = (
        " (`method: NAME` gives estimator and objective, see --list methods)" if preset else ""
    )
    needs = f"a {kind} recipe needs {', '.join(required)}{instead}."
    if missing:
        report("missing sections", f"{', '.join(missing)}; {needs}")


def _bind(key: str, value: Any, kind: Kind, folder: Path, report: Report) -> Any:
    if key == "rewards":
        return _rewards(value, folder, report)
    named = key in _NAMED or key == "model"
    section = {"name": value} if named and isinstance(value, str) else value
    if section is None and not named:
        section = {}  # `advantage:` with nothing after it
    if not isinstance(section, Mapping):
        form = "a name or {name: ..., ...}" if named else "a mapping of settings"
        report(key, f"expected {form}, got {value!r}")
        return None
    if key == "model":
        return _model(section, folder, report)
    if key == "trainer":
        return _trainer(section, kind, report)
    if key in _PLAIN:
        return bind(_PLAIN[key], section, key, report)
    return _named(key, section, folder, report)


def _lookup(
    key: str, section: Mapping[str, Any], registry: Mapping[str, Any], folder: Path, report: Report
) -> Any:
    name = section.get("name")
    if not isinstance(name, str):
        report(f"{key}.name", f"missing; which {key}? Known: {', '.join(sorted(registry))}.")
        return None
    try:
        return lookup(key, name, registry, folder)
    except ValueError as error:
        report(key, str(error))
        return None


def _named(key: str, section: Mapping[str, Any], folder: Path, report: Report) -> Any:
    registry, base = _NAMED[key]
    target = _lookup(key, section, registry, folder, report)
    if target is None:
        return None
    name, wanted = section["name"], f"{base.__module__}.{base.__name__}"
    if not callable(target):
        report(key, f"{name!r} is {target!r}, not a class derived from {wanted}")
        return None
    settings = {field: value for field, value in section.items() if field != "name"}
    built = bind(target, settings, key, report)
    if built is not None and not isinstance(built, base):
        report(key, f"{name!r} makes a {type(built).__name__}, which is not derived from {wanted}")
    return built


def _model(section: Mapping[str, Any], folder: Path, report: Report) -> ModelSource | None:
    spec = _lookup("model", section, MODELS, folder, report)
    if spec is not None and not isinstance(spec, ModelSpec):
        report("model", f"{section['name']!r} is {spec!r}, not a rl.models.ModelSpec")
        spec = None
    own = spec is not None and ":" in section["name"]
    name = spec if own else str(section.get("name"))
    source = bind(ModelSource, {**section, "name": name}, "model", report)
    return source if spec is not None else None


def _rewards(entries: Any, folder: Path, report: Report) -> tuple[BoundReward, ...]:
    if not isinstance(entries, list) or not entries:
        report("rewards", f"expected a list with at least one reward, got {entries!r}")
        return ()
    bound = [bind_reward(entry, f"rewards.{i}", folder, report) for i, entry in enumerate(entries)]
    times = Counter[str]()
    rewards: list[BoundReward] = []
    for reward in filter(None, bound):
        times[reward.name] += 1  # "a.py:score" beside "b.py:score" is score_2 in the logs
        again = f"_{times[reward.name]}" if times[reward.name] > 1 else ""
        rewards.append(replace(reward, name=reward.name + again))
    return tuple(rewards)


def _trainer(section: Mapping[str, Any], kind: Kind, report: Report) -> dict[str, Any] | None:
    config, refused = trainer_config(kind)
    for key in section:
        if key in refused:
            report(f"trainer.{key}", f"cannot be set here: {refused[key]}")
    rest = {key: value for key, value in section.items() if key not in refused}
    known = {key: field for key, field in parameters(config).items() if key not in refused}
    return check_values(rest, known, "trainer", report)


def trainer_config(kind: Kind) -> tuple[type, Mapping[str, str]]:
    """The config class behind `trainer:`, and why some of its fields may not be set."""
    if kind == "grpo":  # imported late: TRL takes seconds, and `--list` does not need it
        from rl.grpo_config import REFUSED, DiffusionGRPOConfig

        return DiffusionGRPOConfig, {**REFUSED, **_NOT_EVALUATED_THERE}
    from transformers import TrainingArguments

    return TrainingArguments, _NOT_EVALUATED_THERE
