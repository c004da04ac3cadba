"""Answers through reasoning-gym's own scorers, in the sandbox and never in this process.

Some of those scorers hand the answer to `eval` or sympy's parser, which runs it. The answers that
could be more than arithmetic or a literal are refused before; the sandbox is for what gets through.
"""

import importlib.util
import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from rewards.sandbox import Limits, run

HOST = Path(__file__).with_name("reasoning_gym_host.py")
LONGEST = 20_000  # characters of an answer
SECONDS = 5.0  # for one answer
IMPORT_SECONDS = 60.0  # for reasoning-gym, on a busy machine
CHUNK = 32  # answers that share a sandbox
SANDBOXES = 2  # at a time
# their scorers run the answer, by `eval` or sympy.parse_expr
RUNS_ANSWERS = frozenset(
    {
        "binary_matrix",
        "countdown",
        "intermediate_integration",
        "n_queens",
        "polynomial_multiplication",
        "puzzle24",
        "simple_integration",
        "spiral_matrix",
        "string_insertion",
    }
)
FUNCTIONS = frozenset({"sqrt", "exp", "log", "ln", "sin", "cos", "tan", "asin", "acos", "atan",
                       "sinh", "cosh", "tanh", "abs", "Abs"})  # fmt: skip
CALL = re.compile(r"([^\W\d]\w*)\s*\(")
CODE = re.compile(
    r"[)\]}\w]\s*\.\s*[^\W\d]|[)\]}'\"]\s*\(|[`@;\\!%&|~<>:={}]"
    r"|\b(?:lambda|for|if|else|import|in|is|not|and|or|await|yield|exec|eval)\b"
)
TOLD = re.compile(r"\[(\d{1,3}), (\d(?:\.\d{1,20})?(?:e-?\d{1,3})?)\]", re.ASCII)
Item = tuple[str, str, dict[str, Any]]  # data set, answer, entry


def own_scores(items: Sequence[Item]) -> list[float]:
    """reasoning-gym's score of each answer, 0.0 for one that was refused or not scored in time."""
    if items and importlib.util.find_spec("reasoning_gym") is None:
        raise ValueError(
            f"data set {items[0][0]!r} is scored by reasoning-gym, which is not installed: "
            f"pip install 'unmask-rl[reasoning]'"
        )
    scores = [0.0] * len(items)
    todo = [i for i, (dataset, answer, _) in enumerate(items) if acceptable(dataset, answer)]
    chunks = [todo[at : at + CHUNK] for at in range(0, len(todo), CHUNK)]
    with ThreadPoolExecutor(SANDBOXES) as threads:
        for found in threads.map(partial(_in_sandbox, items), chunks):
            for i, score in found.items():
                scores[i] = score
    return scores


def acceptable(dataset: str, answer: str) -> bool:
    """Whether an answer may be given to the scorer of a data set at all."""
    if not answer or len(answer) > LONGEST or "__" in answer:
        return False
    if dataset not in RUNS_ANSWERS:
        return True
    return not CODE.search(answer) and FUNCTIONS.issuperset(CALL.findall(answer))


def _in_sandbox(items: Sequence[Item], chunk: Sequence[int]) -> dict[int, float]:
    """Scores by position. What was not scored in a shared sandbox gets one of its own."""
    request = {"seconds": SECONDS, "items": [items[i] for i in chunk]}
    seconds = IMPORT_SECONDS + 2 * SECONDS * len(chunk)
    limits = Limits(wall_s=seconds, cpu_s=seconds, memory_mib=3072, processes=64, output_kib=256)
    result = run(HOST.read_text(encoding="utf-8"), stdin=json.dumps(request), limits=limits)
    found: dict[int, float] = {}
    for line in result.stdout.splitlines():
        if (told := TOLD.fullmatch(line)) and int(told[1]) < len(chunk):  # else forged
            found[chunk[int(told[1])]] = float(told[2])
    if result.status != "ok" and len(chunk) > 1:  # the host itself was ended
        for i in chunk:
            if i not in found:
                found |= _in_sandbox(items, [i])
    return found
