"""Wilson's interval by hand."""

import pytest

from rl.intervals import Accuracy


@pytest.mark.parametrize(
    ("correct", "total", "low", "high"),
    [  # (k + 1.92073) / (n + 3.84146) -+ 1.95996 sqrt(k (n - k) / n + 0.96036) / (n + 3.84146)
        (0, 10, 0.0, 0.277533),
        (5, 10, 0.236593, 0.763407),
        (10, 10, 0.722467, 1.0),
        (81, 263, 0.255289, 0.366209),  # Newcombe, Statist. Med. 17 (1998), table I: .2553 .3662
    ],
)
def test_wilson_interval_by_hand(correct: int, total: int, low: float, high: float) -> None:
    found = Accuracy(correct=correct, total=total)
    assert found.value == correct / total
    assert found.low == pytest.approx(low, abs=1e-6)
    assert found.high == pytest.approx(high, abs=1e-6)


@pytest.mark.parametrize(("correct", "total"), [(0, 0), (3, 2), (-1, 2)])
def test_impossible_accuracies_are_refused(correct: int, total: int) -> None:
    with pytest.raises(ValueError, match=f"{correct} correct out of {total}"):
        Accuracy(correct=correct, total=total)
