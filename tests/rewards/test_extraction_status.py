r"""What `extract` says of a completion: status, and the text in strict and lenient mode."""

import functools
import time

import pytest

from rewards import REWARDS, extract, extraction_of, first_turn, gsm8k_correct, reads_answer

EOT = "<|eot_id|>"


@pytest.mark.parametrize(
    ("completion", "status", "lenient"),
    [
        ("<answer>7</answer>", "ok", "7"),
        (r"so \boxed{7}.", "ok", "7"),
        ("The answer is 7", "ok", "7"),
        (r"</reasoning> <answer>\boxed{7}", "ok", "7"),  # the box is intact, the tag is not needed
        (r"\boxed{3} <answer>\boxed{7}</answer>", "ok", "7"),
        (r"is \boxed{7} plums. </<answer>", "ok", "7"),
        (r"<answer>\boxed{...}</answer> \boxed{7}", "ok", "7"),
        ("", "no_answer", None),
        ("so 7", "no_answer", None),
        ("The answer isn't 7", "no_answer", None),
        ("the answer is not 7", "no_answer", None),
        ("If the final answer is 7, then", "no_answer", None),
        ("so she has 7 eggs left in the end, and that is that.\n</answer>", "no_answer", None),
        ("7 eggs\n</answer>", "ok", "7 eggs"),  # the opening tag may stand in the prompt
        ("3 + 4 = 7\nso 7\n</answer>", "no_answer", None),
        ("1234\n3412\n2143\n4321\n</answer>", "ok", "1234\n3412\n2143\n4321"),
        (f"7 <answer>{EOT}", "no_answer", None),
        (r"7 <answer>\boxed{...}</answer>", "template_echo", None),
        (r"7 <answer>\boxed{}</answer}", "template_echo", None),
        (r"\boxed{3} <answer>\boxed{}</answer>", "template_echo", None),
        ("7 <answer>answer here</answer>", "template_echo", None),
        ("7 <answer>[Your final answer here]</answer>", "template_echo", None),
        ("7 #### <number>", "template_echo", None),
        (r"7 \boxed{\text{your answer}}", "template_echo", None),
        (r"<answer>\boxed{7", "truncated", None),
        ("so 7. <answer>", "truncated", None),
        ("<answer>7", "truncated", None),
        (r"\boxed{6} no, \boxed{7", "truncated", None),
        (r"<answer>\boxed{7>", "garbled", "7"),
        ("<answer>\\boxed{7\n</answer>", "garbled", "7"),
        ("\\boxed{7\n</answer}", "garbled", "7"),
        (r"<answer>boxed{7}</answer>", "garbled", "7"),
        (r"<answer>\boxed{}7</answer>", "garbled", "7"),
        (rf"\boxed{{7{EOT}", "garbled", "7"),  # ended, so not cut off
        (r"\boxed{6} no, boxed{7}", "garbled", "7"),
        ("<answer>7</answer}", "garbled", "7"),
        ("</reasoning>\n<>\n7\n</>", "garbled", "7"),
        ("<answer>4[MASK]2</answer>", "garbled", None),  # what stood there is not known
        ("<answer>" + "7" * 20_001 + "</answer>", "garbled", None),
    ],
)
def test_status_and_text(completion: str, status: str, lenient: str | None):
    strict = extract(completion)
    loose = extract(completion, mode="lenient")
    assert (strict.status, loose.status) == (status, status)
    assert strict.text == (lenient if status == "ok" else None)
    assert loose.text == lenient


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{15\text{ hens}} and \boxed{9\text{ goats}}", r"15\text{ hens}, 9\text{ goats}"),
        (r"$\boxed{1}$, $\boxed{2}$, and $\boxed{3}$", "1, 2, 3"),
        (r"x = \boxed{1} or x = \boxed{-2}", "1, -2"),
        (r"\boxed{1} \text{ and } \boxed{2}", "1, 2"),
        (r"\boxed{1}. And \boxed{2}", "2"),
        (r"\boxed{1}, no: \boxed{2}", "2"),
        (r"\boxed{1} \boxed{2}", "2"),
        ("\\boxed{1}\n\n\\boxed{2}", "2"),
        (r"\boxed{1} is too small, and \boxed{2} is right", "2"),
    ],
)
def test_boxes_that_one_sentence_joins_are_a_list(text: str, answer: str):
    assert extract(text).text == answer
    assert extract(f"<answer>{text}</answer>").text == answer
    assert extract(text).boxes == text.count("boxed")


def test_boxes_are_counted_in_the_first_turn_without_placeholders():
    text = rf"\boxed{{...}} \boxed{{1}} \boxed{{\boxed{{2}}}} {EOT} \boxed{{3}}"
    assert extract(text).boxes == 2


@pytest.mark.parametrize(
    ("style", "text", "answer"),
    [
        ("tag", r"<answer>7</answer> \boxed{8}", "7"),
        ("tag", r"\boxed{8}", None),
        ("tag", "the answer is 8", None),
        ("tag:final", "<final>7</final> <answer>8</answer>", "7"),
        ("box", r"\boxed{7} <answer>8</answer>", "7"),
        ("box", "<answer>8</answer>", None),
        ("hash", "#### 7\n#### 8\nbye", "8"),
        ("hash", "<answer>8</answer>", None),
        ("last_number", "first 6, then -1,234.5 eggs", "-1,234.5"),
        ("last_number", "none", None),
        ("json:answer", '{"answer": 6} {"n": {"a": 1}, "answer": 7.50}', "7.50"),
        ("json:answer", '```json\n{"answer": "a\\nb"}\n```', "a\nb"),
        ("json:answer", '{"answer": [1, "x"]}', '["1", "x"]'),
        ("json:answer", '{"other": 7}', None),
        ("json:answer", '{"answer": null}', None),
        ("regex:x=(\\d+)", "x=6 x=7", "7"),
        ("regex:(\\w)=(?P<answer>\\d+)", "x=7", "7"),
        ("regex:\\d+", "6 and 7", "7"),
        ("regex:x(y)?", "x", None),
    ],
)
def test_styles(style: str, text: str, answer: str | None):
    assert extract(text, style=style).text == answer


def test_a_regex_without_end_finds_nothing_and_is_asked_once():
    """`re` cannot be interrupted: in this process the first line would take years."""
    text, start = "a" * 60 + "!", time.perf_counter()
    for _ in range(5):
        assert extract(text, style=r"regex:(a+)+$").text is None
    assert 0.9 < time.perf_counter() - start < 4.0
    assert extract("x = 7", style=r"regex:x = (\d)").text == "7"


def test_a_broken_json_object_is_garbled():
    text = '{"why": "6 and 1", "answer": "7", '
    assert extract(text, style="json:answer").status == "garbled"
    assert extract(text, style="json:answer").text is None
    assert extract(text, style="json:answer", mode="lenient").text == "7"


@pytest.mark.parametrize(
    ("style", "message"),
    [
        ("bokx", "style is 'bokx'; use one of auto, tag, box, hash, last_number, tag:NAME"),
        ("", "style is ''"),
        ("json", "style is 'json'"),
        ("json:", "style is 'json:'"),
        ("box:x", "style is 'box:x'"),
        ("regex:(", r"style is 'regex:\(', no regular expression"),
        ("tag:a b", "style is 'tag:a b'; the name of a tag"),
        (None, "style is None"),
    ],
)
def test_unknown_styles_are_told(style: str, message: str):
    with pytest.raises(ValueError, match=message):
        extract("<answer>7</answer>", style=style)


def test_unknown_modes_are_told():
    with pytest.raises(ValueError, match=r"mode is 'Lenient'; use strict .* or lenient"):
        extract("<answer>7</answer>", mode="Lenient")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("7<|endoftext|>8", "7"),
        ("7</s>8", "7"),
        ("7[SEP]8", "7"),
        ("7<|im_end|>\n<|im_start|>user\n8", "7"),
        ("7\n<|im_start|>user\n8", "7\n"),
        ("<|startoftext|><|im_start|>7", "7"),
        ("[PAD]7[PAD][PAD]", "7"),
        ("a <|mdm_mask|><|mdm_mask|> b", "a  b"),
        ("4<|mdm_mask|>2", "4\N{REPLACEMENT CHARACTER}2"),
        ("4[MASK][PAD]2", "4\N{REPLACEMENT CHARACTER}2"),
        ("<answer>[MASK]7[MASK]</answer>", "<answer>7</answer>"),
        ("x < y and [ABCD]", "x < y and [ABCD]"),
        ("<|eot_id|>7", ""),
    ],
)
def test_first_turn(text: str, shown: str):
    assert first_turn(text) == shown


def test_a_grader_tells_what_it_reads_under_its_own_settings():
    garbled = "<answer>\\boxed{7>"
    read = extraction_of(gsm8k_correct)
    assert read is not None
    assert read(garbled).text is None
    lenient = functools.partial(gsm8k_correct, mode="lenient")
    assert extraction_of(lenient)(garbled).text == "7"
    twice = functools.partial(lenient, style="hash")
    assert extraction_of(twice)(garbled).status == "no_answer"
    assert extraction_of(twice)("#### 8").text == "8"

    @reads_answer
    def mine(completion: str) -> float:
        return 1.0

    assert extraction_of(mine)("<answer>7</answer>").text == "7"
    assert extraction_of(lambda completion: 1.0) is None
    assert extraction_of(REWARDS["soft_format"]) is None


@pytest.mark.parametrize(
    "piece",
    [
        "<answer>", "</answer>", "\\boxed{", "\\boxed{}", "\\boxed{5}", "{", "}", "\\", "\n", "<",
        "#### a", "the answer is 5 ", "final answer\n", "a[MASK]", "<> a", "\\boxed{5} and ",
        "answer for x", '{"answer":',
    ],
)  # fmt: skip
def test_hostile_lengths_take_linear_time(piece: str):
    """A quadratic step would take minutes here."""
    text = piece * (150_000 // len(piece))
    start = time.process_time()
    extract(text, mode="lenient")
    extract("<answer>\\boxed{" + text, mode="lenient")
    assert time.process_time() - start < 10


@pytest.mark.parametrize("piece", ['{"answer":', "{", '{"a":[', '{"answer": 1}'])
def test_hostile_json_takes_no_time(piece: str):
    text = piece * (1_000_000 // len(piece))
    start = time.process_time()
    extract(text, style="json:answer", mode="lenient")
    assert time.process_time() - start < 10
