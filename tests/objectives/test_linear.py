"""Which objectives have a gradient that does not depend on the current log-probs, and when."""

from dataclasses import replace

import pytest
import torch

from rl.objectives import (
    Clipped,
    Kto,
    LinearBound,
    Objective,
    PolicyGradient,
    Preference,
    SelfNormalized,
    Squared,
    Weighted,
)

from .cases import EVERY, gradients, on_policy, random_case, rebuild


@pytest.mark.parametrize("name", EVERY)
def test_linear_means_that_stand_ins_give_the_gradient(name: str) -> None:
    """new = old = 0 on-policy; otherwise new = 0 with the real old and reference."""
    objective = EVERY[name]
    linear = {policy: objective.linear(policy) for policy in (True, False)}
    zero = torch.zeros(6, 5, dtype=torch.float64)
    c = random_case(1, importance=True)
    blank = rebuild(c.new, zero)
    found = {True: gradients(objective, on_policy(c)), False: gradients(objective, c)}
    stand_in = {
        True: gradients(objective, replace(c, new=blank, old=blank)),
        False: gradients(objective, replace(c, new=blank)),
    }
    for policy in (True, False):
        pairs = zip(found[policy], stand_in[policy], strict=True)
        equal = all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in pairs)
        if "upper" in name or "mixture" in name:  # linear in the bounds, but not in the scores
            assert not linear[policy]
        else:
            assert equal is linear[policy]


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        (Clipped(), (True, False)),
        (Clipped(beta=0.1), (False, False)),
        (Clipped(beta=0.1, kl="k1"), (True, False)),
        (Clipped(beta=0.1, kl_to="old"), (True, False)),
        (PolicyGradient(), (True, True)),
        (PolicyGradient(distill=0.1), (True, True)),
        (PolicyGradient(beta=0.1, kl="k1"), (True, True)),
        (PolicyGradient(beta=0.1, kl="k2"), (False, False)),
        (PolicyGradient(beta=0.1, kl="k2", kl_to="old"), (True, False)),
        (PolicyGradient(negative="upper"), (False, False)),
        (Weighted(), (True, True)),
        (LinearBound(), (True, False)),
        (SelfNormalized(), (True, False)),
        (SelfNormalized(negative="mixture"), (False, False)),
        (Squared(), (True, False)),
        (Preference(), (False, False)),
        (Kto(), (False, False)),
    ],
)
def test_which_are_linear(objective: Objective, expected: tuple[bool, bool]) -> None:
    assert (objective.linear(True), objective.linear(False)) == expected
