"""An entry of a recipe's `rewards:` list -> a function with TRL's call.

    rewards:
      - sudoku
      - {name: "mine.py:score", weight: 0.5, timeout: 2, bonus: 1}

`name`, `weight`, `in_process`, `timeout`, `workers` and `memory_gib` are the entry's own keys; all
others are settings of the function or class. A reward of the user's own runs in worker processes,
where it may hang or crash, and is imported there only; `in_process: true` runs it in the trainer.
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewards import WorkerPool, extract
from rewards.columns import Columns
from rewards.worker_pool import START_LIMIT, NotStarted
from rl.binding import Mismatch, Report, coerce, parameters
from rl.pooled_reward import PooledReward
from rl.resolve import find_plug_in, lookup
from rl.reward_function import as_reward, configure
from rl.reward_registry import ADAPTERS, known_rewards

PROCESS_KEYS = {"timeout": float, "workers": int, "memory_gib": float}
RESERVED = ("in_process", "memory_gib", "timeout", "weight", "workers")
IMPORT_LIMIT = START_LIMIT  # seconds
SECONDS = {"completion": 10.0, "call": 120.0}  # default of `timeout`


@dataclass(frozen=True, kw_only=True)
class BoundReward:
    """One reward of a recipe. name: what it is called in the logs."""

    name: str
    weight: float
    function: Callable[..., Any]


def bind_reward(entry: object, where: str, folder: Path, report: Report) -> BoundReward | None:
    """`name`, or `{name, weight, **settings}`; None after a report."""
    section = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(section, Mapping) or not isinstance(section.get("name"), str):
        report(where, f"a reward is a name or {{name: ..., weight: 1.0, ...}}, got {entry!r}")
        return None
    reference: str = section["name"]
    registry = known_rewards()
    own = reference not in registry
    name = reference.rpartition(":")[2] if own else reference
    weight = _number(section, "weight", float, 1.0, where, report)
    in_process = section.get("in_process", not own)
    if not isinstance(in_process, bool):
        report(f"{where}.in_process", f"expected true or false, got {in_process!r}")
        return None
    if weight is None:
        return None
    settings = {key: value for key, value in section.items() if key not in ("name", "weight")}
    settings.pop("in_process", None)
    bind = _in_process if in_process else _in_workers
    try:
        function = bind(reference, name, settings, registry, where, folder, report)
    except ValueError as error:
        report(where, str(error))
        return None
    return function and BoundReward(name=name, weight=weight, function=function)


def _in_process(
    reference: str,
    name: str,
    settings: dict[str, Any],
    registry: Mapping[str, Any],
    where: str,
    folder: Path,
    report: Report,
) -> Callable[..., Any] | None:
    target = lookup("reward", reference, registry, folder)
    if not callable(target):
        raise ValueError(f"{reference!r} is {target!r}, which cannot be called")
    known = parameters(target)
    for key in PROCESS_KEYS:
        if key in settings and key not in known:
            report(
                f"{where}.{key}",
                f"{reference!r} runs in the trainer's own process, which this does not limit; "
                "`in_process: false` runs it in worker processes",
            )
            return None
    reserved = ("weight", "in_process")
    function = configure(target, settings, where, report, reserved=reserved)
    if function is None:
        return None
    try:
        return as_reward(function)
    except ValueError as error:
        raise ValueError(f"{reference!r} {error}") from None


def _in_workers(
    reference: str,
    name: str,
    settings: dict[str, Any],
    registry: Mapping[str, Any],
    where: str,
    folder: Path,
    report: Report,
) -> PooledReward | None:
    if reference in ADAPTERS:
        raise ValueError(
            f"{reference!r} runs in the trainer's own process; leave out `in_process: false`"
        )
    if reference not in registry:
        find_plug_in(reference, registry, folder)
    limits: dict[str, float | None] = {
        "timeout": _number(settings, "timeout", float, SECONDS["completion"], where, report),
        "workers": _number(settings, "workers", int, 2, where, report),
        "memory_gib": _number(settings, "memory_gib", float, 4.0, where, report),
    }
    if None in limits.values():
        return None
    pool = WorkerPool(
        "rl.reward_worker:load",
        workers=int(limits["workers"] or 0),
        memory_gib=limits["memory_gib"] or 0.0,
        start_limit=IMPORT_LIMIT,
        warns=False,
        build={
            "reference": reference,
            "folder": str(folder.absolute()),
            "settings": {k: v for k, v in settings.items() if k not in PROCESS_KEYS},
            "name": name,
            "reserved": RESERVED,
        },
    )
    found = _described(pool, reference)
    for place, text in found["problems"]:
        told = f"{reference!r} {text}" if found.get("signature") else text
        report(f"{where}{place}", told)
    if found["problems"]:
        pool.close()
        return None
    columns = found["columns"]
    per = "call" if columns is None else "completion"
    limit = settings.get("timeout", SECONDS[per])
    reads = found["reads"]
    return PooledReward(
        name=name,
        pool=pool,
        limit=float(limit),
        columns=None if columns is None else Columns(**columns),
        together=bool(found["together"]),
        extraction=None if reads is None else functools.partial(extract, **reads),
    )


def _described(pool: WorkerPool, reference: str) -> dict[str, Any]:
    """What the workers found when they imported it."""
    try:
        (outcome,) = pool.run([("describe",)], limit=60.0)
    except NotStarted as error:
        pool.close()
        raise ValueError(
            f"{reference!r} cannot be imported in a worker process: {error.why}. Move what is slow "
            "or fragile into the function, or set `in_process: true` in its entry of `rewards:`"
        ) from None
    if outcome.status != "ok":
        pool.close()
        raise ValueError(f"{reference!r} cannot be used in a worker process: {outcome.detail}")
    found: dict[str, Any] = outcome.value
    return found


def _number(
    section: Mapping[str, Any],
    key: str,
    kind: type,
    default: float | int,
    where: str,
    report: Report,
) -> Any:
    """A key of the entry as a finite number, positive except for a weight; None after a report."""
    try:
        value = coerce(section.get(key, default), kind)
        if not math.isfinite(value):
            raise Mismatch(("", f"is {value}; use a finite number"))
        if value <= 0 and key != "weight":
            raise Mismatch(("", f"is {value}; use a positive number"))
    except Mismatch as error:
        report(f"{where}.{key}", str(error))
        return None
    return value
