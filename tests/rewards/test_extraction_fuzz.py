"""Properties of extraction and of reading numbers, on inputs that hypothesis makes up."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards import extract, first_turn, gsm8k_correct
from rewards.prose_numbers import number_in_prose
from rewards.quantities import as_number

STATUSES = {"ok", "no_answer", "template_echo", "garbled", "truncated"}
STYLES = (
    "auto", "tag", "tag:final", "box", "hash", "last_number", "json:answer", r"regex:(\d+)",
)  # fmt: skip
MARKUP = (
    "<answer>", "</answer>", "</answer}", "<answer", "</", "<>", "</reasoning>", "<ANSWER x=1>",
    r"\boxed{", r"\boxed{7}", r"\boxed{...}", r"\fbox{", "boxed{", "{", "}", "\\", r"\text{", "$",
    "#### ", "The answer is ", "**Final Answer:** ", "if the answer is ", "answer here", "...",
    "<|eot_id|>", "[MASK]", "<|mdm_mask|>", "[PAD]", '{"answer": ', '"', ":", ",", " and ", "\n",
    "\n\n", " ", "7", "42", "1,234", "-5", "2:00 pm", "%", "\u00bd", "\uff17", "\u200b", "\ud800",
    "\x00", "so 3 + 4 = 7 ", r"\frac{1}{2}", "10^", "e9", "minus ", "million",
)  # fmt: skip
completions = st.lists(st.one_of(st.sampled_from(MARKUP), st.text(max_size=4)), max_size=25).map(
    "".join
)
examples = settings(max_examples=100, deadline=None, database=None, derandomize=True)


@examples
@given(completions, st.sampled_from(STYLES))
def test_extraction_is_total_and_the_modes_agree(completion: str, style: str):
    strict = extract(completion, style=style)
    lenient = extract(completion, style=style, mode="lenient")
    assert strict.status in STATUSES
    assert (strict.status, strict.boxes) == (lenient.status, lenient.boxes)
    assert (strict.text is not None) == (strict.status == "ok")
    if strict.status == "ok":
        assert lenient.text == strict.text
    if lenient.text is not None:
        assert lenient.status in ("ok", "garbled")


@examples
@given(completions)
def test_an_answer_stands_in_the_turn(completion: str):
    """Nothing is made up: at most the closing braces of a garbled box are added."""
    found = extract(completion, mode="lenient")
    if found.text is not None and found.boxes < 2:
        assert found.text.rstrip("}") in first_turn(completion)


@examples
@given(completions, completions)
def test_what_follows_the_turn_does_not_matter(turn: str, rest: str):
    for mode in ("strict", "lenient"):
        cut = extract(turn + "<|eot_id|>", mode=mode)
        assert extract(turn + "<|eot_id|>" + rest, mode=mode) == cut


@examples
@given(st.lists(st.sampled_from(["7", " ", "\n", "so ", "= ", "3 + 4", ". ", "$", "(", "*"])))
def test_a_number_that_is_mentioned_is_no_answer(pieces: list[str]):
    completion = "".join(pieces)
    for mode in ("strict", "lenient"):
        assert extract(completion, mode=mode).text is None
        assert gsm8k_correct(completion, answer="7", mode=mode) == 0.0


@examples
@given(completions, st.sampled_from(["7", "42", "1,234", "-5", "0.5", "#### 7"]))
def test_the_grader_is_total_and_lenient_only_adds(completion: str, gold: str):
    strict = gsm8k_correct(completion, answer=gold)
    lenient = gsm8k_correct(completion, answer=gold, mode="lenient")
    assert strict in (0.0, 1.0)
    assert lenient in (0.0, 1.0)
    assert strict <= lenient


def indian(number: int) -> str:
    head, tail = f"{number:05d}"[:-3], f"{number:03d}"[-3:]
    head = head.lstrip("0")
    pairs = [head[max(end - 2, 0) : end] for end in range(len(head), 0, -2)][::-1]
    return ",".join([*pairs, tail]) if head else str(number)


SPELLINGS = {
    "plain": str,
    "commas": lambda n: f"{n:,}",
    "apostrophes": lambda n: f"{n:,}".replace(",", "'"),
    "spaces": lambda n: f"{n:,}".replace(",", " "),
    "thin spaces": lambda n: f"{n:,}".replace(",", "\u202f"),
    "latex": lambda n: f"{n:,}".replace(",", r"\,"),
    "braces": lambda n: f"{n:,}".replace(",", "{,}"),
    "dots and a comma": lambda n: f"{n:,}".replace(",", ".") + ",0" if n > 999 else str(n),
    "indian": indian,
    "fullwidth": lambda n: "".join(chr(ord(digit) + 0xFEE0) for digit in f"{n:,}"),
    "arabic digits": lambda n: "".join(chr(0x660 + int(digit)) for digit in str(n)),
    "decimals": lambda n: f"{n:,}.00",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@examples
@given(st.integers(min_value=0, max_value=10**12))
def test_every_spelling_of_a_number_is_that_number(spelling: str, number: int):
    written = SPELLINGS[spelling](number)
    for text in (written, f"${written}", f"{written} apples", f"x = {written}", f"-{written}"):
        assert number_in_prose(text) == (-number if text[0] == "-" else number), text
    assert as_number(written) == number
    changed = written[:-1] + str((int(written[-1]) + 1) % 10)
    assert number_in_prose(changed) != number


@examples
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["-", " to ", " or ", ", "]))
def test_two_numbers_are_no_answer(low: int, high: int, between: str):
    if low != high:
        value = number_in_prose(f"{low}{between}{high}")
        assert value is None or (between == "," and value not in (low, high))


@examples
@given(st.text(alphabet="0123456789.,' /-+eE^{}()%$x\\=:\u00bd\u00b2 abn", max_size=30))
def test_reading_a_number_is_total(text: str):
    for read in (as_number, number_in_prose):
        value = read(text)
        assert value is None or isinstance(value, Fraction)
