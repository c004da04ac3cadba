"""What a row draws depends on its seed and on nothing else."""

import pytest
import torch

from estimators import RowRandom, stable_seed


def test_strata_of_a_group_are_all_different_and_equally_likely() -> None:
    seen = torch.zeros(3, 6)
    for seed in range(600):
        random = RowRandom([1, 2, 3], [seed] * 3, places=[0, 1, 2], size=3)
        strata = random.strata(2)
        assert sorted(strata.flatten().tolist()) == [0, 1, 2, 3, 4, 5]
        alone = RowRandom([3, 1], [seed] * 2, places=[2, 0], size=3).strata(2)
        assert torch.equal(alone, strata[[2, 0]])
        seen += torch.nn.functional.one_hot(strata, 6).sum(1)
    # 200 expected in each cell; standard deviation 11.5 (two of six without replacement)
    assert float((seen - 200).abs().max()) < 4.5 * 11.5


def test_seeds_are_the_same_in_every_process_and_version() -> None:
    assert stable_seed("plan", 0, 42, "gsm8k-17", 3, 5) == 25025975206539897
    assert stable_seed(0) == 20281953224300287


def test_seeds_differ_by_every_part_and_its_type() -> None:
    seeds = {stable_seed(*parts) for parts in [(1, 2), (2, 1), (12,), ("1", "2"), ("1, 2",), ()]}
    assert len(seeds) == 6
    assert all(0 <= seed < 2**56 for seed in seeds)


@pytest.mark.parametrize("short", [1, 7, 15, 16, 31])
def test_a_longer_draw_starts_with_the_shorter_one(short: int) -> None:
    """MeanField counts on it: more left padding must not change a prompt's mask."""
    for draw in ("per_row", "per_group"):
        few = getattr(RowRandom([1, 2], [3, 3]), draw)(short)
        many = getattr(RowRandom([1, 2], [3, 3]), draw)(short + 17)
        assert torch.equal(many[:, :short], few)


def test_a_row_draws_the_same_beside_any_other_rows() -> None:
    random, apart = RowRandom([5, 6, 7], [1, 2, 1]), RowRandom([7, 5], [1, 1])
    for shape in ((4,), (2, 3)):
        together, alone = random.per_row(*shape), apart.per_row(*shape)
        assert torch.equal(alone, together[[2, 0]])
        assert not torch.equal(together[0], together[1])
        assert torch.equal(apart.per_group(*shape), random.per_group(*shape)[[2, 0]])


def test_rows_of_a_group_share_group_numbers_only() -> None:
    random = RowRandom([1, 2, 3], [9, 8, 9])
    group, row = random.per_group(6), random.per_row(6)
    assert torch.equal(group[0], group[2])
    assert not torch.equal(group[0], group[1])
    assert not torch.equal(row[0], row[2])


def test_successive_draws_differ_and_the_global_generator_is_not_touched() -> None:
    before = torch.get_rng_state()
    random = RowRandom([1])
    first, second = random.per_row(5), random.per_row(5)
    assert not torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


def test_numbers_are_uniform_in_float64() -> None:
    """40,000 numbers: standard error of the mean 0.0015, of the variance 0.0004."""
    numbers = RowRandom([3, 4]).per_row(20_000)
    assert numbers.dtype == torch.float64
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 4 * 0.0015
    assert abs(numbers.var() - 1 / 12) < 4 * 0.0004


def test_without_groups_every_row_is_its_own() -> None:
    group = RowRandom([4, 5]).per_group(3)
    assert not torch.equal(group[0], group[1])
    assert len(RowRandom([4, 5])) == 2


def test_numbers_of_seeds_must_agree() -> None:
    with pytest.raises(ValueError, match="2 row seeds but 3 group seeds"):
        RowRandom([1, 2], [1, 1, 1])


def test_rollout_numbers_are_shared_by_the_passes_and_by_no_other_draw() -> None:
    first, second = (
        RowRandom([10 + k, 20 + k], rollouts=[7, 8], pass_index=k, passes=2) for k in (0, 1)
    )
    assert torch.equal(first.per_rollout(5), second.per_rollout(5))
    assert not torch.equal(first.per_row(5), second.per_row(5))
    alone = RowRandom([7])  # a row is its own rollout, but its numbers are others
    assert not torch.equal(alone.per_rollout(5), alone.per_row(5))


def test_a_pass_is_one_of_so_many() -> None:
    assert (RowRandom([1]).pass_index, RowRandom([1]).passes) == (0, 1)
    with pytest.raises(AssertionError, match="pass 2 of 2"):
        RowRandom([1], pass_index=2, passes=2)
