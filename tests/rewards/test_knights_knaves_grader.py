import functools
import json
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from rewards.knights_knaves import agrees, holds, knights_knaves

score = functools.partial(
    knights_knaves, names=["Zoey", "Oliver", "Mia"], solution=[True, False, True]
)
RIGHT = "(1) Zoey is a knight, (2) Oliver is a knave, (3) Mia is a knight"


@pytest.mark.parametrize(
    "answer",
    [
        RIGHT,
        RIGHT.replace(", ", "\n"),
        "Zoey is a knight, Oliver is a knave, and Mia is a knight.",
        "Mia is a knight; Zoey is a knight; Oliver is a knave",
        "Zoey and Mia are knights, while Oliver is a knave.",
        "Zoey and Mia are both knights. Oliver must be a knave.",
        "Knights: Zoey, Mia\nKnaves: Oliver",
        "- **Zoey**: Knight\n- **Oliver**: Knave\n- **Mia**: Knight",
        "1. Zoey - knight\n2. Oliver - knave\n3. Mia - knight",
        "Zoey = knight, Oliver = knave, Mia = knight",
        '{"Zoey": "knight", "Oliver": "knave", "Mia": "knight"}',
        "| Zoey | knight |\n| Oliver | knave |\n| Mia | knight |",
        "ZOEY is a KNIGHT, oliver is a knave and mia is a knight",
        r"\boxed{\text{Zoey is a knight, Oliver is a knave, Mia is a knight}}",
        "Therefore, Zoey is a knight, Oliver is a knave, Mia is a knight",
    ],
)
def test_right(answer: str):
    assert score(f"<think>Mia is a knave?</think><answer>{answer}</answer>") == 1.0
    assert score(f"<answer>{answer}</answer>", solution=[True, True, True]) == 0.0
    assert score(f"<answer>{answer}</answer>", names=["Zoey", "Oliver", "Max"]) == 0.0
    assert score(f"<answer>{answer}</answer>", names=["Zoey", "Oliver"], solution=[1, 0]) == 0.0


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Zoey is a knight, Oliver is a knave",
        "Zoey is a knight, Oliver is a knave, Mia is a knave",
        RIGHT + ", Mia is a knave",  # contradiction
        RIGHT + ", (4) Mia is a knight",  # named twice
        RIGHT + ", (4) Bob is a knight",
        "Zoey is not a knave, Oliver is a knave, Mia is a knight",
        "Zoey is no knave, Oliver is a knave, Mia is a knight",
        "Zoey is a knight, Oliver is a knight/knave, Mia is a knight",
        "Zoey is a knight or Oliver is a knave, and Mia is a knight",
        "If Zoey is a knight, Oliver is a knave and Mia is a knight",
        "Zoey is a knight knave, Oliver is a knave, Mia is a knight",
        "Is Zoey a knight? Oliver is a knave, Mia is a knight",
        "Zoey, Oliver, Mia",
        "knight, knave, knight",
        "Zoey, Oliver and Mia are a knight, a knave and a knight",
        "Zoey is a sage, Oliver is a fool, Mia is a sage",
        "None are knaves but Oliver. Zoey and Mia are knights",
        "Knight Zoey is a knave, Oliver is a knave, Mia is a knight",
        "Zoey != knave, Oliver is a knave, Mia is a knight",
        "Zoey's twin is a knight, Oliver is a knave, Mia is a knight",
        "Zoe is a knight, Oliver is a knave, Mia is a knight",
        "(1) Zoey is a knight\n(2) ...",
        RIGHT + " and" * 1000,
    ],
)
def test_wrong(answer: str):
    assert score(f"<answer>{answer}</answer>") == 0.0


def test_where_the_answer_is():
    assert score(RIGHT) == 1.0  # the whole text
    assert score(f"I think {RIGHT}") == 0.0
    assert score(f"{RIGHT} <answer>unsure</answer>") == 0.0
    assert score(f"<answer>{RIGHT}") == 0.0  # cut off
    assert score(f"<answer>{RIGHT}", mode="lenient") in (0.0, 1.0)
    assert score(f"<answer>{RIGHT}</answer><|eot_id|><answer>no</answer>") == 1.0


def test_knaves_may_be_none_and_then_everyone_is_a_knight():
    text = "Knights: Zoey, Oliver, Mia. Knaves: none"
    assert score(text, solution=[True] * 3) == 1.0
    assert score("None are knaves. Zoey, Oliver, Mia are knights", solution=[False] * 3) == 0.0


@pytest.mark.parametrize(
    ("knight", "knave"),
    [("angel", "devil"), ("sage", "fool"), ("hero", "villain"), ("altruist", "egoist")],
)
def test_other_words_for_the_roles(knight: str, knave: str):
    words = {"knight": knight, "knave": knave, "a_knight": "?"}
    text = f"Zoey is a {knight}, Oliver is a {knave}, and Mia is a {knight}."
    plural = f"Zoey and Mia are {knight}s, Oliver is a {knave}"
    for column in (words, json.dumps(words), str(words)):
        assert score(text, knight_knave=column) == 1.0
        assert score(plural, knight_knave=column) == 1.0
        assert score(RIGHT, knight_knave=column) == 0.0
    assert score(text) == 0.0


def test_names_that_are_articles_or_begin_alike():
    assert knights_knaves("A is a knight, B is a knave", ["A", "B"], [True, False]) == 1.0
    assert knights_knaves("A is a knave, B is a knave", ["A", "B"], [True, False]) == 0.0
    people = ["Anna", "Anna Maria", "Jean-Luc", "Zoë"]
    text = "Anna is a knight, Anna Maria is a knave, Jean-Luc is a knight, Zoë is a knave"
    assert knights_knaves(text, people, [1, 0, 1, 0]) == 1.0


def test_statements_decide_where_the_row_has_them():
    """Each of two says that the other lies, which has two solutions."""
    each = functools.partial(
        knights_knaves, names=["A", "B"], statements=(("lying", 1), ("lying", 0))
    )
    assert each("A is a knight, B is a knave") == 1.0
    assert each("A is a knave, B is a knight") == 1.0
    assert each("A is a knight, B is a knight", solution=[True, True]) == 0.0  # they decide


@pytest.mark.parametrize(
    ("statement", "true_of"),
    [
        (("telling-truth", 0), {"TT", "TF"}),
        (("lying", 1), {"TF", "FF"}),
        (("not", ("lying", 1)), {"TT", "FT"}),
        (("and", ("telling-truth", 0), ("telling-truth", 1)), {"TT"}),
        (("or", ("telling-truth", 0), ("telling-truth", 1)), {"TT", "TF", "FT"}),
        (("->", ("telling-truth", 0), ("telling-truth", 1)), {"TT", "FT", "FF"}),
        (("<=>", ("telling-truth", 0), ("telling-truth", 1)), {"TT", "FF"}),
    ],
)
def test_what_statements_mean(statement: tuple[Any, ...], true_of: set[str]):
    found = {a + b for a, b in product("TF", repeat=2) if holds(statement, [a == "T", b == "T"])}
    assert found == true_of


@pytest.mark.parametrize("kind", ["3ppl_train", "3ppl_test", "5ppl_train", "5ppl_test"])
def test_real_rows(shared_data: Path, kind: str):
    """Logic-RL's files: the gold is the one assignment that agrees with the statements."""
    table = pyarrow.parquet.read_table(shared_data / "kk" / f"kk_{kind}.parquet")
    rows = table.select(
        ["names", "solution", "solution_text", "solution_text_format", "statements", "knight_knave"]
    ).to_pylist()
    assert len(rows) in (100, 900)
    for row in rows[:200]:
        columns = {key: row[key] for key in ("names", "statements", "knight_knave")}
        for text in (row["solution_text"], row["solution_text_format"]):
            tagged = f"<answer> {text} </answer>"
            assert knights_knaves(tagged, row["names"], row["solution"]) == 1.0
            assert knights_knaves(tagged, **columns) == 1.0
        near = row["solution_text_format"].replace("knave", "KNIGHT", 1)
        near = near if "KNIGHT" in near else near.replace("knight", "knave", 1)
        assert knights_knaves(near, row["names"], row["solution"]) == 0.0
        assert knights_knaves(near, **columns) == 0.0
        said = eval(row["statements"])
        solutions = [s for s in product([True, False], repeat=len(said)) if agrees(s, said)]
        assert solutions == [tuple(row["solution"])]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"names": []}, "'names' must hold"),
        ({"names": ["A", "a", "B"]}, "'names' must hold different"),
        ({"names": 7}, "'names' must be a list"),
        ({"solution": [True]}, "'solution' must be true or false for each of the 3"),
        ({"solution": ["yes", "no", "no"]}, "'solution' must be true or false"),
        ({"solution": "knight"}, "'solution' must be a list"),
        ({"solution": None}, "one of the columns 'solution' and 'statements'"),
        ({"statements": [("lying", 3)] * 3}, "'statements': .* is no statement about 3"),
        ({"statements": [("nor", ("lying", 0))] * 3}, "'statements'"),
        ({"statements": [("->", ("lying", 0))] * 3}, "'statements'"),
        ({"statements": [("lying", 0)]}, "one statement for each"),
        ({"statements": "__import__('os')"}, "'statements' must be a list"),
        ({"knight_knave": ["sage", "fool"]}, "'knight_knave' must be like"),
    ],
)
def test_columns_that_are_wrong_are_named(columns: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        score(RIGHT, **columns)
