"""Try a reward on cases that it must get right, before anything is trained with it.

    python -m rewards.validate CASES.jsonl [--reward auto | NAME | file.py:function]

Prints the cases that it pays and should not (false positives), refuses and should pay (false
negatives), hangs on or fails on, and what a grading costs. See rewards/cases.py for the format.
"""

import argparse
import inspect
import json
import logging
import math
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewards import REWARDS
from rewards.case_grading import columns_needed, find_reward, with_solution
from rewards.cases import Case, read_cases
from rewards.extraction import check_style
from rewards.verdict_report import as_json, as_text
from rewards.verdicts import judge

# tasks that go by another name than their reward
BY_TASK = {"format": "tag_format", "math500": "math", "sudoku4": "sudoku"}
# rewards of a recipe that are classes
CLASSES = {
    "http_endpoint": "rewards.http_endpoint:HttpEndpoint",
    "reward_model": "rl.reward_model:RewardModel",
}

EXITS = """exit codes:
  0  every case is right, except contested ones (with --count-contested: every case)
  1  a case is wrong: a false positive, a false negative, a hang or an error
  2  the cases or the reward cannot be used; nothing was run

The format of the cases, with examples: docs/rewards.md. A case with "contested": true in `extra`
is a matter of policy; it is reported in a section of its own and changes the exit code only with
--count-contested."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    logging.getLogger("rewards").addHandler(logging.NullHandler())  # the report tells of hangs
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # an id may hold what a terminal cannot show
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore
    try:
        cases = read_cases(options.cases)
        rewards = [reward_of(case, options.reward) for case in cases]
        _check(cases, rewards)
        settings = {"mode": options.mode} | _settings(options.set, rewards)
        _check_output(options.json)
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    start = time.perf_counter()
    verdicts = judge(
        cases, rewards, settings=settings, limit=options.limit, workers=options.workers
    )
    seconds = time.perf_counter() - start
    sys.stdout.write(as_text(verdicts, seconds, options.workers))
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(verdicts), indent=1) + "\n", encoding="utf-8")
    wrong = [v for v in verdicts if v.status != "right"]
    return int(any(options.count_contested or not v.case.contested for v in wrong))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rewards.validate",
        description="Run cases with known scores through a reward, in processes that can be "
        "killed; print false positives, false negatives, hangs, errors and cost.",
        epilog=EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", type=Path, metavar="CASES.jsonl", help="one JSON object a line")
    parser.add_argument(
        "--reward",
        default="auto",
        metavar="NAME",
        help="a registered reward, 'file.py:function' or 'package.module:function'; "
        "auto (the default): the registered reward that each case's task names",
    )
    parser.add_argument(
        "--mode",
        choices=("strict", "lenient"),
        default="strict",
        help="how to read answers, where the reward has such a setting: strict as in training "
        "(the default), lenient as in evaluation",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the reward, as in a recipe, such as style=box or execute_code=true; "
        "may be repeated",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the result there")
    parser.add_argument(
        "--limit",
        type=_positive,
        default=10.0,
        metavar="SECONDS",
        help="a grading that takes longer is a hang (10; a case's own extra.max_seconds wins)",
    )
    parser.add_argument(
        "--workers", type=_count, default=2, metavar="N", help="processes that grade (2)"
    )
    parser.add_argument(
        "--count-contested",
        action="store_true",
        help="let contested cases decide the exit code too",
    )
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, got {text}")
    return value


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 256:
        raise argparse.ArgumentTypeError(f"must be from 1 to 256, got {text}")
    return value


def reward_of(case: Case, asked: str = "auto") -> str:
    """The name of the reward for a case; ValueError if no registered one is for its task."""
    if asked != "auto":
        return CLASSES.get(asked, asked)
    name = BY_TASK.get(case.task, case.task)
    if case.task == "format" and re.search(r"\bbox", case.kind):
        name = "boxed_format"
    if name in REWARDS:
        return name
    known = sorted(REWARDS.keys() | BY_TASK.keys())
    raise ValueError(
        f"line {case.line}: no registered reward for the task {case.task!r}; known tasks: "
        f"{', '.join(known)}. For a reward of your own, use --reward file.py:function"
    )


def _check(cases: Sequence[Case], rewards: Sequence[str]) -> None:
    """Every reward exists and every case has its columns."""
    for name in dict.fromkeys(rewards):
        if name not in REWARDS:
            _check_call(name)
    mistakes: list[str] = []
    for case, name in zip(cases, rewards, strict=True):
        needs = columns_needed(find_reward(name))
        given = with_solution(case.columns, needs)
        missing = [column for column in needs.required if column not in given]
        if missing:
            mistakes.append(
                f"line {case.line}: reward {name!r} needs the column "
                f"{' and '.join(map(repr, missing))}, which `extra` of case {case.id!r} lacks"
            )
    if mistakes:
        more = len(mistakes) - 20
        raise ValueError("\n".join(mistakes[:20] + [f"and {more} more"] * (more > 0)))


def _check_call(name: str) -> None:
    """As for a recipe: the parameters say whether it takes one text or many."""
    if name.endswith(".py"):
        raise ValueError(f"--reward {name}: which function? Write {name}:FUNCTION")
    reward = find_reward(name)
    if inspect.isclass(reward):
        source, _, attribute = name.rpartition(":")
        made = "" if source.endswith(".py") else f"from {source} import {attribute}; "
        raise ValueError(
            f"{name!r} is a class. Make one in a file of yours, as in `{made}judge = "
            f"{attribute}(...)`, and try that: --reward my_file.py:judge"
        )
    names = list(inspect.signature(reward).parameters)
    if "completions" not in names and "completion" not in names[:1]:
        raise ValueError(
            f"{name!r} takes ({', '.join(names)}); a reward takes (completion, **columns) and "
            "returns one number, or (prompts, completions, **columns) and returns a list"
        )


def _settings(given: Sequence[str], rewards: Sequence[str]) -> dict[str, Any]:
    """KEY=VALUE, where a value that is not JSON is a text; ValueError if no reward has the key."""
    known = {key for name in set(rewards) for key in columns_needed(find_reward(name)).settings}
    found: dict[str, Any] = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or key not in known:
            raise ValueError(
                f"--set {each}: no reward used here has the setting {key!r}; they have "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
        if key == "style" and REWARDS.keys() >= set(rewards):  # a plug-in's may be another
            check_style(found[key])
    return found


def _check_output(path: Path | None) -> None:
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise ValueError(f"cannot write {path}: give the path of a file in a folder that exists")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
