from pathlib import Path

import pytest

from rewards import PARITY, REWARDS
from rl.resolve import lookup
from rl.reward_binding import bind_reward


def test_parity_names_are_names_of_the_registry():
    assert len(PARITY) == 21
    for name, reward in PARITY.items():
        assert lookup("reward", name, REWARDS, Path()) is reward
        assert "Faults: " in reward.__doc__, name


def test_in_a_recipe():
    reports: list[tuple[str, str]] = []
    entry = {"name": "parity:trl_repetition", "ngram_size": 2, "weight": 0.5}
    bound = bind_reward(entry, "rewards[0]", Path(), lambda *report: reports.append(report))
    assert reports == []
    assert bound.name.endswith("trl_repetition")
    assert bound.weight == 0.5
    assert bound.function(["?"], ["x"], completion_ids=[[1, 1, 1]]) == [-0.5]
    wrong = {"name": "parity:trl_repetition", "ngram": 2}
    assert bind_reward(wrong, "rewards[0]", Path(), lambda *report: reports.append(report)) is None
    assert "ngram_size" in reports[0][1]


def test_an_unknown_one_is_refused():
    with pytest.raises(ValueError, match="parity:d1_sudku"):
        lookup("reward", "parity:d1_sudku", REWARDS, Path())
