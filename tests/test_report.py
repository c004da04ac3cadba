"""The picture of a run shows the numbers that it was given."""

import struct
from pathlib import Path

import numpy as np
import pytest

from rl.intervals import Accuracy
from rl.report import draw_report, smooth, write_report

HISTORY = [
    {"step": 0, "eval/accuracy": 0.5, "eval/accuracy_low": 0.4, "eval/accuracy_high": 0.6},
    *({"step": s, "reward": s / 20, "loss": -1.0} for s in range(1, 11)),
    {"step": 10, "eval/accuracy": 0.7, "eval/accuracy_low": 0.6, "eval/accuracy_high": 0.8},
]


def of_1000(correct: int) -> Accuracy:
    return Accuracy(correct=correct, total=1000)


BEFORE = {4: of_1000(313), 8: of_1000(594), 16: of_1000(977)}
AFTER = {4: of_1000(610), 8: of_1000(809), 16: of_1000(964)}


def test_learning_curve_shows_reward_and_accuracy() -> None:
    left, _ = draw_report(HISTORY, BEFORE, AFTER, 8).axes
    raw, _smoothed, accuracy = left.get_lines()
    assert raw.get_xydata().tolist() == [[s, s / 20] for s in range(1, 11)]
    assert accuracy.get_xydata().tolist() == [[0, 0.5], [10, 0.7]]
    band = left.collections[0].get_paths()[0].vertices
    assert {tuple(v) for v in band.round(6)} >= {(0, 0.4), (0, 0.6), (10, 0.6), (10, 0.8)}
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert labels == ["training reward (sampled)", "validation accuracy (greedy)"]


def test_step_counts_show_before_after_and_the_change() -> None:
    _, right = draw_report(HISTORY, BEFORE, AFTER, 8).axes
    before, after = (container.lines[0].get_ydata() for container in right.containers)
    assert before.tolist() == [0.313, 0.594, 0.977]
    assert after.tolist() == [0.61, 0.809, 0.964]
    (bars,) = right.containers[0].lines[2]
    assert bars.get_segments()[1][:, 1] == pytest.approx([BEFORE[8].low, BEFORE[8].high])
    assert [tick.get_text() for tick in right.get_xticklabels()] == ["4", "8", "16"]
    texts = {text.get_text(): text.xy for text in right.texts}
    minus = "\N{MINUS SIGN}"
    assert set(texts) == {"trained at", "+29.7", "+21.5", f"{minus}1.3"}
    assert texts["+21.5"] == (1, AFTER[8].high)
    assert texts[f"{minus}1.3"] == (2, BEFORE[16].high)
    assert texts["trained at"][0] == 1  # the place of 8 steps


def test_a_setting_measured_on_one_side_has_no_change() -> None:
    _, right = draw_report([], {4: of_1000(300)}, {8: of_1000(600)}, 2).axes
    assert [tick.get_text() for tick in right.get_xticklabels()] == ["2", "4", "8"]
    assert [text.get_text() for text in right.texts] == ["trained at"]


def test_rewards_outside_zero_to_one_are_not_cut_off() -> None:
    left, right = draw_report([{"step": 1, "reward": 2.5}], BEFORE, AFTER, 8).axes
    assert left.get_ylim()[1] > 2.5
    assert right.get_ylim() == (0, 1.06)


def test_smoothing_is_a_weighted_mean_of_neighbours() -> None:
    assert smooth([0.3] * 50) == pytest.approx([0.3] * 50)
    assert smooth([1.0]) == [1.0]
    line = np.linspace(0, 1, 100)
    assert smooth(line.tolist())[50] == pytest.approx(line[50])  # a straight line stays straight
    # 20 values: width 0.5, reach 1, weights e^-2, 1, e^-2
    peak = [0.0] * 20
    peak[10] = 1.0
    aside = np.exp(-2)
    assert smooth(peak)[9:12] == pytest.approx(np.array([aside, 1, aside]) / (1 + 2 * aside))
    assert smooth(peak)[7] == 0


@pytest.mark.parametrize("history", [HISTORY, []])
def test_the_file_is_a_picture(history: list[dict], tmp_path: Path) -> None:
    path = write_report(tmp_path / "new", history, BEFORE, AFTER, 8, title="Free 4x4 sudoku")
    assert path == tmp_path / "new" / "report.png"
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (1760, 704)
    assert len(data) > 20_000
