"""The order of prompts."""

import itertools

import pytest

from rl.group_sampler import GroupSampler


def sampler(size: int = 7, shuffle: bool = True, seed: int = 0) -> GroupSampler:
    return GroupSampler(
        size=size, num_generations=3, window=2, repeats=2, shuffle=shuffle, seed=seed
    )


def test_order_by_hand() -> None:
    """Windows of two prompts, three completions each, every window twice; the fifth is left out."""
    order = sampler(size=5, shuffle=False)
    first, second = [0, 0, 0, 1, 1, 1], [2, 2, 2, 3, 3, 3]
    assert list(order) == first * 2 + second * 2
    assert len(order) == 24
    assert list(sampler(size=4, shuffle=False)) == first * 2 + second * 2


def test_shuffled_windows_hold_whole_groups_of_distinct_prompts() -> None:
    order = sampler()
    indices = list(order)
    assert len(indices) == len(order) == 36
    seen: list[int] = []
    for start in range(0, 36, 12):
        window = indices[start : start + 6]
        assert window == indices[start + 6 : start + 12]
        prompts = [prompt for prompt, _ in itertools.groupby(window)]
        assert window == [prompt for prompt in prompts for _ in range(3)]
        seen += prompts
    assert len(set(seen)) == 6


def test_order_depends_on_seed_and_epoch_only() -> None:
    first, again, other_seed, later = sampler(), sampler(), sampler(seed=1), sampler()
    later.set_epoch(1)
    next(iter(first))  # a started iteration leaves nothing behind
    assert list(first) == list(first) == list(again)
    assert len({tuple(x) for x in (first, other_seed, later)}) == 3
    later.set_epoch(0)
    assert list(later) == list(first)


def test_every_prompt_comes_up_over_epochs() -> None:
    order = sampler()
    seen: set[int] = set()
    for epoch in range(10):
        order.set_epoch(epoch)
        seen |= set(order)
    assert seen == set(range(7))


def test_fewer_prompts_than_a_window_are_refused() -> None:
    with pytest.raises(ValueError, match="1 training prompts, but one rollout takes 2; use more"):
        sampler(size=1)
