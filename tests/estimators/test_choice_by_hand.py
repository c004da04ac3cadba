"""The summands of a choice of positions, worked out by hand for every branch."""

import math
from dataclasses import replace

import pytest
import torch

from estimators import Decoding, MaskPlan, Scores, Trajectory, score
from estimators.choice import Asked, choice_logp, choice_scores
from rl.samplers import ConfidenceFirst, LeftToRight, PlackettLuce, RandomOrder
from tests.enumeration import plan_of_steps, with_maps
from tests.tiny_models import TinyDenoiser, sequences


def test_an_impossible_choice_has_a_finite_log_prob_and_no_gradient() -> None:
    """kappa is (0.6, 0.4) at both; the step kept the 0.4 at 1, but at 0 no token has less."""
    logits = torch.tensor([[0.6, 0.4], [0.6, 0.4]]).log().requires_grad_()
    asked = Asked(
        view=torch.tensor([0, 0]),
        place=torch.tensor([0, 1]),
        token=torch.tensor([0, 1]),
        written=torch.tensor([False, True]),
    )
    found = choice_scores(logits, logits, torch.arange(2), asked, Decoding(rule="low_confidence"))
    assert found.tolist() == [pytest.approx(math.log(torch.finfo(torch.float32).tiny)), 0.0]
    found.sum().backward()
    assert logits.grad.tolist() == [[0, 0], [0, 0]]


# kappa of three positions; position 1 kept its token 0
KAPPA = [[0.5, 0.3, 0.2], [0.3, 0.6, 0.1], [0.3, 0.5, 0.2]]


def by_hand(kept: dict[int, int], decoding: Decoding, p: list | None = None) -> list[float]:
    """Probabilities, one per position, of a view that kept some tokens."""
    logits = torch.tensor(KAPPA, dtype=torch.float64).log()
    tempered = logits if p is None else torch.tensor(p, dtype=torch.float64).log()
    asked = Asked(
        view=torch.zeros(3, dtype=torch.long),
        place=torch.arange(3),
        token=torch.tensor([kept.get(i, 0) for i in range(3)]),
        written=torch.tensor([i in kept for i in range(3)]),
    )
    return choice_scores(logits, tempered, torch.arange(3), asked, decoding).exp().tolist()


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ({1: 0}, [0.2, 1, 0.5]),  # below 0.3, or equal and to the right
        ({1: 1}, [1, 1, 1]),  # all below 0.6
        ({0: 0}, [1, 0.4, 1]),  # at 1: 0.3 and 0.1; at 2: 0.5 too, to the right
        ({0: 0, 1: 1}, [1, 1, 1]),  # below 0.5, or equal and to the right
        ({0: 1, 2: 0}, [1, 0.1, 1]),  # equal to the last of two minima, but to its left
        ({2: 1}, [0.5, 0.4, 1]),  # 0.5 at 0 is to the left and would have been kept
    ],
)
def test_low_confidence_by_hand(kept: dict[int, int], expected: list[float]) -> None:
    found = by_hand(kept, Decoding(rule="low_confidence"))
    assert found == pytest.approx(expected, abs=1e-12)


def test_confidence_is_at_temperature_1_and_the_mass_is_the_rollouts() -> None:
    """The sets are those of KAPPA; their mass is that of p_T, in which position 2 lacks a token."""
    p_T = [[0.7, 0.2, 0.1], [0.2, 0.8, 0.0], [0.0, 0.9, 0.1]]
    found = by_hand({1: 0}, Decoding(rule="low_confidence"), p_T)
    assert found == pytest.approx([0.1, 1, 0.1], abs=1e-12)


@pytest.mark.parametrize(
    ("threshold", "at_least", "kept", "expected"),
    [
        (0.55, 1, {1: 1}, [1, 1, 1]),  # passed: others at most 0.55
        (0.4, 1, {1: 1}, [0.5, 1, 0.5]),  # passed: others at most 0.4
        (0.5, 1, {1: 1}, [1, 1, 1]),  # 0.5 itself does not pass
        (0.55, 1, {0: 0}, [1, 0.4, 1]),  # nothing passed: as low_confidence
        (0.4, 1, {0: 0, 1: 1}, [1, 1, 0.5]),  # both passed
        (0.4, 1, {0: 1, 1: 1}, [0, 1, 0.5]),  # 0.3 was kept though it does not pass
        (0.4, 2, {0: 1, 1: 1}, [1, 1, 0.5]),  # two are kept in any case: as low_confidence
        (0.4, 3, {0: 1, 1: 1}, [0, 0, 0.5]),  # of three, a step would have kept all
        (0.4, 3, {0: 0, 1: 1}, [0, 0, 0.5]),  # and if both passed
        (0.4, 4, {0: 1, 1: 1, 2: 0}, [1, 1, 1]),  # more than there are
    ],
)
def test_threshold_by_hand(
    threshold: float, at_least: int, kept: dict[int, int], expected: list[float]
) -> None:
    decoding = Decoding(rule="threshold", threshold=threshold, at_least=at_least)
    assert by_hand(kept, decoding) == pytest.approx(expected, abs=1e-12)


def test_a_step_that_is_scored_in_part_may_have_kept_enough() -> None:
    decoding = Decoding(rule="threshold", threshold=0.4, at_least=3, whole_steps=False)
    assert by_hand({0: 1, 1: 1}, decoding) == pytest.approx([1, 1, 0.5], abs=1e-12)
    est = Trajectory(segments=None, selection=1.0)
    whole = Decoding(rule="threshold", threshold=0.4, at_least=3)
    assert est.seen(whole).whole_steps
    assert not replace(est, after_eos="mask").seen(whole).whole_steps
    assert not replace(est, segments=2).seen(whole).whole_steps


def test_plackett_luce_by_hand() -> None:
    """Of positions 0 to 3 with weights 1, 2, 3, 4, the step drew 2, then 0; 4 was not eligible."""
    seqs = with_maps([[1, 1, 1, 1, 1]], [[0, 1, 0, 1, 2]], [[1, 0, 0, 1, 0]], 5)
    hidden = torch.tensor([[[1, 1, 1, 1, 1]]]).bool()
    plan = MaskPlan(
        prompt=torch.zeros(1, 1, 2, dtype=torch.bool),
        completion=hidden,
        weight=torch.tensor([[[1.0, 0, 1, 0, 0]]]),
        choice=torch.tensor([[[1, 1, 1, 1, 0]]]).bool(),
    )
    a = torch.tensor([[[1.0, 2, 3, 4, 1]]]).log() * torch.tensor([[[1, 1, 1, 1, 0]]])
    scores = Scores(token=torch.zeros(1, 1, 5), choice=a)
    decoding = Decoding(rule="plackett_luce", position_temperature=1.0)
    found = choice_logp(seqs, plan, scores, decoding)
    assert found.exp().tolist() == [[pytest.approx(3 / 10 * 1 / 7)]]
    # the same two of a segment in which they were written by steps 1 and 0
    merged = replace(seqs, step_map=torch.tensor([[1, 2, 0, 2, 3]]))
    assert torch.equal(choice_logp(merged, plan, scores, decoding), found)
    other = replace(seqs, step_map=torch.tensor([[0, 2, 1, 2, 3]]))
    found = choice_logp(other, plan, scores, decoding)
    assert found.exp().tolist() == [[pytest.approx(1 / 10 * 3 / 9)]]


def test_plackett_luce_without_an_order_is_explained() -> None:
    seqs = sequences([[1, 1]], step_map=[[0, 0]])
    zero = torch.zeros(1, 1, 2)
    plan = plan_of_steps(with_maps([[1, 1]], [[0, 0]], [[0, 1]], 2))
    with pytest.raises(ValueError, match="no order_map; take them from our sampler"):
        choice_logp(seqs, plan, Scores(token=zero, choice=zero), PlackettLuce(steps=1).decoding(2))


@pytest.mark.parametrize("sampler", [RandomOrder, LeftToRight, ConfidenceFirst])
def test_rules_without_a_chance_of_their_own_ask_for_nothing_more(sampler) -> None:
    model = TinyDenoiser()
    seqs = with_maps([[1, 2, 1]], [[0, 1, 1]], [[0, 1, 0]], 3)
    asked: list[int] = []
    model.register_forward_pre_hook(lambda _, args: asked.append(len(args[2])))
    plan, decoding = plan_of_steps(seqs), sampler(steps=3).decoding(3)
    scores = score(model, seqs, plan, decoding)
    assert scores.choice is None
    assert asked == [3]
    assert choice_logp(seqs, plan, scores, decoding).tolist() == [[0, 0]]
