"""The rewards of other stacks as published, under `parity:` names. For comparison; do not train."""

from collections.abc import Callable
from typing import Any

from rewards.parity_d1 import (
    d1_boxed_and_answer_tags,
    d1_countdown,
    d1_gsm8k,
    d1_int,
    d1_soft_format,
    d1_strict_format,
    d1_sudoku,
    d1_xml_count,
)
from rewards.parity_d1_math import d1_math
from rewards.parity_open_r1 import (
    open_r1_accuracy,
    open_r1_cosine,
    open_r1_format,
    open_r1_len,
    open_r1_reasoning_steps,
    open_r1_repetition,
    open_r1_tag_count,
)
from rewards.parity_trl import (
    trl_accuracy,
    trl_cosine,
    trl_repetition,
    trl_soft_overlong,
    trl_think_format,
)

PARITY: dict[str, Callable[..., Any]] = {
    f"parity:{reward.__name__}": reward
    for reward in (
        d1_gsm8k,
        d1_int,
        d1_soft_format,
        d1_strict_format,
        d1_xml_count,
        d1_boxed_and_answer_tags,
        d1_math,
        d1_countdown,
        d1_sudoku,
        open_r1_accuracy,
        open_r1_format,
        open_r1_tag_count,
        open_r1_reasoning_steps,
        open_r1_len,
        open_r1_cosine,
        open_r1_repetition,
        trl_accuracy,
        trl_think_format,
        trl_cosine,
        trl_repetition,
        trl_soft_overlong,
    )
}
