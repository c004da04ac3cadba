import csv
import functools
import json
from pathlib import Path
from random import Random
from statistics import mean

import pyarrow.parquet
import pytest

from rewards import REWARDS
from rewards.baselines import BASELINES


@functools.cache
def d1_sudoku(folder: Path) -> list[dict[str, str]]:
    with (folder / "sudoku4x4" / "d1_4x4_test_sudoku.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    return [{"puzzle": row["Puzzle"], "solution": row["Solution"]} for row in rows]


@pytest.mark.parametrize(
    ("policy", "d1", "ours"),
    [
        ("constant", 25.6, 0.0),
        ("constant_filler", 25.6, 0.0),
        # on these puzzles, 8 of 16 cells empty, one greedy pass does solve three of four
        ("greedy_filler", 85.3, 73.2),
        ("row_filler", 47.9, 1.6),
    ],
)
def test_sudoku(shared_data: Path, policy: str, d1: float, ours: float):
    write, rng = BASELINES["sudoku"][policy], Random(0)
    assert BASELINES["parity:d1_sudoku"][policy] is write
    rows = d1_sudoku(shared_data)
    texts = [write(rng, puzzle=row["puzzle"]) for row in rows]
    theirs = [REWARDS["parity:d1_sudoku"](t, **row) for t, row in zip(texts, rows, strict=True)]
    assert 100 * mean(theirs) == pytest.approx(d1, abs=0.05)
    for shaped in (False, True):
        score = functools.partial(REWARDS["sudoku"], shaped=shaped)
        scores = [score(t, puzzle=row["puzzle"]) for t, row in zip(texts, rows, strict=True)]
        assert set(scores) <= {0.0, 1.0}  # what they do not solve is worth nothing
        assert 100 * mean(scores) == pytest.approx(ours, abs=0.05)


def test_sudoku_of_other_sizes():
    for n in (6, 9, 16):
        puzzle = [[0] * n] * n
        for write in BASELINES["sudoku"].values():
            assert len(write(Random(0), puzzle=puzzle).split("<answer>\n")[1]) == n * n + 10
            assert 0 <= REWARDS["sudoku"](write(Random(0), puzzle=puzzle), puzzle=puzzle) <= 1


def test_countdown(shared_data: Path):
    """d1's 256 problems, 20 random expressions each: one in 26 is right, and all are expressions
    over the right numbers (d1's reward, which tells the two apart, pays at least 0.1)."""
    lines = (shared_data / "countdown" / "d1_cd3_test.jsonl").read_text().splitlines()
    rows = [
        {"numbers": [int(x) for x in row["input"].split(",")], "target": int(row["output"])}
        for row in map(json.loads, lines)
    ]
    rng, write = Random(0), BASELINES["countdown"]["random_expression"]
    scores, bare = [], []
    for row in rows * 20:
        text = write(rng, numbers=row["numbers"])
        scores.append(REWARDS["countdown"](text, **row))
        bare.append(REWARDS["parity:d1_countdown"](text, **row))
    standard_error = (mean(scores) / len(scores)) ** 0.5
    assert standard_error < 0.003
    assert mean(scores) == pytest.approx(0.038, abs=4 * standard_error)
    assert mean(bare) == pytest.approx(0.1 + 0.9 * mean(scores), abs=1e-9)
    some = BASELINES["countdown"]["sum"](rng, numbers=[3, 4])
    assert REWARDS["countdown"](some, numbers=[3, 4], target=7) == 1.0


def test_an_empty_answer_earns_a_tenth_under_d1_and_nothing_here():
    row = {"numbers": [3, 4], "target": 7}
    text = BASELINES["countdown"]["empty_answer"](Random(0))
    assert REWARDS["parity:d1_countdown"](text, **row) == 0.1
    assert REWARDS["countdown"](text, **row) == 0.0


@pytest.mark.parametrize(("people", "random_roles"), [(3, 1 / 8), (5, 1 / 32)])
def test_knights_and_knaves(shared_data: Path, people: int, random_roles: float):
    table = pyarrow.parquet.read_table(shared_data / "kk" / f"kk_{people}ppl_train.parquet")
    rows = table.select(["names", "solution", "knight_knave"]).to_pylist()[:400]
    rng, policies = Random(0), BASELINES["knights_knaves"]
    for name, expected in (
        ("all_knights", mean(all(row["solution"]) for row in rows)),
        ("random_roles", random_roles),
    ):
        columns = [{key: row[key] for key in ("names", "knight_knave")} for row in rows]
        texts = [policies[name](rng, **column) for column in columns]
        scores = [
            REWARDS["knights_knaves"](text, **row) for text, row in zip(texts, rows, strict=True)
        ]
        assert mean(scores) == pytest.approx(expected, abs=0.05 if name == "random_roles" else 1e-9)
    sages = {"knight": "sage", "knave": "fool"}
    text = policies["all_knights"](rng, names=["A"], knight_knave=sages)
    assert REWARDS["knights_knaves"](text, ["A"], [True], knight_knave=sages) == 1.0


def test_most_frequent_answers(shared_data: Path):
    rng = Random(0)
    gsm8k = (shared_data / "gsm8k" / "test.jsonl").read_text().splitlines()
    golds = [json.loads(line)["answer"].split("####")[1].strip() for line in gsm8k]
    text = BASELINES["gsm8k"]["constant"](rng)
    assert mean(REWARDS["gsm8k"](text, answer=gold) for gold in golds) == 40 / 1319
    math = (shared_data / "math500" / "test.jsonl").read_text().splitlines()
    assert [json.loads(line)["answer"] for line in math].count("3") == 19
    assert r"\boxed{3}" in BASELINES["math"]["constant"](rng)


def test_a_choice_is_one_of_the_choices():
    policy = BASELINES["zebra"]["random_choice"]
    texts = {policy(Random(seed), choices=["Arnold", "Peter"]) for seed in range(20)}
    assert len(texts) == 2
    assert max(REWARDS["zebra"](text, answer="Peter") for text in texts) == 1.0


@pytest.mark.parametrize(
    ("metadata", "holds"),
    [
        ({"source_dataset": "countdown", "numbers": [7], "target": 7}, "7"),
        ({"source_dataset": "mini_sudoku", "puzzle": ["0000"] * 4}, "1234341221434321"),
        ({"source_dataset": "knights_knaves", "names": ["Mia"]}, "Mia is a knight"),
        ({"source_dataset": "chain_sum"}, "0"),
    ],
)
def test_reasoning_gym(metadata: dict[str, object], holds: str):
    policy = BASELINES["reasoning_gym"]["trivial"]
    assert f"\n{holds}\n</answer>" in policy(Random(0), metadata=json.dumps(metadata)).replace(
        "(1) ", ""
    )


def test_they_are_named_after_graders_and_repeat_for_the_same_seed():
    assert set(BASELINES) <= {*REWARDS, "reasoning_gym"}
    for policies in BASELINES.values():
        assert policies
    write = BASELINES["countdown"]["random_expression"]
    texts = [write(Random(seed), numbers=[3, 4, 5]) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
