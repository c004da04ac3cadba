"""Values by hand, and what each estimator's gradient is a gradient of, by enumeration."""

import math

import pytest
import torch
from torch import Tensor

from rl.exponential import finite_exp
from rl.kl import kl_divergence

REF = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64).log()


def policy() -> Tensor:
    """Logits of a categorical distribution over four tokens."""
    return torch.tensor([0.3, -0.2, 0.5, 0.1], dtype=torch.float64, requires_grad=True)


def expected_gradient(kind) -> Tensor:
    """E over tokens drawn from the policy of the gradient of `kind`."""
    logits = policy()
    logp = logits.log_softmax(-1)
    loss = (logp.detach().exp() * kl_divergence(logp, REF, kind)).sum()
    (gradient,) = torch.autograd.grad(loss, logits)
    return gradient


def gradient_of_divergence(*, reverse: bool) -> Tensor:
    logits = policy()
    logp = logits.log_softmax(-1)
    divergence = logp.exp() * (logp - REF) if reverse else REF.exp() * (REF - logp)
    (gradient,) = torch.autograd.grad(divergence.sum(), logits)
    return gradient


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("k1", [0.0, 0.5, -1.0]),
        ("k2", [0.0, 0.125, 0.5]),
        ("k3", [0.0, 0.106530659712633, 0.718281828459045]),
    ],
)
def test_values_by_hand(kind, values: list[float]) -> None:
    d = torch.tensor([0.0, 0.5, -1.0], dtype=torch.float64)
    found = kl_divergence(d - 2.0, torch.full_like(d, -2.0), kind)
    torch.testing.assert_close(found, torch.tensor(values, dtype=d.dtype), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["k1", "k3"])
def test_k1_and_k3_are_unbiased_values(kind) -> None:
    logp = policy().log_softmax(-1).detach()
    expected = (logp.exp() * (logp - REF)).sum()
    found = (logp.exp() * kl_divergence(logp, REF, kind)).sum()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert (logp.exp() * kl_divergence(logp, REF, "k2")).sum() != pytest.approx(expected.item())


def test_the_expected_gradient_of_k1_is_zero() -> None:
    assert gradient_of_divergence(reverse=True).abs().max() > 0.05
    assert expected_gradient("k1").abs().max() < 1e-12


@pytest.mark.parametrize(("kind", "reverse"), [("k2", True), ("k3", False)])
def test_k2_follows_the_reverse_and_k3_the_forward_divergence(kind, reverse: bool) -> None:
    found = expected_gradient(kind)
    torch.testing.assert_close(found, gradient_of_divergence(reverse=reverse), rtol=0, atol=1e-12)
    assert (found - gradient_of_divergence(reverse=not reverse)).abs().max() > 0.01


def test_extreme_differences_keep_a_finite_gradient_with_the_right_sign() -> None:
    """exp overflows float32 at 88; beyond 20 it goes on as its tangent."""
    d = torch.tensor([-500.0, -21.0, 500.0], requires_grad=True)
    k3 = kl_divergence(d, torch.zeros_like(d), "k3")
    (gradient,) = torch.autograd.grad(k3.sum(), d)
    top = math.exp(20)
    torch.testing.assert_close(k3, torch.tensor([481 * top, 2 * top, 499.0]), rtol=1e-6, atol=0)
    torch.testing.assert_close(gradient, torch.tensor([-top, -top, 1.0]), rtol=1e-6, atol=0)


def test_the_exponential_is_exact_up_to_its_ceiling() -> None:
    x = torch.tensor([-math.inf, -3.0, 0.0, 19.9, 20.0, 20.5, 120.0], dtype=torch.float64)
    tangent = [1.5 * math.exp(20), 101 * math.exp(20)]
    expected = torch.cat([x[:5].exp(), torch.tensor(tangent, dtype=x.dtype)])
    torch.testing.assert_close(finite_exp(x), expected, rtol=1e-12, atol=0)
