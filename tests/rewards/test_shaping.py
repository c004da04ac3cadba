import math

import pytest
from trl.rewards import get_repetition_penalty_reward, get_soft_overlong_punishment

from rewards import REWARDS, cosine, overlong, repetition
from rewards.values import Failed, Unsettled


def chat(*texts: str) -> list[list[dict[str, str]]]:
    return [[{"role": "assistant", "content": text}] for text in texts]


@pytest.mark.parametrize(
    ("length", "value"),
    [(0, 0.0), (80, 0.0), (81, -0.05), (90, -0.5), (100, -1.0), (101, -1.0), (10_000, -1.0)],
)
def test_overlong(length: int, value: float):
    settings = {"max_length": 100, "buffer": 20}
    found = overlong(["?"], ["x"], [[1] * length], **settings)
    assert found == [pytest.approx(value)]
    assert overlong(["?"], chat("x" * length), unit="characters", **settings) == found
    trl = get_soft_overlong_punishment(max_completion_len=100, soft_punish_cache=20)
    assert trl([[1] * length]) == pytest.approx(found)


def test_what_follows_the_end_token_has_no_length():
    """A canvas of 100 positions of which 10 are text."""
    canvas = [5] * 10 + [0] * 90
    assert overlong(["?"], ["x"], [canvas], max_length=100, buffer=20) == [-1.0]
    assert overlong(["?"], ["x"], [canvas], max_length=100, buffer=20, end_ids=[0]) == [0.0]
    text = "short<|endoftext|>" + "x" * 1000
    assert overlong(["?"], [text], max_length=100, buffer=20, unit="characters") == [0.0]


@pytest.mark.parametrize(
    ("ids", "ngram", "value"),
    [
        ([1, 2, 3, 4], 2, 0.0),
        ([5, 5, 5, 5, 5], 2, -0.75),
        ([1, 2, 1, 2, 1], 2, -0.5),
        ([1], 2, 0.0),
        ([], 1, 0.0),
        ([7, 7], 1, -0.5),
    ],
)
def test_repetition(ids: list[int], ngram: int, value: float):
    assert repetition(["?"], ["x"], [ids], ngram=ngram) == [pytest.approx(value)]
    trl = get_repetition_penalty_reward(ngram_size=ngram, max_penalty=-1.0)
    assert trl([ids]) == pytest.approx([value])
    words = " ".join(map(str, ids))
    assert repetition(["?"], chat(words), ngram=ngram, unit="words") == [pytest.approx(value)]
    assert repetition(["?"], ["x"], [ids], ngram=ngram, max_penalty=-0.1) == [
        pytest.approx(value / 10)
    ]


def test_repetition_counts_words_in_any_case_and_no_padding():
    assert repetition(["?"], ["The the THE"], ngram=1, unit="words") == [pytest.approx(-2 / 3)]
    assert repetition(["?"], ["x"], [[1, 2, 0, 0, 0, 0]], ngram=1, end_ids=[0]) == [0.0]


ROW = {"numbers": [[3, 4]] * 3, "target": [7] * 3}


def test_cosine_by_hand():
    """Right and wrong at no length, half and all of it; 1.5 times as long is not better again."""
    values = {}
    for length in (0, 50, 100, 150):
        ids = [[1] * length] * 3
        values[length] = cosine(
            ["?"] * 3, chat("3+4", "3*4", "nothing"), ids, reward="countdown", max_length=100, **ROW
        )
    assert values[0] == pytest.approx([1.0, -1.0, -1.0])
    assert values[50] == pytest.approx([0.75, -0.75, -0.75])
    assert values[100] == values[150] == pytest.approx([0.5, -0.5, -0.5])
    quarter = cosine(["?"], ["3+4"], [[1] * 25], reward="countdown", max_length=100,
                     numbers=[[3, 4]], target=[7], right=(2.0, 0.0))  # fmt: skip
    assert quarter == [pytest.approx(1 + math.sqrt(0.5))]


def test_cosine_skips_what_its_grader_skips():
    found = cosine(
        ["?"] * 2, ["3+4"] * 2, [[1], [1]], reward="countdown", numbers=[[3, 4], None],
        target=[7, 7], max_length=10_000,
    )  # fmt: skip
    assert found == [pytest.approx(1.0, abs=1e-3), None]


def test_cosine_keeps_the_note_that_its_grader_was_too_slow(monkeypatch: pytest.MonkeyPatch):
    late = Unsettled(0.0, Failed("timeouts", "was late"))
    monkeypatch.setitem(REWARDS, "slow", lambda completion: late)
    (found,) = cosine(["?"], ["x"], [[1] * 100], reward="slow", max_length=100)
    assert found == -0.5
    assert isinstance(found, Unsettled)
    assert found.failed is late.failed


@pytest.mark.parametrize(
    ("reward", "settings", "message"),
    [
        (overlong, {"buffer": 0}, "0 < buffer <= max_length"),
        (overlong, {"buffer": 11, "max_length": 10}, "0 < buffer <= max_length"),
        (overlong, {"completion_ids": None}, "set unit: characters"),
        (cosine, {"completion_ids": None, "reward": "countdown"}, "set unit: characters"),
        (cosine, {"max_length": 0}, "max_length is 0"),
        (cosine, {"reward": "cosine"}, "the name of a grader"),
        (cosine, {"reward": "countdwn"}, "the name of a grader"),
        (cosine, {"reward": "overlong"}, "the name of a grader"),
        (cosine, {"reward": "parity:trl_accuracy"}, "the name of a grader"),
        (repetition, {"ngram": 0}, "ngram >= 1"),
        (repetition, {"max_penalty": 1.0}, "max_penalty <= 0"),
        (repetition, {"completion_ids": None}, "set unit: words"),
    ],
)
def test_settings_that_make_no_sense(reward, settings: dict[str, object], message: str):
    arguments = {"completion_ids": [[1]], "numbers": [[3, 4]], "target": [7]} | settings
    with pytest.raises(ValueError, match=message):
        reward(["?"], ["3+4"], **arguments)
