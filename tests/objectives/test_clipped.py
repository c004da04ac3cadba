"""Hand-computed values for every branch of the clipped surrogate, and its exact gradients."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from estimators import Estimate
from rl.objectives import Clipped

from .cases import case, estimate, gradients, tensor, values

LEVELS: list[Any] = ["token", "step", "sequence"]
EVERY_LEVEL = pytest.mark.parametrize("level", LEVELS)


def ratios(*rows: list[float], **parts: Any) -> Estimate:
    return estimate(tensor(rows).log(), **parts)


# ratio, advantage -> -min(r A, clip(r, 0.8, 1.3) A), clipped below, clipped above
PPO = [
    (1.5, 1.0, -1.3, 0, 1),  # good and already likelier: the gain is capped
    (0.5, 1.0, -0.5, 0, 0),  # good but less likely: not capped, pull it up
    (0.5, -1.0, 0.8, 1, 0),  # bad and already unlikelier: capped
    (1.5, -1.0, 1.5, 0, 0),  # bad but likelier: not capped, push it down
    (1.25, 2.0, -2.5, 0, 0),  # inside, above 1; outside if epsilon_high were epsilon
    (0.9, -2.0, 1.8, 0, 0),  # inside, below 1
    (1.5, 0.0, 0.0, 0, 0),
]
# -clip(r, 0.8, 1.3) A
UNCONDITIONAL = [
    (1.5, 1.0, -1.3, 0, 1),
    (0.5, 1.0, -0.8, 1, 0),
    (0.5, -1.0, 0.8, 1, 0),
    (1.5, -1.0, 1.3, 0, 1),
    (1.25, 2.0, -2.5, 0, 0),
    (0.9, -2.0, 1.8, 0, 0),
    (1.5, 0.0, 0.0, 0, 0),
]
# -clip(r, 0.8, 1.3) A log p, where log p = log r as the old log-prob is 0
CISPO = [(r, a, loss * math.log(r), low, high) for r, a, loss, low, high in UNCONDITIONAL]
BRANCHES = [
    *[("ppo", *row) for row in PPO],
    *[("unconditional", *row) for row in UNCONDITIONAL],
    *[("cispo", *row) for row in CISPO],
]


@EVERY_LEVEL
@pytest.mark.parametrize(("clip", "ratio", "advantage", "loss", "low", "high"), BRANCHES)
def test_every_branch(clip, ratio, advantage, loss, low, high, level) -> None:
    objective = Clipped(level=level, clip=clip, epsilon=0.2, epsilon_high=0.3)
    out = case(ratios([ratio]), [advantage]).apply(objective)
    assert out.loss.item() == pytest.approx(loss, abs=1e-12)
    expected = {"ratio/mean": ratio, "clip_ratio/low": low, "clip_ratio/high": high}
    assert values(out) == pytest.approx(expected, abs=1e-12)


# d loss / d log-ratio: -r A inside, 0 where the clip holds, and in CISPO never 0
SLOPES = [
    ("ppo", 1.5, 1.0, 0.0),
    ("ppo", 0.5, 1.0, -0.5),
    ("ppo", 0.5, -1.0, 0.0),
    ("ppo", 1.5, -1.0, 1.5),
    ("ppo", 1.1, 2.0, -2.2),
    ("unconditional", 1.5, 1.0, 0.0),
    ("unconditional", 0.5, 1.0, 0.0),
    ("unconditional", 0.5, -1.0, 0.0),
    ("unconditional", 1.5, -1.0, 0.0),
    ("unconditional", 1.1, -2.0, 2.2),
    ("cispo", 1.5, 1.0, -1.2),
    ("cispo", 0.5, 1.0, -0.8),
    ("cispo", 0.5, -1.0, 0.8),
    ("cispo", 1.5, -1.0, 1.2),
    ("cispo", 1.1, 2.0, -2.2),
]


@EVERY_LEVEL
@pytest.mark.parametrize(("clip", "ratio", "advantage", "slope"), SLOPES)
def test_gradient_of_every_branch(level, clip, ratio, advantage, slope) -> None:
    (found,) = gradients(Clipped(level=level, clip=clip), case(ratios([ratio]), [advantage]))
    assert found.item() == pytest.approx(slope, abs=1e-12)


@EVERY_LEVEL
def test_the_upper_bound_is_epsilon_unless_given(level: Any) -> None:
    out = case(ratios([1.25]), [2.0]).apply(Clipped(level=level, epsilon=0.2))
    assert out.loss.item() == pytest.approx(-2.4, abs=1e-12)


def test_an_epsilon_of_1_leaves_small_ratios_alone() -> None:
    objective = Clipped(clip="unconditional", epsilon=1.0, epsilon_high=0.5)
    out = case(ratios([1e-6, 2.0]), [1.0]).apply(objective)
    assert out.loss.item() == pytest.approx(-(1e-6 + 1.5) / 2, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "ratio", "loss"),
    [
        # ratios 4, 1/2, (1), [8]: the third is not masked by this plan, the fourth not scored
        ({"aggregation": "sequence_mean"}, 2 ** (1 / 3), 3 * 2 ** (1 / 3)),
        ({"aggregation": "token_mean"}, 2 ** (1 / 3), 3 * 2 ** (1 / 3)),
        ({"normalize_ratio": "canvas", "aggregation": "constant"}, 2 ** 0.25, 3 * 2 ** 0.25),
        ({"normalize_ratio": "none", "aggregation": "sequence_mean"}, 2.0, 3 * 2 / 3),
        ({"normalize_ratio": "none", "aggregation": "sequence_sum"}, 2.0, 3 * 2),
    ],
)  # fmt: skip
def test_sequence_ratios_as_published(settings: Any, ratio: float, loss: float) -> None:
    """GSPO, the same per token, ESPO, GDPO, and without any normalisation."""
    new = ratios([4.0, 0.5, 1.0, 8.0], mask=[[True, True, False, False]])
    c = case(new, [3.0], scored=torch.tensor([[True, True, True, False]]))
    out = c.apply(Clipped(level="sequence", epsilon=0.9, epsilon_high=9.0, **settings))
    assert out.loss.item() == pytest.approx(-loss, abs=1e-12)
    assert values(out)["ratio/mean"] == pytest.approx(ratio, abs=1e-12)
    assert out.metrics["ratio/mean"][1].item() == 1


def test_a_step_ratio_is_the_product_over_its_view() -> None:
    """Views 0 and 1 have ratios 2 * 0.4 and 3; the third token is not masked, view 2 is empty."""
    new = ratios([2.0, 3.0, 9.0, 0.4], mask=[[1, 1, 0, 1]], view=[[0, 1, 2, 0]])
    out = case(new, [1.0]).apply(
        Clipped(level="step", epsilon=0.3, epsilon_high=1.0, aggregation="sequence_sum")
    )
    assert out.loss.item() == pytest.approx(-(0.8 + 2.0), abs=1e-12)
    assert values(out) == pytest.approx(
        {"ratio/mean": (0.8 + 3) / 2, "clip_ratio/low": 0, "clip_ratio/high": 1 / 2}
    )


def test_a_step_has_the_mean_of_its_tokens_advantages() -> None:
    new = ratios([1.1, 1.2, 1.0], mask=[[1, 1, 0]], view=[[0, 0, 1]])
    out = case(new, [[1.0, 2.0, 50.0]]).apply(
        Clipped(level="step", epsilon=0.5, aggregation="sequence_sum")
    )
    assert out.loss.item() == pytest.approx(-1.1 * 1.2 * 1.5, abs=1e-12)


def test_steps_need_each_token_in_one_view() -> None:
    new = replace(ratios([1.0, 1.0]), view=torch.tensor([[0, -1]]))
    with pytest.raises(ValueError, match="needs an estimator that scores each token in one view"):
        case(new, [1.0]).apply(Clipped(level="step"))
    with pytest.raises(ValueError, match="compares single views, but the estimate has none"):
        case(replace(new, view_logp=None), [1.0]).apply(Clipped(level="step"))


@pytest.mark.parametrize(
    ("level", "loss"), [("token", 1.1 * 3 + 1.2 * 7), ("step", 1.1 * 3 + 1.2 * 7)]
)
def test_importance_multiplies_losses_and_is_in_no_exponent(level: Any, loss: float) -> None:
    new = ratios([1.1, 1.2], view=[[0, 1]], importance=[[3.0, 7.0]])
    out = case(new, [1.0]).apply(Clipped(level=level, epsilon=0.5, aggregation="sequence_sum"))
    assert out.loss.item() == pytest.approx(-loss, abs=1e-12)


def test_importance_is_inside_a_sequences_log_prob() -> None:
    """It is a sum over terms, and the sum's weights are the importances."""
    new = ratios([1.1, 1.2], view=[[0, 1]], importance=[[3.0, 2.0]])
    objective = Clipped(level="sequence", normalize_ratio="none", epsilon_high=9.0,
                        aggregation="sequence_sum")  # fmt: skip
    out = case(new, [1.0]).apply(objective)
    assert out.loss.item() == pytest.approx(-(1.1**3) * 1.2**2, abs=1e-12)


# --- choices of positions: two tokens and a choice in view 0, one token and a choice in view 1
CHOOSING = {"view": [[0, 0, 1]], "importance": [[1.0, 2.0]], "choice": tensor([[1.5, 0.6]]).log()}


@pytest.mark.parametrize(
    ("level", "epsilon_choice", "loss"),
    [
        ("token", None, 1.1 + 1.2 + 2 * 0.9 + 1.2 + 2 * 0.6),
        ("token", 0.4, 1.1 + 1.2 + 2 * 0.9 + 1.4 + 2 * 0.6),
        ("step", None, 1.2 + 2 * (0.9 * 0.6)),
        ("step", 0.4, 1.2 + 2 * 0.9 + 1.4 + 2 * 0.6),
        ("sequence", None, 3 * (1.1 * 1.2 * 0.9**2 * 1.5 * 0.6**2) ** (1 / 3)),
        ("sequence", 0.4, 3 * (1.1 * 1.2 * 0.9**2) ** (1 / 3) + 3 * (1.5 * 0.6**2) ** (1 / 3)),
    ],
)
def test_choices_are_terms_or_have_a_clip_of_their_own(level, epsilon_choice, loss) -> None:
    """A = 1, clipped above at 1.2 for tokens, and at 1.4 for choices if they have their own."""
    new = ratios([1.1, 1.2, 0.9], **CHOOSING)
    objective = Clipped(level=level, epsilon_choice=epsilon_choice, aggregation="sequence_sum")
    out = case(new, [1.0]).apply(objective)
    assert out.loss.item() == pytest.approx(-loss, abs=1e-12)
    assert ("choice_ratio/mean" in out.metrics) == (epsilon_choice is not None)


def test_drawn_choices_have_the_ratio_of_all_of_them() -> None:
    """Two of four steps, each of importance 2; the four choices have equal ratios."""
    every = ratios([1.0] * 4, view=[[0, 1, 2, 3]], choice=tensor([[1.1] * 4]).log())
    drawn = ratios(
        [1.0] * 2, view=[[0, 1]], importance=[[2.0, 2.0]], choice=tensor([[1.1] * 2]).log()
    )
    objective = Clipped(level="sequence", epsilon_choice=0.15, aggregation="sequence_sum")
    losses = [case(new, [1.0]).apply(objective) for new in (every, drawn)]
    assert [values(out)["choice_ratio/mean"] for out in losses] == pytest.approx([1.1, 1.1])
    assert losses[0].loss.item() == pytest.approx(-4 - 4 * 1.1)
    assert losses[1].loss.item() == pytest.approx(-2 - 4 * 1.1)


@pytest.mark.parametrize("flip", [-30.0, 30.0])
def test_a_choice_that_flips_is_held(flip: float) -> None:
    """Bad completions have no bound from above of their own."""
    out = case(ratios([1.0], choice=[[flip]]), [-1.0]).apply(
        Clipped(epsilon=0.9, aggregation="sequence_sum")
    )
    assert out.loss.item() == pytest.approx(1 + (5.0 if flip > 0 else 1 / 5))


def test_metrics_of_choices() -> None:
    out = case(ratios([1.1, 1.3, 0.7], **CHOOSING), [1.0]).apply(Clipped(epsilon_choice=0.4))
    expected = {
        "ratio/mean": (1.1 + 1.3 + 0.7) / 3, "clip_ratio/low": 0, "clip_ratio/high": 1 / 3,
        "choice_ratio/mean": (1.5 + 0.6) / 2, "choice_clip_ratio/low": 0,
        "choice_clip_ratio/high": 1 / 2,
    }  # fmt: skip
    assert values(out) == pytest.approx(expected)


def test_a_clip_of_choices_needs_choices() -> None:
    with pytest.raises(ValueError, match="epsilon_choice clips the choices of positions, but"):
        case(ratios([1.0]), [1.0]).apply(Clipped(epsilon_choice=0.2))


# two rows, 1 and 3 scored tokens of 4: token losses are -ratio * advantage, far from the clip
SCORED = torch.tensor([[True, False, False, False], [True, True, True, False]])


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("token_mean", -(1.1 * 2 + (0.9 + 1.2 + 1.05) * -1) / 4),
        ("sequence_mean", -(1.1 * 2 + (0.9 + 1.2 + 1.05) / 3 * -1) / 2),
        ("constant", -(1.1 * 2 + (0.9 + 1.2 + 1.05) * -1) / (2 * 4)),
        ("sequence_sum", -(1.1 * 2 + (0.9 + 1.2 + 1.05) * -1) / 2),
    ],
)
def test_aggregations_by_hand(aggregation: Any, expected: float) -> None:
    new = ratios([1.1, 1.0, 1.0, 1.0], [0.9, 1.2, 1.05, 1.0], mask=SCORED)
    c = case(new, [2.0, -1.0], scored=SCORED)
    out = c.apply(Clipped(epsilon=0.5, aggregation=aggregation))
    assert out.loss.item() == pytest.approx(expected, abs=1e-12)


def test_token_means_divide_by_scored_tokens_not_by_masked_ones() -> None:
    """The plan masked one of two scored tokens: half the loss, so that its mean is right."""
    new = estimate([[0.0, 0.0]], [[True, False]])
    assert case(new, [1.0]).apply(Clipped()).loss.item() == pytest.approx(-0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, r"epsilon is 0.0; it must be in \(0, 1\]"),
        ({"epsilon": 1.5}, r"epsilon is 1.5; it must be in \(0, 1\]"),
        ({"epsilon_high": 0.0}, "epsilon_high is 0.0; it must be positive or null"),
        ({"epsilon_choice": 1.1}, r"epsilon_choice is 1.1; it must be in \(0, 1\] or null"),
        (
            {"normalize_ratio": "canvas"},
            "normalize_ratio is 'canvas', but only ratios of sequences are normalised; "
            "set level to sequence",
        ),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Clipped(**settings)
