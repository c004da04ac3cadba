"""The results as tables and as JSON.

A budget is a number of rollouts, of forward passes that score them, or of all forward passes, those
that write them included; backward passes are not counted.
"""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from .chain import ChainRow
from .checkpoint import CheckpointRow
from .measure import GROUP, Row

ROLLOUTS = (64, 512)
FORWARDS = (128, 512)
TOTAL = (512, 2048)


def as_record(row: Row) -> dict[str, Any]:
    """A row of the JSON: the measurement, and the cosine that some budgets reach.

    forwards: of scoring only. total: rollout and scoring.
    """
    total = row.forwards + row.rollout_forwards
    return {
        **dataclasses.asdict(row),
        **{f"cosine_{n}_rollouts": row.reachable(n) for n in ROLLOUTS},
        **{f"cosine_{n}_forwards": row.reachable(n / row.forwards) for n in FORWARDS},
        **{f"cosine_{n}_total": row.reachable(n / total) for n in TOTAL},
    }


def write_json(path: str | Path, **parts: Any) -> None:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(parts, indent=1, default=dataclasses.asdict)
    target.write_text(text + "\n", encoding="utf-8")


def gradient_table(rows: Sequence[Row], sampler: str) -> Group:
    """One sampler: the best cosine at the largest budget of all forwards first."""
    mine = [(row, as_record(row)) for row in rows if row.sampler == sampler]
    budget = f"cosine_{TOTAL[-1]}_total"
    heads = ("cosine", "relvar", "bias", "std", "fwd", f"fwd G={GROUP}")
    reached = (f"{ROLLOUTS[-1]} rollouts", f"{FORWARDS[-1]} scoring", f"{TOTAL[-1]} total")
    forwards = mine[0][0].rollout_forwards
    title = f"rollouts by {sampler}, {forwards:.3g} forwards each"
    table = _table((*heads, *reached))
    for row, record in sorted(mine, key=lambda pair: -pair[1][budget]):
        table.add_row(
            row.estimator,
            f"{row.cosine:.3f}",
            f"{row.relvar:.1f}",
            f"{row.bias_nats:+.2f}",
            f"{row.std_nats:.2f}",
            f"{row.forwards:.2f}",
            f"{row.forwards_shared:.2f}",
            f"{record[f'cosine_{ROLLOUTS[-1]}_rollouts']:.3f}",
            f"{record[f'cosine_{FORWARDS[-1]}_forwards']:.3f}",
            f"{record[budget]:.3f}",
        )
    return Group(Text(title, style="bold"), table)


def noise_table(rows: Sequence[ChainRow], length: int) -> Group:
    """The Markov chain at one length."""
    mine = [row for row in rows if row.length == length]
    heads = ("fwd", "bias/token", "std/token", "std sqrt(fwd)", "relvar", "cosine")
    change = mine[0].true_change
    title = f"Markov chain, {length} tokens; two policies differ by {change:.2f} nats"
    table = _table((*heads, "std of ratio", "not shared"))
    for row in mine:
        table.add_row(
            row.estimator,
            f"{row.forwards:.2f}",
            f"{row.bias_per_token:+.3f}",
            f"{row.std_per_token:.3f}",
            f"{row.std_per_token * row.forwards**0.5:.3f}",
            f"{row.relvar:.2f}",
            f"{row.cosine:.3f}",
            f"{row.shared:.2f}",
            f"{row.independent:.1f}",
        )
    return Group(Text(title, style="bold"), table)


def checkpoint_table(rows: Sequence[CheckpointRow], title: str) -> Group:
    """A real checkpoint."""
    table = _table(("std", "gap", "correlation", "fwd", "ms"))
    for row in rows:
        table.add_row(
            row.estimator,
            f"{row.std_nats:.2f}",
            f"{row.gap_nats:+.2f}",
            f"{row.correlation:.3f}",
            f"{row.forwards:.2f}",
            f"{1000 * row.seconds:.1f}",
        )
    return Group(Text(title, style="bold"), table)


def _table(heads: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("estimator", no_wrap=True)
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    return table
