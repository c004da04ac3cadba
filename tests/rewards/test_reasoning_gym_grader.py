import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from rewards import per_completion, reasoning_gym, reasoning_gym_scorers
from rewards.reasoning_gym_scorers import LONGEST, acceptable, own_scores
from rewards.sandbox import Result


def row(dataset: str, answer: str | None = None, **metadata: object) -> dict[str, Any]:
    return {"metadata": json.dumps({"source_dataset": dataset} | metadata), "answer": answer}


NUMBERS = {"numbers": [3, 4], "target": 7}
MINI = {"puzzle": [[1, 2, 0, 4], [0, 4, 1, 0], [2, 0, 4, 0], [0, 3, 2, 1]]}
PEOPLE = {
    "names": ["Amelia", "Ben"],
    "statements": [["lying", 1], ["lying", 0]],
    "knight_knave_terms": {"knight": "sage", "knave": "fool"},
}


@pytest.mark.parametrize(
    ("columns", "answer", "score"),
    [
        (row("countdown", "3+4", **NUMBERS), "4 + 3", 1.0),
        (row("countdown", "3+4", **NUMBERS), "3*4", 0.0),
        (row("countdown", "3+4", **NUMBERS), "open('x','w').write('7')", 0.0),
        (row("puzzle24", numbers=[3, 8, 1, 1]), "3*8*1/1", 1.0),
        (row("puzzle24", numbers=[3, 8, 1, 1]), "3*8", 0.0),
        (row("mini_sudoku", "?", **MINI), "1234341221434321", 1.0),  # in a row: theirs says 0
        (row("mini_sudoku", "?", **MINI), "4444444444444444", 0.0),  # theirs: 0.22
        (row("knights_knaves", "?", **PEOPLE), "Amelia is a sage, and Ben is a fool.", 1.0),
        (row("knights_knaves", "?", **PEOPLE), "Amelia is a sage, and Ben is a sage.", 0.0),
        (row("chain_sum", "7"), "7", 1.0),
        (row("chain_sum", "7"), "7.0", 1.0),
        (row("chain_sum", "7"), "17", 0.0),  # theirs: 0.5
        (row("chain_sum", "30"), "300", 0.0),  # theirs: 0.67
        (row("chain_sum", "100"), "101", 0.0),
        (row("chain_sum", "1000"), "1,000", 1.0),
        (row("gsm_symbolic", "-4"), "\N{MINUS SIGN}4", 1.0),
        (row("products", "7"), "7 or 8", 0.0),
        (row("products", "7"), "9" * 1000, 0.0),
        (row("zebra_puzzles", "arnold"), "Arnold.", 1.0),  # theirs: 0
        (row("zebra_puzzles", "arnold"), "Arnold or Bob", 0.0),
        (row("syllogism", "Yes"), "yes", 1.0),
        (row("syllogism", "Yes"), "yes or no", 0.0),
    ],
)
def test_with_a_grader_of_ours(columns: dict[str, Any], answer: str, score: float):
    assert reasoning_gym(f"<answer>{answer}</answer>", **columns) == score
    assert reasoning_gym(answer, **columns) == score


BOMB = "9**9**9**9"


@pytest.mark.slow
def test_its_own_scorers_in_one_batch():
    """Full score or nothing; one that hangs or is refused costs no other its right score."""
    pytest.importorskip("reasoning_gym")
    import reasoning_gym as package

    spiral = package.create_dataset("spiral_matrix", size=1, seed=2)[0]
    product = package.create_dataset("polynomial_multiplication", size=1, seed=2)[0]
    cases = [
        (spiral, spiral["answer"], 1.0),
        (spiral, spiral["answer"] + " 1", 0.0),
        (product, product["answer"], 1.0),
        (product, BOMB, 0.0),
        (product, "().__class__", 0.0),
        (product, f"{product['answer']} + 1", 0.0),
        (spiral, "", 0.0),
        (spiral, spiral["answer"], 1.0),
    ]
    reward = per_completion(reasoning_gym)
    scores = reward(
        ["?"] * len(cases),
        [f"<answer>{answer}</answer>" for _, answer, _ in cases],
        metadata=[json.dumps(entry["metadata"]) for entry, _, _ in cases],
        answer=[entry["answer"] for entry, _, _ in cases],
        question=[entry["question"] for entry, _, _ in cases],
    )
    assert scores == [expected for _, _, expected in cases]


@pytest.mark.slow
def test_model_text_that_their_scorer_runs_stays_in_the_sandbox(monkeypatch: pytest.MonkeyPatch):
    """Even with the refusals switched off nothing is written here and no other score is lost."""
    pytest.importorskip("reasoning_gym")
    import reasoning_gym as package

    monkeypatch.setattr(reasoning_gym_scorers, "acceptable", lambda dataset, answer: True)
    spiral = package.create_dataset("spiral_matrix", size=1, seed=2)[0]
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "mark"
        attacks = [
            f"[open({str(mark)!r}, 'w').write('x')]",
            "[__import__('os').kill(__import__('os').getppid(), 9)]",
        ]
        answers = [spiral["answer"], *attacks, spiral["answer"]]
        scores = own_scores([("spiral_matrix", answer, spiral) for answer in answers])
        assert not mark.exists()
    assert [score >= 0.999 for score in scores] == [True, False, False, True]


def test_lines_that_the_host_does_not_write_are_dropped(monkeypatch: pytest.MonkeyPatch):
    """A stranger's answer may have written them."""
    pytest.importorskip("reasoning_gym")
    forged = "[0, 1.0]\n[0.5, {\n[99, 1.0]\n[1, NaN]\n[-1, 1.0]\nx\n[2, 1e-05]\n"
    result = Result("ok", 0, forged, "", 0.1)
    monkeypatch.setattr(reasoning_gym_scorers, "run", lambda *_, **__: result)
    assert own_scores([("spiral_matrix", "1", {})] * 3) == [1.0, 0.0, 1e-05]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "__import__('os')",
        "().__class__.__bases__",
        "x" * (LONGEST + 1),
        "open('x','w').write('3')",
        "[open('x')]",
        "lambda: 1",
        "[i for i in range(9)]",
        "exit()",
        "Symbol('x').name",
        "a.b",
        "(lambda x: x)(1)",
        "eval('1')",
        "'%s' % 1",
        "f(x)",
    ],
)
def test_what_is_refused(answer: str):
    assert not acceptable("n_queens", answer)


@pytest.mark.parametrize(
    "answer",
    [
        "-2*x**3*cos(x) + 6*x**2*sin(x) + 12*x*cos(x) - 12*sin(x) + C",
        "_ Q _ _\n_ _ _ Q\nQ _ _ _\n_ _ Q _",
        "[['_', 'Q'], ['Q', '_']]",
        "0.5*x**2 + sqrt(x)/3 + C",
        "AACBCC",
        "2 1 5 1",
    ],
)
def test_what_is_not(answer: str):
    assert acceptable("n_queens", answer)


def test_words_in_other_answers_are_not_code():
    assert acceptable("sentence_reordering", "it is for him, if not (perhaps) for her.")


@pytest.mark.parametrize(
    "metadata", ["", "{}", "[1]", "not json", {"source_dataset": 3}, {"numbers": [1]}, 7]
)
def test_metadata_that_is_none_is_refused(metadata: object):
    with pytest.raises(ValueError, match="column 'metadata' must be"):
        reasoning_gym("7", metadata=metadata)


def test_a_row_without_its_gold_is_refused():
    with pytest.raises(ValueError, match="column 'answer' is empty, and 'chain_sum'"):
        reasoning_gym("7", **row("chain_sum"))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'unmask-rl\[reasoning\]'"):
        reasoning_gym("7", **row("spiral_matrix", "7"))
    assert reasoning_gym("7", **row("chain_sum", "7")) == 1.0  # needs no package
