"""What every objective may have: a KL term, self-distillation, and four ways to add up."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from estimators import Estimate
from rl.objectives import Clipped, PolicyGradient, Totals

from .cases import EVERY, case, estimate, gradients, random_case, tensor, totals_of, values

KL = {"k1": lambda d: d, "k2": lambda d: d * d / 2, "k3": lambda d: (-d).exp() + d - 1}


@pytest.mark.parametrize(("kl", "value"), [("k1", 0.5), ("k2", 0.125), ("k3", 0.106530659712633)])
@pytest.mark.parametrize("kl_to", ["ref", "old"])
def test_kl_is_added_per_scored_token_of_the_plan(kl: Any, kl_to: Any, value: float) -> None:
    """log policy - log other is 0.5 at the first token; the second is not in the plan."""
    zero, other = estimate([[0.0, 0.0]], [[1, 0]]), estimate([[-0.5, -0.9]])
    both = {"old": zero, "ref": zero, kl_to: other}
    out = case(zero, [0.0], **both).apply(Clipped(beta=0.04, kl=kl, kl_to=kl_to))
    assert out.loss.item() == pytest.approx(0.04 * value / 2, abs=1e-12)
    total, count = out.metrics["kl"]
    assert (total.item(), count.item()) == (pytest.approx(value, abs=1e-12), 1)


# token differences 0.5, -0.2 in view 0 and 0.4 in view 1, with importances 1 and 3
@pytest.mark.parametrize("kl", ["k1", "k2", "k3"])
@pytest.mark.parametrize(
    ("kl_level", "differences", "weights"),
    [
        ("token", [0.5, -0.2, 0.4], [1, 1, 3]),
        ("step", [0.3, 0.4], [1, 3]),
        ("sequence", [0.3 + 3 * 0.4], [1]),
    ],
)
def test_levels_of_the_kl(kl: Any, kl_level: Any, differences: Any, weights: Any) -> None:
    new = estimate([[0.5, -0.2, 0.4]], view=[[0, 0, 1]], importance=[[1.0, 3.0]])
    objective = PolicyGradient(beta=0.1, kl=kl, kl_level=kl_level, aggregation="constant")
    out = case(new, [0.0]).apply(objective)
    value = (KL[kl](tensor(differences)) * tensor(weights)).sum().item()
    assert out.loss.item() == pytest.approx(0.1 * value / 3, abs=1e-12)  # ESPO: divided by L
    assert values(out)["kl"] == pytest.approx(value / sum(weights), abs=1e-12)


@pytest.mark.parametrize(("kl_level", "value"), [("token", 0.5), ("step", 0.8), ("sequence", 0.8)])
def test_a_kl_per_token_leaves_choices_out(kl_level: Any, value: float) -> None:
    """One policy may be unable to make a choice: its log-ratio would drown all else."""
    new = estimate([[0.5]], choice=[[0.3]])
    objective = PolicyGradient(beta=1.0, kl="k1", kl_level=kl_level, aggregation="sequence_sum")
    out = case(new, [0.0]).apply(objective)
    assert out.loss.item() == pytest.approx(value, abs=1e-12)
    assert values(out)["kl"] == pytest.approx(value, abs=1e-12)


def test_a_kl_weight_needs_a_reference_unless_it_is_to_the_old_policy() -> None:
    c = case(estimate([[0.0]]), [1.0], ref=None)
    with pytest.raises(ValueError, match=r"beta is 0.04, which needs an estimate of the reference"):
        c.apply(Clipped(beta=0.04))
    assert c.apply(Clipped(beta=0.04, kl_to="old")).loss.isfinite()


@pytest.mark.parametrize(
    ("objective", "old", "reference"),
    [
        (PolicyGradient(), False, False),
        (PolicyGradient(beta=0.1), False, True),
        (PolicyGradient(beta=0.1, kl_to="old"), True, False),
        (Clipped(), True, False),
        (Clipped(beta=0.1), True, True),
        (Clipped(beta=0.1, kl_to="old"), True, False),
    ],
)
def test_which_policies_are_needed(objective: Any, old: bool, reference: bool) -> None:
    assert (objective.uses_old, objective.uses_reference) == (old, reference)


@pytest.mark.parametrize("name", [n for n in EVERY if not EVERY[n].beta and not EVERY[n].distill])
@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean"])
def test_every_objective_adds_the_same_terms(name: str, aggregation: Any) -> None:
    """beta KL - distill log p, aggregated like the loss."""
    plain = replace(EVERY[name], aggregation=aggregation)
    full = replace(plain, beta=0.3, kl="k2", distill=0.05)
    c = random_case(importance=True, choice=True)
    new, ref = c.new, c.ref
    kl_BL = KL["k2"](new.token_logp - ref.token_logp) * new.token_weight * new.token_mask
    kl_B = kl_BL.sum(-1)
    row_B = 0.3 * kl_B - 0.05 * c.new.sequence_logp
    n = c.scored.sum(-1)
    expected = row_B.sum() / n.sum() if aggregation == "token_mean" else (row_B / n).mean()
    found = c.apply(full).loss - c.apply(plain).loss
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_distill_raises_the_likelihood_of_all_completions() -> None:
    c = case(estimate([[-1.0, -2.0], [-3.0, -4.0]]), [0.0, -0.0])
    objective = Clipped(distill=0.05, aggregation="sequence_sum")
    assert c.apply(objective).loss.item() == pytest.approx(0.05 * (3 + 7) / 2, abs=1e-12)
    (token,) = gradients(objective, c)
    torch.testing.assert_close(token, torch.full_like(token, -0.05 / 2), rtol=0, atol=1e-12)


# --- what the sequence-level terms follow, for a policy whose sequences can be enumerated
TOKENS, LENGTH = 3, 2


def sequence_logp(logits: Tensor) -> Tensor:
    """log p of each of the 9 sequences of two tokens; the second depends on the first."""
    first, second = logits[0].log_softmax(-1), logits[1:].log_softmax(-1)
    return (first[:, None] + second).flatten()


def policies() -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 1 + TOKENS, TOKENS, generator=g, dtype=torch.float64)
    return logits[0].requires_grad_(), logits[1]


def expected_gradient(kl: Any) -> Tensor:
    """Of the KL term over sequences drawn from the policy, all 9 with their probability."""
    logits, ref_logits = policies()
    logp, ref = sequence_logp(logits), sequence_logp(ref_logits)
    objective = PolicyGradient(beta=1.0, kl=kl, kl_level="sequence", aggregation="sequence_sum")
    scored = torch.ones(1, 1, dtype=torch.bool)
    losses = [
        objective(
            whole(logp[i]), whole(logp[i].detach()), whole(ref[i]), torch.zeros(1).double(), scored,
            totals_of(scored),
        ).loss
        for i in range(TOKENS**LENGTH)
    ]  # fmt: skip
    loss = (torch.stack(losses) * logp.detach().exp()).sum()
    return torch.autograd.grad(loss, logits)[0]


def whole(logp: Tensor) -> Estimate:
    return Estimate(token_logp=logp.view(1, 1), token_mask=torch.ones(1, 1, dtype=torch.bool))


def gradient_of_divergence(*, reverse: bool) -> Tensor:
    logits, ref_logits = policies()
    logp, ref = sequence_logp(logits), sequence_logp(ref_logits)
    divergence = logp.exp() * (logp - ref) if reverse else ref.exp() * (ref - logp)
    return torch.autograd.grad(divergence.sum(), logits)[0]


def test_k1_has_no_expected_gradient() -> None:
    assert gradient_of_divergence(reverse=True).abs().max() > 0.05
    assert expected_gradient("k1").abs().max() < 1e-12


@pytest.mark.parametrize(("kl", "reverse"), [("k2", True), ("k3", False)])
def test_k2_follows_the_reverse_and_k3_the_forward_divergence(kl: Any, reverse: bool) -> None:
    found = expected_gradient(kl)
    torch.testing.assert_close(found, gradient_of_divergence(reverse=reverse), rtol=0, atol=1e-12)
    assert (found - gradient_of_divergence(reverse=not reverse)).abs().max() > 0.01


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        # rows with sums 5 and -7, with 1 and 3 scored tokens of 4
        ("token_mean", (5 - 7) / 4),
        ("sequence_mean", (5 / 1 - 7 / 3) / 2),
        ("constant", (5 - 7) / (2 * 4)),
        ("sequence_sum", (5 - 7) / 2),
    ],
)
def test_aggregations_by_hand(aggregation: Any, expected: float) -> None:
    scored = torch.tensor([[True, False, False, False], [True, True, False, True]])
    new = estimate([[5.0, 0, 0, 0], [-3.0, -4.0, 0, 0]], scored & torch.tensor([1, 1, 1, 0]).bool())
    c = case(new, [-1.0, -1.0], scored=scored)
    out = c.apply(PolicyGradient(aggregation=aggregation))
    assert out.loss.item() == pytest.approx(expected, abs=1e-12)


def test_a_step_without_scored_tokens_has_loss_0() -> None:
    c = case(estimate([[0.0, 0.0]], [[False, False]]), [1.0], scored=torch.zeros(1, 2).bool())
    for aggregation in ["token_mean", "sequence_mean", "constant", "sequence_sum"]:
        assert c.apply(Clipped(aggregation=aggregation)).loss.item() == 0


def test_totals_have_a_statistic_only_if_given() -> None:
    assert Totals(tokens=1.0, sequences=1, length=1).statistic is None
