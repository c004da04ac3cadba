"""Groups of completions: what they cost, and that their gradient is the policy gradient."""

import pytest

from estimators import MeanField, Trajectory
from rl.rollout_schemes import Tree
from rl.samplers import ConfidenceFirst, LowConfidence
from scripts.bench.decoders import COMPLETIONS
from scripts.bench.groups import GroupRow, bench_groups
from scripts.bench.tiny import TinyDenoiser

LAST = Tree(branching=(4, 4), parts=(1, 1))
FIRST_SYMBOL = COMPLETIONS.eq(0).double().mean(-1)  # a reward with little noise
TREES = {"independent": Tree(branching=(8,)), "last step": LAST}


def compared(denoiser: TinyDenoiser, **how: int) -> dict[tuple[str, str], GroupRow]:
    rows = bench_groups(
        {"one step": MeanField(prompt_mask_prob=0.0), "trajectory": Trajectory(segments=None)},
        {"confidence_first": ConfidenceFirst(steps=2)},
        TREES,
        denoiser,
        FIRST_SYMBOL,
        **how,
    )
    return {(row.estimator, row.rollout): row for row in rows}


def test_last_steps_cost_nothing_and_lessen_the_noise(denoiser: TinyDenoiser) -> None:
    rows = compared(denoiser, groups=400)
    alone, tree = rows["trajectory", "independent"], rows["trajectory", "last step"]
    assert (alone.completions, tree.completions) == (8, 16)
    # one canvas at the start, then at most one for each prefix
    assert tree.rollout_forwards == pytest.approx(tree.scored_forwards)
    assert tree.scored_forwards <= 1 + 4
    assert alone.rollout_forwards == pytest.approx(alone.scored_forwards)
    assert alone.scored_forwards <= 1 + 8
    assert rows["one step", "last step"].scored_forwards == pytest.approx(1)
    assert tree.relvar * tree.cost < alone.relvar * alone.cost / 1.3
    assert tree.cosine == pytest.approx(1, abs=0.02)
    assert rows["one step", "last step"].cosine < 0.98


def test_cost_counts_a_backward_pass_as_two() -> None:
    row = GroupRow(
        estimator="", sampler="", rollout="", completions=8, cosine=0.9, cosine_error=0.0,
        relvar=2.0, rollout_forwards=5.0, scored_forwards=4.0,
    )  # fmt: skip
    assert row.cost == 5 + 3 * 4
    assert row.reachable(34.0) == pytest.approx(0.9 / 2**0.5)


def test_the_choice_of_positions_completes_the_gradient(denoiser: TinyDenoiser) -> None:
    rows = bench_groups(
        {"tokens": Trajectory(segments=None), "all": Trajectory(segments=None, selection=1.0)},
        {"low_confidence": LowConfidence(steps=4)},
        {"tree": Tree(branching=(4, 4), parts=(3, 1))},
        denoiser,
        FIRST_SYMBOL,
        groups=400,
    )
    tokens, whole = rows
    assert whole.cosine == pytest.approx(1, abs=0.02)
    assert tokens.relvar < whole.relvar
