"""What a model copies from its prompt in the place of an answer, and what only looks like that."""

import re

import pytest

from rewards.extraction import extract
from rewards.placeholders import is_placeholder
from rl.tasks.base import ask
from rl.tasks.gsm8k import Gsm8k
from rl.tasks.math500 import Math500


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "...", "\N{HORIZONTAL ELLIPSIS}", r"\ldots", "....", "?", "___", "$$", "{}", "**",
        r"\text{answer}", "answer", "ANSWER", "answer here", "Your answer here.", "<answer>",
        "[answer]", "{your answer}", "$ANSWER", "<number>", "(number)", "final answer",
        "your_answer", "Your final answer", "insert your answer here", "the result", "expression",
        r"\square", "the number alone, without units", "the answer alone", "the expression alone",
        "the 16 digits of the solved grid, row by row", "one word", "a single number",
    ],
)  # fmt: skip
def test_placeholders(text: str):
    assert is_placeholder(text)
    assert extract(f"It is 7. <answer>\n{text}\n</answer>").text is None
    assert extract(f"It is 7. <answer>\n{text}\n</answer>", mode="lenient").text is None


@pytest.mark.parametrize(
    "text",
    [
        "7", "0", "x", "A", "-", "...7", "7...", r"\{\}", "()", "[]", r"\emptyset", "number 7",
        "the answer is 7", "answer: 7", "one", "the number line", "valued", "16", "81", "0.",
        "word",
        "answer " * 20, r"\text{yes}", "no solution", "no answer",
    ],
)  # fmt: skip
def test_answers(text: str):
    assert not is_placeholder(text)


def shown(prompt: list[dict[str, str]]) -> str:
    """What a prompt of ours shows in the place of the answer."""
    return re.findall(r"<answer>(.*?)</answer>", prompt[0]["content"], re.DOTALL)[-1]


def test_our_own_prompts_are_not_answers(shared_data):
    rows = [
        Gsm8k(path=str(shared_data / "gsm8k")).rows("test", limit=1)[0],
        Math500(path=str(shared_data / "math500")).rows("test", limit=1)[0],
    ]
    for row in rows:
        copied = shown(row["prompt"])
        assert copied.strip()
        found = extract(f"<reasoning>7</reasoning><answer>{copied}</answer>", mode="lenient")
        assert (found.text, found.status) == (None, "template_echo")


def test_a_prompt_shows_its_placeholder():
    assert shown(ask("Do.", answer="the number alone", problem="p")).strip() == "the number alone"
