"""Does the program in the completion pass the tests? It is run, in `rewards.sandbox`.

The tests run in one process and the program's functions in another; between them go arguments and
results, as builtin values (`sandboxing.plain_data`). So nothing that a program does in its own
process reaches the comparison: no exit before the asserts, no object that equals everything, no
changed builtin or checker, no printed mark of success. It never sees the tests, only the arguments.

Forms of tests, as columns of the data set
    HumanEval   test (defines check(candidate)), entry_point, starter_code (the prompt's code)
    MBPP        test_list (asserts, each a test), test_setup_code, test_imports
A result that is no builtin value fails its test, except for the types named in `extra_types`. A
function that changes its arguments does not change the test's, except with `in_place`.
"""

import functools
import logging
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from rewards import sandbox
from rewards.base import with_batch
from rewards.code_answer import programs
from rewards.sandbox import DEFAULT, Limits, SandboxError
from rewards.sandboxing import plain_data
from rewards.values import Failed, Unsettled

logger = logging.getLogger(__name__)

Ending = Literal[
    "passed", "failed", "no_code", "died", "timeout", "cpu", "memory", "processes", "disk",
    "output", "bad_test",
]  # fmt: skip
RISK = (
    "the reward unit_tests runs programs that the model has written. They run isolated, but no "
    "isolation is perfect: do it on a machine without secrets, and say so by execute_code: true "
    "(in the recipe: rewards: [{name: unit_tests, execute_code: true}], and task: {name: ..., "
    "execute_code: true} for an evaluation)"
)


@dataclass(frozen=True)
class Report:
    """What became of a program's tests.

    no_code: there is no Python in the completion. died: the program's process ended in between.
    bad_test: the test itself does not work. A limit that was passed is a status too.
    """

    status: Ending
    passed: int
    total: int
    detail: str = ""


def check_settings(
    *,
    execute_code: bool = False,
    wall_s: float = 10.0,
    cpu_s: float = 10.0,
    memory_mib: float = 512.0,
    workers: int = 2,
    extra_types: Sequence[str] = (),
    **_: Any,
) -> None:
    """Raise ValueError for settings that `unit_tests` refuses, before anything is run."""
    if execute_code is not True:
        raise ValueError(RISK)
    if workers < 1:
        raise ValueError(f"workers is {workers}; use at least 1")
    unknown = [name for name in extra_types if name not in plain_data.EXTRA]
    if unknown:
        raise ValueError(
            f"extra_types has {', '.join(unknown)}; allowed are {', '.join(plain_data.EXTRA)}"
        )
    Limits(wall_s=wall_s, cpu_s=cpu_s, memory_mib=memory_mib)


def _batch(completions: Sequence[str], **columns: Any) -> list[float | Failed | None]:
    """A program that breaks its sandbox costs no other its score."""
    settings = {key: columns.pop(key) for key in SETTINGS & columns.keys()}
    check_settings(**settings)
    rows: list[dict[str, Any]] = [
        {name: values[i] for name, values in columns.items()} for i in range(len(completions))
    ]

    def grade(i: int) -> float | Failed | None:
        try:
            return unit_tests(completions[i], **rows[i], **settings)
        except SandboxError as error:
            return Failed("crashes", f"had no sandbox for a program: {error}")

    with ThreadPoolExecutor(settings.get("workers", 2), "unit_tests") as threads:
        return list(threads.map(grade, range(len(completions))))


@with_batch(_batch)
def unit_tests(
    completion: str,
    test: str | None = None,
    test_list: Sequence[str] | None = None,
    entry_point: str | None = None,
    starter_code: str | None = None,
    test_setup_code: str | None = None,
    test_imports: Sequence[str] | None = None,
    prompt: Any = None,
    *,
    execute_code: bool = False,
    allow_weak_isolation: bool = False,
    shaped: bool = False,
    in_place: bool = False,
    extra_types: Sequence[str] = (),
    wall_s: float = 10.0,
    cpu_s: float = 10.0,
    memory_mib: float = 512.0,
    workers: int = 2,
) -> float | None:
    """1.0 if all tests pass, else 0.0; shaped: the share that does. None: the test is broken.

    prompt: read as `starter_code` where that is missing, if it is a text that defines entry_point.
    execute_code: must be true. allow_weak_isolation: run even where `sandbox.isolation()` is weak.
    wall_s, cpu_s, memory_mib: of the program and its tests together. workers: programs at a time.
    """
    check_settings(
        execute_code=execute_code,
        wall_s=wall_s,
        cpu_s=cpu_s,
        memory_mib=memory_mib,
        workers=workers,
        extra_types=extra_types,
    )
    tests = _tests(test, test_list)
    if tests is None:
        return None
    starter = starter_code or _starter(prompt, entry_point)
    report = grade_program(
        programs(completion, starter, entry_point),
        tests,
        entry_point=entry_point,
        starter=starter,
        setup="\n".join([*(test_imports or ()), test_setup_code or ""]),
        shaped=shaped,
        in_place=in_place,
        extra_types=extra_types,
        limits=Limits(wall_s=wall_s, cpu_s=cpu_s, memory_mib=memory_mib),
        allow_weak=allow_weak_isolation,
    )
    if report.status == "bad_test":
        logger.warning("a test does not work and is not graded: %s", report.detail)
        return None
    score = report.passed / report.total if shaped else float(report.status == "passed")
    if report.status in ("timeout", "cpu"):
        return Unsettled(score, Failed("timeouts", "ran a program as long as its limit"))
    return score


SETTINGS = frozenset(unit_tests.__kwdefaults__ or ())
setattr(unit_tests, "check_settings", check_settings)  # noqa: B010 - for the recipe's binding


def grade_program(
    readings: Sequence[str],
    tests: Sequence[str],
    *,
    entry_point: str | None = None,
    starter: str = "",
    setup: str = "",
    shaped: bool = False,
    in_place: bool = False,
    extra_types: Sequence[str] = (),
    limits: Limits = DEFAULT,
    allow_weak: bool = False,
) -> Report:
    """Run tests on the first of `readings` that compiles; see `unit_tests` for the rest."""
    if not readings:
        return Report("no_code", 0, len(tests), "no complete Python program")
    _tell_isolation()
    check = {
        "programs": list(readings),
        "tests": list(tests),
        "entry_point": entry_point,
        "starter": starter,
        "setup": setup,
        "shaped": shaped,
        "in_place": in_place,
        "extra": list(extra_types),
    }
    result, verdict = sandbox.run_checked(_host(), check, limits=limits, allow_weak=allow_weak)
    if verdict:
        return Report(verdict["status"], verdict["passed"], verdict["total"], verdict["detail"])
    if result.status in get_args(Ending):
        status: Any = result.status
        return Report(status, 0, len(tests), f"more {status} than allowed")
    logger.warning("the tests of a program ended without a verdict: %s", result)
    return Report("died", 0, len(tests), "the tests ended without a verdict")


@functools.cache
def _host() -> str:
    """What runs beside the program: two files as one text."""
    folder = Path(plain_data.__file__).parent
    data, host = ((folder / name).read_text() for name in ("plain_data.py", "model_host.py"))
    for line in ("from __future__ import annotations\n", "from plain_data import decode, encode\n"):
        host = host.replace(line, "")
    return data + host


@functools.cache
def _tell_isolation() -> None:
    logger.info("%s", sandbox.isolation())


def _tests(test: str | None, test_list: Sequence[str] | None) -> list[str] | None:
    if test is None and test_list is None:
        return None
    if isinstance(test_list, str):
        raise ValueError(f"column 'test_list' must be a list of asserts; got {test_list!r:.200}")
    found = ([] if test is None else [test]) + list(test_list or ())
    if not found or not all(text.strip() for text in found):
        raise ValueError(
            "columns 'test' and 'test_list' hold no test, or an empty one, which every program "
            f"would pass; got {test!r:.100} and {test_list!r:.100}"
        )
    return found


def _starter(prompt: Any, entry_point: str | None) -> str:
    if not isinstance(prompt, str) or entry_point is None:
        return ""
    defined = re.search(rf"^def {re.escape(entry_point)}\b", prompt, re.MULTILINE)
    return prompt if defined else ""
