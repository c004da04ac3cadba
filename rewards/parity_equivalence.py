"""How TRL and open-r1 ask math-verify. In a worker process only: it may hang.

trl              any form of gold, parsed as it is; `verify(gold, answer)`
open_r1          LaTeX golds only; `verify(gold, answer)`
open_r1_swapped  the same with `verify(answer, gold)`, which is not symmetric
"""

from typing import Any

from latex2sympy2_extended import NormalizationConfig  # pyright: ignore
from math_verify import (  # pyright: ignore[reportMissingTypeStubs]
    LatexExtractionConfig,
    parse,
    verify,  # pyright: ignore[reportUnknownVariableType]
)

WAYS = ("trl", "open_r1", "open_r1_swapped")


def verdict(way: str, gold: str, text: str) -> bool | None:
    """Whether the text is right; None if the gold cannot be parsed."""
    assert way in WAYS, way
    first: dict[str, Any] = {"extraction_mode": "first_match", "parsing_timeout": None}
    if way == "trl":
        golds: list[Any] = parse(gold, parsing_timeout=None)  # pyright: ignore
    else:
        golds = parse(gold, extraction_config=[LatexExtractionConfig()], **first)  # pyright: ignore
    if not golds:
        return None
    anchored = LatexExtractionConfig(
        normalization_config=NormalizationConfig(  # pyright: ignore
            units=True, equations=way != "trl"
        ),
        boxed_match_priority=0,
        try_extract_without_anchor=False,
    )
    answers: list[Any] = parse(text, extraction_config=[anchored], **first)  # pyright: ignore
    pair = (answers, golds) if way == "open_r1_swapped" else (golds, answers)
    return bool(verify(*pair, timeout_seconds=None))  # pyright: ignore
