"""One picture of an RL run: how it learned, and what it changed.

Left: training reward and held-out accuracy over RL steps. Right: held-out accuracy against
denoising steps, before and after RL. Bands and bars are 95 % intervals (see `rl.intervals`).
The colours are Okabe and Ito's, which colour-blind readers can tell apart.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import PercentFormatter

from rl.intervals import Accuracy

BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#7F7F7F", "#262626"
STYLE: dict[Any, Any] = {
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#B5B5B5",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#ECECEC",
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "text.color": INK,
}


def write_report(
    folder: str | Path,
    history: Sequence[Mapping[str, Any]],
    before: Mapping[int, Accuracy],
    after: Mapping[int, Accuracy],
    trained_steps: int,
    title: str = "",
) -> Path:
    """Write the picture of `draw_report` to `folder`/report.png."""
    figure = draw_report(history, before, after, trained_steps, title)
    path = Path(folder) / "report.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160, facecolor="white")
    return path


def draw_report(
    history: Sequence[Mapping[str, Any]],
    before: Mapping[int, Accuracy],
    after: Mapping[int, Accuracy],
    trained_steps: int,
    title: str = "",
) -> Figure:
    """
    history: a Trainer's `log_history`. Entries with "reward" are training steps; entries with
        "eval/accuracy", "eval/accuracy_low" and "eval/accuracy_high" are evaluations.
    before, after: denoising steps -> accuracy. trained_steps: the number used by the rollouts.
    """
    with mpl.rc_context(STYLE):
        engine = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08, wspace=0.06)
        figure = Figure(figsize=(11, 4.4), layout=engine)
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
        _learning(left, history)
        _step_counts(right, before, after, trained_steps)
        if title:
            figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold")
    return figure


def smooth(values: Sequence[float]) -> list[float]:
    """Weighted mean of the neighbours of each value: a Gaussian window of 1/40 of the length."""
    width = max(len(values) / 40, 0.5)
    reach = int(3 * width) if len(values) > 3 else 0
    window = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    total = np.convolve(np.asarray(values, dtype=float), window, mode="same")
    return (total / np.convolve(np.ones(len(values)), window, mode="same")).tolist()


def _learning(axes: Axes, history: Sequence[Mapping[str, Any]]) -> None:
    trained = [(x["step"], x["reward"]) for x in history if "reward" in x]
    held_out = [
        (x["step"], x["eval/accuracy"], x["eval/accuracy_low"], x["eval/accuracy_high"])
        for x in history
        if "eval/accuracy" in x
    ]
    if trained:
        step, reward = (list(column) for column in zip(*trained, strict=True))
        axes.plot(step, reward, color=GREY, alpha=0.35, linewidth=0.9)
        axes.plot(
            step,
            smooth(reward),
            color=GREY,
            linewidth=2.2,
            label="training reward (sampled)",
        )
    if held_out:
        step, value, low, high = (list(column) for column in zip(*held_out, strict=True))
        axes.fill_between(step, low, high, color=BLUE, alpha=0.15, linewidth=0)
        axes.plot(
            step,
            value,
            color=BLUE,
            linewidth=2.2,
            marker="o",
            markersize=5,
            markeredgecolor="white",
            label="validation accuracy (greedy)",
        )
    axes.set(title="Learning", xlabel="RL step", ylabel="reward, accuracy")
    axes.set_xlim(left=0)
    axes.margins(x=0.02)
    _fractions(axes, [y for _, y in trained] + [bound for x in held_out for bound in x[2:]])
    if trained or held_out:
        axes.legend(loc="lower right")


def _step_counts(
    axes: Axes, before: Mapping[int, Accuracy], after: Mapping[int, Accuracy], trained_steps: int
) -> None:
    counts = sorted(set(before) | set(after) | {trained_steps})
    place = {count: i for i, count in enumerate(counts)}
    axes.axvspan(
        place[trained_steps] - 0.3, place[trained_steps] + 0.3, color=ORANGE, alpha=0.1, linewidth=0
    )
    axes.annotate(
        "trained at",
        (place[trained_steps], 0.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 5),
        textcoords="offset points",
        ha="center",
        fontsize=10,
        color="#A84A00",
    )
    for name, results, colour, shift in (
        ("before RL", before, GREY, -0.05),
        ("after RL", after, BLUE, 0.05),
    ):
        shown = [(place[n] + shift, results[n]) for n in counts if n in results]
        if not shown:
            continue
        axes.errorbar(
            [x for x, _ in shown],
            [a.value for _, a in shown],
            yerr=[[a.value - a.low for _, a in shown], [a.high - a.value for _, a in shown]],
            color=colour,
            linewidth=2.2,
            marker="o",
            markersize=6.5,
            markeredgecolor="white",
            capsize=3,
            elinewidth=1.3,
            label=name,
        )
    _gains(axes, before, after, place)
    axes.set(
        title="Accuracy by denoising steps",
        xlabel="denoising steps",
        ylabel="held-out accuracy (greedy)",
    )
    axes.set_xticks(list(place.values()), [str(count) for count in counts])
    axes.set_xlim(-0.5, len(counts) - 0.5)
    axes.grid(visible=False, axis="x")
    _fractions(axes, [x for a in (*before.values(), *after.values()) for x in (a.low, a.high)])
    if axes.get_legend_handles_labels()[0]:  # empty without an `evaluation:` section
        axes.legend(loc="lower right")


def _gains(
    axes: Axes,
    before: Mapping[int, Accuracy],
    after: Mapping[int, Accuracy],
    place: Mapping[int, int],
) -> None:
    """The change in percentage points, above the upper of the two intervals."""
    for count in sorted(set(before) & set(after)):
        change = 100 * (after[count].value - before[count].value)
        top = max(before[count].high, after[count].high)
        axes.annotate(
            f"{change:+.1f}".replace("-", "\N{MINUS SIGN}"),
            (place[count], top),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=10,
            fontweight="bold",
            color=BLUE,
        )


def _fractions(axes: Axes, values: Sequence[float]) -> None:
    """Percent, from 0 to 100 unless a reward leaves that range."""
    if all(0 <= value <= 1 for value in values):
        axes.set_ylim(0, 1.06)
        axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
