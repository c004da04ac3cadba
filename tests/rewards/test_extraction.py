import pytest

from rewards import final_answer, first_turn, last_boxed, last_tag


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("<answer>5</answer>", "5"),
        ("<answer>5</answer> no, <answer>\n9\n</answer> done", "\n9\n"),
        ("<answer>5</answer> <answer>9", "5"),  # the last one is not complete
        ("<answer> hm <answer>7</answer>", "7"),
        ("<answer>7</answer> stray </answer>", "7"),
        ("<answer></answer>", ""),
        ("5</answer>", None),
        ("", None),
    ],
)
def test_last_tag(text: str, inside: str | None):
    assert last_tag(text, "answer") == inside


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        (r"\boxed{5}", "5"),
        (r"\boxed{11}, really \boxed{12}.", "12"),
        (r"\fbox{\frac{1}{6}}", r"\frac{1}{6}"),
        (r"\boxed {5}", "5"),
        (r"\boxed{x = \boxed{5}}", "5"),
        (r"\boxed{7} then \boxed{}", "7"),
        (r"\boxed{7} then \boxed{...}", "7"),
        (r"\boxed{7} then \boxed{ \frac{1}{2", "7"),
        (r"\boxed{36> but \boxed{40}", "40"),
        (r"\boxed{\left\{ x \right.}", r"\left\{ x \right."),  # an escaped brace opens nothing
        ("} \\boxed{5}", "5"),
        (r"\boxed{5", None),
        ("boxed{5}", None),
        ("", None),
    ],
)
def test_last_boxed(text: str, inside: str | None):
    assert last_boxed(text) == inside


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"<answer>so \boxed{4}</answer>", "4"),
        (r"\boxed{3} <answer>\boxed{}  4 </answer>", None),
        (r"<answer>4</answer> \boxed{5}", "4"),
        (r"<answer>5</answer><|eot_id|><answer>6</answer>", "5"),
        (r"\boxed{5}", "5"),
        ("Final Answer: **58**", "58"),
        ("the answer is 7.\nbye", "7."),
        ("6 * 3 = 18\n#### 18", "18"),
        ("I thought about 42 but could not finish", None),
        ("", None),
    ],
)
def test_final_answer(text: str, answer: str | None):
    assert final_answer(text) == answer


def test_hostile_lengths_take_linear_time():
    many = 20_000
    assert last_boxed(r"\boxed{" * many) is None
    assert last_tag("<answer>" * many, "answer") is None
    assert first_turn("a" * many) == "a" * many
