"""Cosines that an independent enumeration of the same network found, for three seeds.

`reference.json` has {seed: {sampler: {estimator: cosine}}} with the labels of `settings.py`. That
program enumerates masks and paths itself, and knows nothing of our estimators and samplers.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from .measure import Row, bench
from .settings import ESTIMATORS_COMPARED, SAMPLERS_COMPARED

TOLERANCE = 0.02
COSINES: dict[str, dict[str, dict[str, float]]] = json.loads(
    Path(__file__).with_name("reference.json").read_text(encoding="utf-8")
)


def differences(
    seed: int,
    estimators: Sequence[str] | None = None,
    samplers: Sequence[str] | None = None,
    on_row: Callable[[Row], None] = lambda row: None,
) -> dict[tuple[str, str], float]:
    """(estimator, sampler) -> our cosine minus theirs."""
    theirs = COSINES[str(seed)]
    rows = bench(
        {name: ESTIMATORS_COMPARED[name] for name in estimators or next(iter(theirs.values()))},
        {name: SAMPLERS_COMPARED[name] for name in samplers or theirs},
        seed,
        rollouts=16000,
        on_row=on_row,
    )
    return {
        (row.estimator, row.sampler): row.cosine - theirs[row.sampler][row.estimator]
        for row in rows
    }
