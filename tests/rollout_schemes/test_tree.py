"""A tree of completions: what siblings share, and whom a reward is credited to."""

import math
import re

import pytest
import torch

from estimators import RowRandom, Trajectory
from rl.advantages import GroupAdvantage
from rl.rollout_schemes import Tree
from rl.samplers import LowConfidence, RandomOrder, Threshold

from .conftest import NewWindow, on_rank, rows_of

SIBLINGS = GroupAdvantage(baseline="leave_one_out", scale="none")


def leaves(window: NewWindow, scheme: Tree, *prompts: str, steps: int = 4, **how):
    group = math.prod(scheme.branching)
    sampler = RandomOrder(steps=steps, temperature=2.0)
    return scheme(window(rows_of(*prompts, group=group), group=group, sampler=sampler, **how))


def test_siblings_share_exactly_what_was_written_before_they_part(window: NewWindow) -> None:
    scheme = Tree(branching=(2, 2, 2))
    sequences = leaves(window, scheme, "ab", "abcd", steps=6).completions.sequences
    ids, level = sequences.completion_ids, sequences.recorded("step_map") * 3 // 6
    assert level.unique().tolist() == [0, 1, 2]
    for first in range(0, 16, 8):
        for a in range(8):
            for b in range(a):
                shared = 3 - (a ^ b).bit_length()  # parts that both are below the same nodes of
                i, j = first + a, first + b
                before = level[i] < shared
                assert torch.equal(before, level[j] < shared)
                assert torch.equal(ids[i, before], ids[j, before])
                assert torch.equal(sequences.step_map[i, before], sequences.step_map[j, before])
                assert not torch.equal(ids[i, ~before], ids[j, ~before])
    assert len({tuple(row) for row in ids.tolist()}) == 16
    assert bool((ids >= 0).all())


def test_a_tree_does_not_depend_on_its_neighbours_or_on_batches(window: NewWindow) -> None:
    scheme = Tree(branching=(2, 2))
    both = leaves(window, scheme, "abcd", "ab").completions.sequences
    alone = leaves(window, scheme, "ab").completions.sequences
    cut = leaves(window, scheme, "abcd", "ab", batch_size=3).completions.sequences
    assert torch.equal(both.completion_ids[4:], alone.completion_ids)
    assert torch.equal(both.completion_ids, cut.completion_ids)
    assert torch.equal(both.step_map, cut.step_map)


@pytest.mark.parametrize("steps", [3, 4, 5])
def test_trajectory_scores_each_part_from_the_canvas_it_was_written_on(
    window: NewWindow, steps: int
) -> None:
    """Also where the parts are not equally long: 3 steps are 2 and 1, 5 are 3 and 2."""
    sequences = leaves(window, Tree(branching=(2, 2)), "ab", steps=steps).completions.sequences
    plan = Trajectory(segments=2).plan(sequences, RowRandom([0] * 4))
    late = sequences.recorded("step_map") >= -(-steps // 2)
    assert torch.equal(plan.completion, torch.stack([torch.ones_like(late), late], dim=1))
    assert torch.equal(plan.weight != 0, torch.stack([~late, late], dim=1))
    # so siblings are scored from equal canvases
    shown = sequences.completion_ids[:, None].masked_fill(plan.completion, -1)
    assert torch.equal(shown[0::2], shown[1::2])


def test_credit_is_that_of_the_branch_which_wrote_the_token(window: NewWindow) -> None:
    scheme = Tree(branching=(2, 2))
    w = window(rows_of("a", group=4), group=4, advantage=SIBLINGS)
    level = torch.tensor([[0, 1], [1, 0], [0, 1], [0, 0]])
    rewards = torch.tensor([1.0, 0.0, 1.0, 1.0])
    # nodes: 1/2 and 1, so -1/2 and +1/2; leaves: 1 and 0, so +1 and -1; 1 and 1, so 0 and 0
    expected = torch.tensor([[-0.5, 1.0], [-1.0, -0.5], [0.5, 0.0], [0.5, 0.5]])
    assert torch.equal(scheme.credit(rewards, level, w), expected)
    by_node = Tree(branching=(2, 2), weight="node").credit(rewards, level, w)
    assert torch.equal(by_node, torch.where(level == 0, expected / 2, expected))


def test_sibling_mean_leaves_the_node_itself_out(window: NewWindow) -> None:
    w = window(rows_of("a", group=3), group=3, advantage=SIBLINGS)
    credit = Tree(branching=(3,)).credit(
        torch.tensor([1.0, 0.0, 0.5]), torch.zeros(3, 1, dtype=torch.long), w
    )
    torch.testing.assert_close(credit[:, 0], torch.tensor([0.75, -0.75, 0.0]))


def test_a_leaf_that_was_not_graded_counts_for_nobody(window: NewWindow) -> None:
    w = window(rows_of("a", group=4), group=4, advantage=SIBLINGS)
    rewards = torch.tensor([math.nan, 0.0, 1.0, 0.0])
    level = torch.tensor([[0, 1]] * 4)
    credit = Tree(branching=(2, 2)).credit(rewards, level, w)
    assert credit.tolist() == [[-0.5, 0.0], [-0.5, 0.0], [0.5, 1.0], [0.5, -1.0]]


def test_ranks_credit_their_own_trees(window: NewWindow) -> None:
    """Each part is compared over all ranks; a rank takes its own trees."""
    w = window(rows_of("a", group=2), group=2, advantage=SIBLINGS)
    level = torch.zeros(2, 1, dtype=torch.long)
    everyone = torch.tensor([1.0, 0.0, 0.25, 0.75])
    credits = [
        Tree(branching=(2,)).credit(everyone[2 * r : 2 * r + 2], level, on_rank(w, r, everyone))
        for r in (0, 1)
    ]
    assert [credit[:, 0].tolist() for credit in credits] == [[1.0, -1.0], [-0.5, 0.5]]


def test_parts_of_unequal_length_and_branching(window: NewWindow) -> None:
    """Three prefixes of three steps, each with two last steps."""
    scheme = Tree(branching=(3, 2), parts=(3, 1))
    sequences = leaves(window, scheme, "ab", steps=4).completions.sequences
    prefixes = sequences.completion_ids.masked_fill(sequences.step_map == 3, -1)
    assert torch.equal(prefixes[0::2], prefixes[1::2])
    assert len({tuple(row) for row in prefixes.tolist()}) == 3
    assert len({tuple(row) for row in sequences.completion_ids.tolist()}) == 6


@pytest.mark.parametrize(
    ("branching", "parts", "ends"),
    [
        ((8, 4), "last_step", [7, 8]),
        ((2, 2, 2), "last_step", [4, 7, 8]),
        ((4,), "last_step", [8]),
        ((2, 2), None, [4, 8]),
        ((2, 2, 2), None, [3, 6, 8]),
        ((2, 2), (3, 1), [6, 8]),
    ],
)
def test_where_the_parts_of_eight_steps_end(branching, parts, ends: list[int]) -> None:
    assert Tree(branching=branching, parts=parts).ends(8) == ends


def test_all_parts_are_divided_by_the_spread_of_the_whole_group(window: NewWindow) -> None:
    w = window(rows_of("a", group=4), group=4, advantage=GroupAdvantage(scale="group"))
    rewards, level = torch.tensor([1.0, 0.0, 1.0, 1.0]), torch.tensor([[0, 1]] * 4)
    plain = window(rows_of("a", group=4), group=4, advantage=GroupAdvantage(scale="none"))
    expected = Tree(branching=(2, 2)).credit(rewards, level, plain) / (0.5 + 1e-4)
    torch.testing.assert_close(Tree(branching=(2, 2)).credit(rewards, level, w), expected)


BAD = {
    "no part": (Tree, {"branching": ()}, r"branching is \[\]; use one number for each part"),
    "branching": (Tree, {"branching": (2, 1)}, r"branching is \[2, 1\]; .* each at least 2"),
    "parts": (Tree, {"parts": (3, 1, 1)}, r"parts are \[3, 1, 1\]; .* each of the 2 numbers"),
    "empty part": (Tree, {"parts": (3, 0)}, r"parts are \[3, 0\]; use one length, at least 1"),
}


@pytest.mark.parametrize(("scheme", "settings", "message"), BAD.values(), ids=BAD)
def test_settings(scheme: type, settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scheme(**settings)


def test_what_a_tree_needs_of_the_other_sections() -> None:
    tree = Tree(branching=(4, 4))
    tree.validate(num_generations=16, length=8, sampler=LowConfidence(steps=2))
    with pytest.raises(ValueError, match="gives 16 completions per prompt, but trainer"):
        tree.validate(num_generations=8, length=8, sampler=LowConfidence(steps=2))
    with pytest.raises(ValueError, match=re.escape("would end after steps [1, 1]; every part")):
        tree.validate(num_generations=16, length=8, sampler=LowConfidence(steps=1))
    with pytest.raises(ValueError, match="threshold decoding has none"):
        tree.validate(num_generations=16, length=8, sampler=Threshold(steps=4))
