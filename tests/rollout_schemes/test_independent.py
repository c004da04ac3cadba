"""Plain rollouts, and what a window does with ranks."""

import torch

from estimators import stable_seed
from rl.advantages import GroupAdvantage
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel
from rl.rollout_schemes import Independent
from rl.rollouts import write_completions
from rl.samplers import LowConfidence

from .conftest import LENGTH, NewWindow, on_rank, rows_of


def test_completions_are_written_apart_and_compared(window: NewWindow, loaded: LoadedModel) -> None:
    rows = rows_of("ab", "abcd", group=2)
    values = iter([1.0, 0.0, 3.0, 5.0])
    w = window(rows, group=2, reward=lambda row, text: next(values))
    rollouts = Independent()(w)
    assert rollouts.advantages.tolist() == [0.5, -0.5, -1.0, 1.0]
    seeds = [stable_seed("rollout", 0, row["id"], 7, i % 2) for i, row in enumerate(rows)]
    expected = write_completions(
        ModelDenoiser.of(loaded), LowConfidence(steps=4), loaded, rows,
        length=LENGTH, seeds=seeds, device=torch.device("cpu"),
    )  # fmt: skip
    found = rollouts.completions
    assert torch.equal(found.sequences.completion_ids, expected.sequences.completion_ids)
    assert torch.equal(found.sequences.step_map, expected.sequences.step_map)
    assert found.texts == expected.texts


def test_groups_may_lie_on_two_ranks(window: NewWindow) -> None:
    everyone = torch.tensor([1.0, 0.0, 3.0, 5.0])
    mean = GroupAdvantage(scale="none")
    for rank in (0, 1):
        w = on_rank(window(rows_of("a", group=2), group=4, advantage=mean), rank, everyone)
        expected = (everyone - everyone.mean())[2 * rank : 2 * rank + 2]
        assert torch.equal(w.compare(everyone[2 * rank : 2 * rank + 2], 4), expected)
