"""Means over micro-batches and ranks."""

import pytest
import torch
from torch import Tensor

from rl.metrics import Metrics, Sums, correlation, effective_share, std


def alone(sums: Tensor) -> Tensor:
    return sums


def filled() -> Metrics:
    metrics = Metrics()
    metrics.add("time", 2.0)
    metrics.add("time", 4.0)
    metrics.add_sum("ratio", torch.tensor(3.0, requires_grad=True), torch.tensor(4))
    metrics.add_sum("ratio", torch.tensor(1.0), torch.tensor(6))
    metrics.add_all("nfe", torch.tensor([8, 16]))
    metrics.add_all("flags", torch.tensor([True, False, True, True]))
    return metrics


def test_each_is_a_quotient_of_sums_and_not_a_mean_of_means() -> None:
    metrics = filled()
    assert metrics.take(alone) == {"flags": 0.75, "nfe": 12.0, "ratio": 0.4, "time": 3.0}
    assert metrics.take(alone) == {}


def test_ranks_are_summed_in_one_call_in_the_same_order() -> None:
    other = Metrics()  # of another rank, which added in another order
    other.add_all("flags", torch.tensor([False] * 4))
    other.add_all("nfe", torch.tensor([24]))
    other.add("time", 9.0)
    other.add_sum("ratio", torch.tensor(6.0), torch.tensor(0))
    sent: list[Tensor] = []
    other.take(lambda sums: sent.append(sums) or sums)
    found = filled().take(lambda sums: sums + sent[0])
    assert found == {"flags": 3 / 8, "nfe": 16.0, "ratio": 1.0, "time": 5.0}
    assert len(sent) == 1


def test_metrics_without_a_count_are_left_out() -> None:
    metrics = Metrics()
    metrics.add_all("reward", torch.tensor([]))
    assert metrics.total("reward", "time") == 0
    assert metrics.take(alone) == {}


def test_totals_are_sums_so_far() -> None:
    metrics = filled()
    assert metrics.total("time", "nfe") == 6 + 24
    assert metrics.take(alone)["time"] == 3.0


def test_formulas_are_applied_to_sums_over_everything() -> None:
    """Deviation of 1, 2 and 6 (of which another rank has the last): sqrt(41/3 - 9)."""
    here, there = Metrics(), Metrics()
    here.add_sums("spread", Sums(torch.tensor([2.0, 3.0, 5.0]), std))
    here.add("time", 2.0)
    there.add_sums("spread", Sums(torch.tensor([1.0, 6.0, 36.0]), std))
    there.add("time", 4.0)
    sent: list[Tensor] = []
    there.take(lambda sums: sent.append(sums) or sums)
    found = here.take(lambda sums: sums + sent[0])
    assert found == {"spread": pytest.approx((14 / 3) ** 0.5), "time": 3.0}


def test_formulas_of_nothing_have_no_value() -> None:
    assert std(0.0, 0.0, 0.0) is None
    assert correlation(*[0.0] * 6) is None
    assert correlation(2.0, 2.0, 4.0, 2.0, 10.0, 4.0) is None  # x = 1, 1
    assert effective_share(0.0, 0.0, 0.0) is None


def test_correlation_has_a_sign() -> None:
    """x = 0, 1, 2 and y = 3, 1, 0: covariance -3, sums of squares 2 and 14/3."""
    found = correlation(3.0, 3.0, 4.0, 5.0, 10.0, 1.0)
    assert found == pytest.approx(-3 / (2 * 14 / 3) ** 0.5)
