"""What cosine with the true policy gradient a budget of forward passes buys.

One panel per sampler, one line per estimator, one colour per family of estimators; the best of each
family at the middle of the axis is drawn thick and named. A rollout costs its own forward passes
and those that score it. The colours are Okabe and Ito's.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rl.report import STYLE

from .measure import Row

COLOURS = {
    "one step": "#7F7F7F",
    "random masks": "#0072B2",
    "recorded steps": "#D55E00",
    "reading order": "#009E73",
    "yours": "#CC79A7",
}
BUDGET = np.geomspace(32, 32768, 61)
HEIGHT = (0.1, 1.02)  # cosines shown
APART = 0.058  # between two names


def draw(rows: Sequence[Row], families: Mapping[str, str], title: str) -> Figure:
    """families: of each estimator's label, one of `COLOURS`."""
    samplers = list(dict.fromkeys(row.sampler for row in rows))
    columns = min(2, len(samplers))
    height = -(-len(samplers) // columns)
    with mpl.rc_context({**STYLE, "font.size": 9}):
        figure = Figure(figsize=(7.2 * columns, 3.5 * height + 0.9), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(height, columns, squeeze=False, sharex=True, sharey=True)
        for panel in panels.flat[len(samplers) :]:
            panel.set_visible(False)
        for panel, sampler in zip(panels.flat, samplers, strict=False):
            _panel(panel, [row for row in rows if row.sampler == sampler], families)
            panel.set_title(f"rollouts by {sampler}")
        for panel in panels[:, 0]:
            panel.set_ylabel("cosine with the true gradient")
        for panel in panels[-1]:
            panel.set_xlabel("forward passes, rollout and scoring")
        shown = [name for name in COLOURS if name in families.values()]
        lines = [Line2D([], [], color=COLOURS[name], lw=2.2, label=name) for name in shown]
        figure.legend(handles=lines, loc="outside upper right", ncols=len(lines))
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure


def write_picture(
    path: str | Path, rows: Sequence[Row], families: Mapping[str, str], title: str
) -> None:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(rows, families, title).savefig(target, dpi=130, facecolor="white")


def _panel(panel: Axes, rows: Sequence[Row], families: Mapping[str, str]) -> None:
    lines = {row.estimator: _reachable(row) for row in rows}
    middle = len(BUDGET) // 2
    best: dict[str, str] = {}
    for name in sorted(lines, key=lambda name: -lines[name][middle]):
        best.setdefault(families[name], name)
    for name, line in lines.items():
        leads = best[families[name]] == name
        width, alpha = (2.2, 1.0) if leads else (0.7, 0.55)
        panel.plot(BUDGET, line, color=COLOURS[families[name]], lw=width, alpha=alpha)
    panel.set_xscale("log", base=2)
    panel.set_xlim(BUDGET[0], BUDGET[-1])
    panel.set_ylim(*HEIGHT)
    panel.set_xticks([2**k for k in range(5, 16, 2)], [str(2**k) for k in range(5, 16, 2)])
    _name(panel, {name: float(lines[name][-1]) for name in best.values()}, families)


def _reachable(row: Row) -> np.ndarray:
    each = row.forwards + row.rollout_forwards
    return np.array([row.reachable(budget / each) for budget in BUDGET])


def _name(panel: Axes, ends: Mapping[str, float], families: Mapping[str, str]) -> None:
    """Names to the right of the lines' ends, moved down until they do not touch."""
    place = 1.04
    for name in sorted(ends, key=lambda name: -ends[name]):
        place = min(ends[name], place - APART)
        panel.annotate(
            name,
            (1.0, (place - HEIGHT[0]) / (HEIGHT[1] - HEIGHT[0])),
            xycoords="axes fraction",
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=COLOURS[families[name]],
            annotation_clip=False,
        )
