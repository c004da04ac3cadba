"""Estimates of KL(policy || reference) from log-probs of samples.

With d = log policy - log reference:

    k1 = d                    unbiased value; as a loss its expected gradient is 0
    k2 = d^2 / 2              biased value; as a loss its expected gradient is that of
                              KL(policy || reference)
    k3 = exp(-d) + d - 1      unbiased value, never negative; as a loss its expected gradient is
                              that of KL(reference || policy)

Summed log-probs give estimates of the divergence of whole sequences in the same way. These facts
hold for exact log-probs; noise in d adds half its variance to k2, and its exponential to k3.

Source    J. Schulman, "Approximating KL divergence", 2020; gradients: ESPO, arXiv:2512.03759
"""

from collections.abc import Callable
from typing import Literal, get_args

from torch import Tensor

from rl.exponential import finite_exp

Kl = Literal["k1", "k2", "k3"]


def _k1(d: Tensor) -> Tensor:
    return d


def _k2(d: Tensor) -> Tensor:
    return d.square() / 2


def _k3(d: Tensor) -> Tensor:
    return finite_exp(-d) + d - 1


_KLS: dict[str, Callable[[Tensor], Tensor]] = {"k1": _k1, "k2": _k2, "k3": _k3}


def kl_divergence(policy_logp: Tensor, ref_logp: Tensor, kind: Kl) -> Tensor:
    """Elementwise; same shape as its inputs."""
    if kind not in _KLS:
        raise ValueError(f"kl is {kind!r}; use one of {', '.join(get_args(Kl))}")
    return _KLS[kind](policy_logp - ref_logp)
