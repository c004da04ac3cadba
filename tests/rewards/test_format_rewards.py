import pytest

from rewards import int_answer, soft_format, strict_format, xml_count

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
