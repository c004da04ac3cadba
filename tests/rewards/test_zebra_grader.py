import json

import pytest

from rewards.zebra import short, zebra


@pytest.mark.parametrize(
    "text",
    [
        "Arnold",
        "arnold",
        "ARNOLD.",
        "**Arnold**",
        ' "Arnold" ',
        r"\boxed{\text{Arnold}}",
        "\\boxed{Arnold}",
        "The Arnold",
        "`Arnold`\n",
        "\u201cArnold\u201d",
    ],
)
def test_right(text: str):
    assert zebra(f"<reasoning>Peter?</reasoning><answer>{text}</answer>", answer="arnold") == 1.0
    assert zebra(f"<answer>{text}</answer>", answer="Arno") == 0.0
    assert zebra(text, answer="Arnold") == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Peter",
        "Arnold or Peter",
        "Arnold, Peter",
        "not Arnold",
        "Arnold\nPeter",
        "Arnold Arnold",
        "Arnol",
        "Arnolds",
        "House 1: Arnold, House 2: Peter",
        "Arnold" + " x" * 400,
        "...",
    ],
)
def test_wrong(text: str):
    assert zebra(f"<answer>{text}</answer>", answer="Arnold") == 0.0


def test_a_name_in_the_reasoning_is_no_answer():
    assert zebra("Arnold lives there", answer="Arnold") == 0.0
    assert zebra("<answer>Peter</answer> Arnold", answer="Arnold") == 0.0
    assert zebra("<answer>Peter</answer><answer>Arnold</answer>", answer="Arnold") == 1.0


@pytest.mark.parametrize(
    ("answer", "same"),
    [("the green_house", "Green  House"), ("a dog", "Dog."), ("An owl", "owl"), ("2", "2.")],
)
def test_short_forms(answer: str, same: str):
    assert short(answer) == short(same)


def test_an_article_is_not_the_beginning_of_a_word():
    assert short("Theodor") == "theodor"
    assert short("Anna") == "anna"


GRID = {
    "House 1": {"Name": "Eric", "Drink": "milk"},
    "House 2": {"Name": "Peter", "Drink": "green tea"},
}
TABLE = {
    "header": ["House", "Name", "Drink"],
    "rows": [["1", "Eric", "milk"], ["2", "Peter", "green tea"]],
}


@pytest.mark.parametrize("gold", [GRID, json.dumps(GRID), TABLE, json.dumps(TABLE)])
@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(GRID),
        json.dumps(TABLE),
        json.dumps({"reasoning": "...", "solution": GRID}),
        "```json\n" + json.dumps(GRID, indent=1) + "\n```",
        json.dumps(GRID).upper(),
        json.dumps({"2": GRID["House 2"], "1": GRID["House 1"]}),
    ],
)
def test_whole_grid(gold: object, answer: str):
    assert zebra(f"<answer>{answer}</answer>", solution=gold) == 1.0
    assert zebra(f"<answer>{answer}</answer>", answer="Eric", solution=gold) == 1.0
    assert zebra(f"<answer>{answer.lower().replace('milk', 'tea')}</answer>", solution=gold) == 0.0


@pytest.mark.parametrize(
    "answer",
    [
        "Eric",
        json.dumps({"House 1": GRID["House 1"]}),
        json.dumps(GRID | {"House 3": {"Name": "Bob"}}),
        json.dumps(GRID)[:-1],
        json.dumps(GRID)[:-1] + ', "House 1": {"Name": "Bob", "Drink": "milk"}}',
        json.dumps(GRID).replace('"milk"', '"milk", "Pet": "dog"'),
        json.dumps(GRID).replace('"Eric"', '["Eric", "Peter"]'),
        json.dumps({"1": GRID["House 2"]} | GRID),  # house 1 twice, by two names
        json.dumps(GRID) + json.dumps(GRID),
        "[" * 5000,
        "[" * 30000,
        '{"House 1": ' + "9" * 6000 + "}",
        '{"header": 1, "rows": 2}',
        '{"header": ["House", "Name"], "rows": [["1"], []]}',
        '{"header": ["House", ["Name"]], "rows": [["1", "Eric"]]}',
        '{"header": [], "rows": [[]]}',
        json.dumps(
            {
                "header": ["House", "Name", "Drink", "Name"],
                "rows": [["1", "Bob", "milk", "Eric"], ["2", "Bob", "green tea", "Peter"]],
            }
        ),
        "null",
        "{}",
    ],
)
def test_whole_grid_that_is_not_right(answer: str):
    assert zebra(f"<answer>{answer}</answer>", solution=GRID) == 0.0


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "'answer' and 'solution'"),
        ({"answer": " . "}, "'answer' and 'solution'"),
        ({"solution": {}}, "'solution' is no grid"),
        ({"solution": [1]}, "'solution' is no grid"),
    ],
)
def test_columns_that_are_wrong_are_named(columns: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        zebra("Eric", **columns)
