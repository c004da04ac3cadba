"""Rewards for the shape of a completion: <reasoning>...</reasoning><answer>...</answer>.

The four of d1 (arXiv:2504.12216), in our own words and mended. Where they differ from d1's code:

- soft and strict: `.` matches a newline, without which d1's two could not both be had and neither
  was ever earned on real output; each tag must occur once, and neither block may be blank.
- strict: the newline after </answer> is not demanded; an end-of-text token often stands there.
- soft, strict and int_answer are 1 or 0; d1's are 0.5 or 0 (give them `weight: 0.5`).
- xml_count: only what follows </answer> is charged. d1 charges the whole text when the newline
  after </answer> is missing. The sum is never below 0; d1's has no lower bound.
- int_answer: a sign and thousands commas are allowed, and only ASCII digits are digits.
"""

import re

from rewards.extraction import first_turn, last_tag

TAGS = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")
# as d1 counts them: each with the newlines that its prompt shows
TAGS_ON_LINES = ("<reasoning>\n", "\n</reasoning>\n", "\n<answer>\n", "\n</answer>")
PER_TAG = 0.125
PER_TRAILING_CHARACTER = 0.002  # d1 charges 0.001 in each of the two terms of the answer tags
SOFT = re.compile(
    r"\s*<reasoning>(?=\s*[^\s<]).*</reasoning>\s*<answer>(?=\s*[^\s<]).*</answer>", re.DOTALL
)
STRICT = re.compile(
    r"\s*<reasoning>\n(?=\s*[^\s<]).*\n</reasoning>\n<answer>\n(?=\s*[^\s<]).*\n</answer>\s*",
    re.DOTALL,
)
INTEGER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)", re.ASCII)


def soft_format(completion: str) -> float:
    """1.0 if the text starts with the two blocks, in order, with any space around the tags."""
    text = first_turn(completion)
    return float(_each_tag_once(text) and SOFT.match(text) is not None)


def strict_format(completion: str) -> float:
    """1.0 if the text is the two blocks and nothing else, each tag on a line of its own."""
    text = first_turn(completion)
    return float(_each_tag_once(text) and STRICT.fullmatch(text) is not None)


def xml_count(completion: str) -> float:
    """0.125 for each of the four tags that occurs just once on its line, less 0.002 for each
    character after </answer>; between 0.0 and 0.5."""
    text = first_turn(completion)
    score = PER_TAG * sum(text.count(tag) == 1 for tag in TAGS_ON_LINES)
    trailing = text.rpartition("\n</answer>")[2] if "\n</answer>" in text else ""
    return max(0.0, score - PER_TRAILING_CHARACTER * len(trailing.strip()))


def int_answer(completion: str) -> float:
    """1.0 if the <answer> block (without one, the whole text) is an integer, right or wrong."""
    text = first_turn(completion)
    block = last_tag(text, "answer")
    return float(INTEGER.fullmatch((text if block is None else block).strip()) is not None)


def _each_tag_once(text: str) -> bool:
    return all(text.count(tag) == 1 for tag in TAGS)
