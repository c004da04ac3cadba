"""Means over micro-batches and ranks."""

import torch
from torch import Tensor

from rl.metrics import Metrics


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
