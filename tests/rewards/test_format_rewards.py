import pytest

from rewards import (
    boxed_format,
    int_answer,
    soft_format,
    strict_format,
    tag_format,
    xml_count,
)

PERFECT = "<reasoning>\nstep one\nstep two\n</reasoning>\n<answer>\n7\n</answer>"


@pytest.mark.parametrize(
    ("text", "soft", "strict"),
    [
        (PERFECT, 1.0, 1.0),
        (PERFECT + "\n", 1.0, 1.0),
        (PERFECT + "<|eot_id|>rest", 1.0, 1.0),
        (PERFECT + " and more", 1.0, 0.0),
        ("so: " + PERFECT, 0.0, 0.0),
        ("<reasoning>a\nb</reasoning> <answer>7</answer>", 1.0, 0.0),
        ("<answer>\n7\n</answer>\n<reasoning>\na\n</reasoning>", 0.0, 0.0),
        ("<reasoning>\na\n</reasoning>\n<answer>\n7\n", 0.0, 0.0),
        ("<reasoning>\n\n</reasoning>\n<answer>\n7\n</answer>", 0.0, 0.0),
        ("<reasoning>\na\n</reasoning>\n<answer>\n\n</answer>", 0.0, 0.0),
        (PERFECT.replace("<answer>", "<answer>\n1\n</answer>\n<answer>"), 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_soft_and_strict(text: str, soft: float, strict: float):
    assert soft_format(text) == soft
    assert strict_format(text) == strict


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (PERFECT, 0.5),
        (PERFECT + "\n", 0.5),
        (PERFECT + "\nten chars.", 0.5 - 0.02),
        (PERFECT + "x" * 1000, 0.0),
        ("x" * 1000 + PERFECT, 0.5),  # d1 would charge this text's whole length
        (PERFECT.removeprefix("<reasoning>\n"), 0.375),
        ("<reasoning>\na\n</reasoning>\n", 0.25),
        (PERFECT + PERFECT, 0.0),
        ("", 0.0),
    ],
)
def test_xml_count(text: str, score: float):
    assert xml_count(text) == pytest.approx(score)


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("7", 1.0),
        (" 7\n", 1.0),
        ("-7", 1.0),
        ("+7", 1.0),
        ("1,000", 1.0),
        ("7.5", 0.0),
        ("1,00", 0.0),
        ("\N{SUPERSCRIPT TWO}", 0.0),
        ("seven", 0.0),
        ("", 0.0),
    ],
)
def test_int_answer(answer: str, score: float):
    assert int_answer(f"<answer>{answer}</answer>") == score
    assert int_answer(answer) == score


@pytest.mark.parametrize("score", [soft_format, strict_format])
def test_prefilled_opening_tag(score):
    body = PERFECT.removeprefix("<reasoning>")
    for text in (body, body.removeprefix("\n")):
        assert score(text) == 0.0
        assert score(text, prefilled=True) == 1.0
    assert score(PERFECT, prefilled=True) == 0.0  # the tag stands twice
    assert score("\n</reasoning>\n<answer>\n7\n</answer>", prefilled=True) == 0.0


def test_xml_count_of_a_prefilled_opening_tag():
    assert xml_count(PERFECT.removeprefix("<reasoning>\n"), prefilled=True) == 0.5


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (PERFECT, 1.0),
        ("<reasoning>a</reasoning><answer>7</answer>", 1.0),
        (" <reasoning>a\n\nb</reasoning>\n\n<answer>7</answer>\n<|eot_id|>x", 1.0),
        (PERFECT.removeprefix("<reasoning>"), 1.0),  # prefilled
        ("text " + PERFECT, 0.0),
        (PERFECT + " text", 0.0),
        (PERFECT.replace("\n<answer>", " so\n<answer>"), 0.0),
        (PERFECT.replace("7", " "), 0.0),
        ("<reasoning>\n</reasoning><answer>7</answer>", 0.0),
        (PERFECT + PERFECT, 0.0),
        (PERFECT + "<answer>8</answer>", 0.0),
        ("<reasoning>a</reasoning><reasoning>b</reasoning><answer>1</answer>", 0.0),
        ("<answer>7</answer><reasoning>a</reasoning>", 0.0),
        ("<reasoning>a<answer>7</reasoning></answer>", 0.0),
        ("<reasoning>a<answer>7</answer></reasoning>", 0.0),
        ("<reasoning>a</answer></reasoning><answer>7</answer>", 0.0),
        ("<reasoning>a</reasoning><answer>7", 0.0),
        ("<REASONING>a</REASONING><answer>7</answer>", 0.0),
        ("<answer>7</answer>", 0.0),
        ("a", 0.0),
        ("", 0.0),
    ],
)
def test_tag_format(text: str, score: float):
    assert tag_format(text) == score


def test_tag_format_of_other_tags_and_one_reading_of_prefilled():
    text = "<think>\na\n</think>\n<plan>b</plan>\n<answer>c</answer>"
    assert tag_format(text, tags=("think", "plan", "answer")) == 1.0
    assert tag_format(text, tags=("think", "answer")) == 0.0
    assert tag_format(text) == 0.0
    assert tag_format("<answer>7</answer>", tags=["answer"], prefilled=False) == 1.0
    rest = PERFECT.removeprefix("<reasoning>")
    assert [tag_format(rest, prefilled=p) for p in (True, False, None)] == [1.0, 0.0, 1.0]
    assert [tag_format(PERFECT, prefilled=p) for p in (True, False, None)] == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("tags", [(), ("a", "a"), ("a>",), ("",), ("a b",)])
def test_tags_that_are_no_names_are_refused(tags: tuple[str, ...]):
    with pytest.raises(ValueError, match="tags must be different names"):
        tag_format("", tags=tags)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (r"<answer>\boxed{7}</answer>", 1.0),
        ("work...\n</reasoning>\n<answer>\n\\boxed{7}\n</answer>", 1.0),
        (r"so \boxed{\frac{1}{2}}", 1.0),
        (r"so \fbox{7}", 1.0),
        (r"\boxed{7} <answer>7</answer>", 0.0),  # not in the block
        (r"<answer>\boxed{}</answer>", 0.0),
        (r"<answer>\boxed{...}</answer>", 0.0),
        (r"<answer>\boxed{7</answer>", 0.0),
        ("<answer>\boxed{7}</answer>", 0.0),  # a backspace
        (r"boxed{7}", 0.0),
        (r"<|eot_id|>\boxed{7}", 0.0),
        ("7", 0.0),
    ],
)
def test_boxed_format(text: str, score: float):
    assert boxed_format(text) == score
