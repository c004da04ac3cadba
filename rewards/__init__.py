"""How good is this text? Graders, and the one function that makes a reward of each.

Standard library only; `math` asks math-verify, in processes of its own. Never torch, never `rl`.
"""

from collections.abc import Callable
from typing import Any

from rewards.base import Grader, Reward, per_completion, required_columns, with_batch
from rewards.countdown import countdown_reached
from rewards.extraction import (
    Extraction,
    extract,
    extraction_of,
    final_answer,
    first_turn,
    last_boxed,
    last_tag,
    reads_answer,
)
from rewards.format import (
    boxed_format,
    int_answer,
    soft_format,
    strict_format,
    tag_format,
    xml_count,
)
from rewards.gsm8k import gsm8k_correct
from rewards.knights_knaves import knights_knaves
from rewards.math_answer import math_correct
from rewards.math_verify_grader import math_verify
from rewards.parity import PARITY
from rewards.reasoning_gym import reasoning_gym
from rewards.shaping import cosine, overlong, repetition
from rewards.sudoku import sudoku_solved
from rewards.unit_tests import unit_tests
from rewards.worker_pool import Outcome, WorkerPool
from rewards.zebra import zebra

# graders, and the few that need the whole batch and have TRL's signature
REWARDS: dict[str, Callable[..., Any]] = {
    "sudoku": sudoku_solved,
    "countdown": countdown_reached,
    "math": math_correct,
    "math_verify": math_verify,
    "gsm8k": gsm8k_correct,
    "soft_format": soft_format,
    "strict_format": strict_format,
    "xml_count": xml_count,
    "int_answer": int_answer,
    "tag_format": tag_format,
    "boxed_format": boxed_format,
    "knights_knaves": knights_knaves,
    "zebra": zebra,
    "unit_tests": unit_tests,
    "reasoning_gym": reasoning_gym,
    "overlong": overlong,
    "cosine": cosine,
    "repetition": repetition,
    **PARITY,
}

__all__ = [
    "PARITY",
    "REWARDS",
    "Extraction",
    "Grader",
    "Outcome",
    "Reward",
    "WorkerPool",
    "boxed_format",
    "cosine",
    "countdown_reached",
    "extract",
    "extraction_of",
    "final_answer",
    "first_turn",
    "gsm8k_correct",
    "int_answer",
    "knights_knaves",
    "last_boxed",
    "last_tag",
    "math_correct",
    "math_verify",
    "overlong",
    "per_completion",
    "reads_answer",
    "reasoning_gym",
    "repetition",
    "required_columns",
    "soft_format",
    "strict_format",
    "sudoku_solved",
    "tag_format",
    "unit_tests",
    "with_batch",
    "xml_count",
    "zebra",
]
