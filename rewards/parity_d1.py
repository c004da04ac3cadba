r"""d1's rewards as published (arXiv:2504.12216, commit 837888f), for reproducing its numbers only.

Written anew from what they do; each says what is wrong with it. They read the text as decoded, so
what follows an end-of-turn token counts. Ours without the faults: gsm8k, int_answer, soft_format,
strict_format, xml_count, boxed_format, countdown, sudoku.
"""

import re
from collections.abc import Sequence

from rewards.parity_python import OutOfBounds, python_value

BETWEEN = re.compile(r"</reasoning>\s*<answer>")
STRICT = re.compile(r"<reasoning>\n.*?\n</reasoning>\n<answer>\n.*?\n</answer>\n$")
ARITHMETIC = re.compile(r"[\d+\-*/().\s]+")


def d1_gsm8k(completion: str, answer: str) -> float:
    """2.0 if the text after the last <answer> (without a tag: all of it) is the gold's own string.

    Faults: "1000" is wrong for "1,000", "72.0", "$72", "72 dollars" and \\boxed{72} for "72"; a
    bare "72" without tags or reasoning is right.
    """
    return 2.0 * (_after_tag(completion) == answer)


def d1_int(completion: str) -> float:
    """0.5 if that text is made of digits.

    Faults: "-3" and "1,000" earn nothing, a superscript two does, and so does a wrong "0".
    """
    return 0.5 * _after_tag(completion).isdigit()


def d1_soft_format(completion: str) -> float:
    """0.5 if the text begins with the two blocks.

    Faults: blocks of more than one line earn nothing, so it is never earned together with
    d1_strict_format, and hardly ever at all; empty blocks, and several of them, earn it.
    """
    line = completion.partition("\n")[0]
    if not line.startswith("<reasoning>"):
        return 0.0
    joints = [joint for joint in BETWEEN.finditer(completion) if joint.start() < len(line)]
    # only the last of the line can reach the next one, and the first leaves most of this one
    ends = {joints[0].end(), joints[-1].end()} if joints else ()
    return 0.5 * any("</answer>" in completion[end:].partition("\n")[0] for end in ends)


def d1_strict_format(completion: str) -> float:
    """0.5 if the text is the two blocks on lines of their own.

    Faults: reasoning of more than one line earns nothing; a newline must follow </answer>, where
    a model ends its turn.
    """
    return 0.5 * (STRICT.match(completion) is not None)


def d1_xml_count(completion: str) -> float:
    r"""0.125 for each of the four tags, less 0.001 for each character after </answer>, twice.

    Faults: without a newline after </answer> the first term charges the whole text, so that a
    right answer of 1000 characters gets -0.5; there is no lower bound.
    """
    text, score = completion, 0.0
    score += 0.125 * (text.count("<reasoning>\n") == 1)
    score += 0.125 * (text.count("\n</reasoning>\n") == 1)
    if text.count("\n<answer>\n") == 1:
        score += 0.125 - 0.001 * len(text.rpartition("\n</answer>\n")[2])
    if text.count("\n</answer>") == 1:
        score += 0.125 - 0.001 * (len(text.rpartition("\n</answer>")[2]) - 1)
    return score


def d1_boxed_and_answer_tags(completion: str) -> float:
    r"""0.75 with an <answer> tag, 0.25 without.

    Faults: its "\boxed" begins with a backspace, so that a box is never seen (and a backspace
    before "oxed" is worth 0.25); an opening tag is enough; the empty text earns 0.25.
    """
    tagged = "<answer>" in completion
    return 0.5 * (tagged + (1.0 if "\boxed" in completion else 0.5))


def d1_countdown(completion: str, numbers: Sequence[int], target: int) -> float:
    """1.0 if the last <answer> block uses the numbers and Python gives it the target; 0.1 for any
    other block; 0.0 without one.

    Faults: powers, // and decimals made of two numbers are right; "3+4=7", \\times, a times sign
    and a box are 0.1, as is an empty block. Where the original hands the text to `eval`, and hangs
    on 9**9**9, its arithmetic is done here by a walk over the syntax tree, and what leaves
    reasonable bounds counts as wrong (0.1).
    """
    block = _last_block(completion)
    if block is None:
        return 0.0
    text = block.strip()
    try:
        used = sorted(int(number) for number in re.findall(r"\d+", text))
        if used != sorted(map(int, numbers)) or not ARITHMETIC.fullmatch(text):
            return 0.1
        return 1.0 if abs(python_value(text) - int(target)) < 1e-5 else 0.1
    except (OutOfBounds, ValueError, OverflowError):
        return 0.1


def d1_sudoku(completion: str, puzzle: str, solution: str) -> float:
    """The share of the 16 cells empty in `puzzle` that equal the one stored solution.

    Faults: changed clues cost nothing; the digits of the last <answer> block are padded with 0 or
    cut to 16, digits in words among them; other valid solutions are wrong; 4444444444444444 earns a
    quarter, and a greedy filler 85 %, on d1's own test file.
    """
    digits = "".join(letter for letter in _last_block(completion) or "" if letter.isdigit())
    empty = [cell for cell in range(16) if puzzle[cell] == "0"]
    if not digits or not empty:
        return 0.0
    grid = digits.ljust(16, "0")
    return sum(grid[cell] == solution[cell] for cell in empty) / len(empty)


def _after_tag(text: str) -> str:
    return text.rpartition("<answer>")[2].partition("</answer>")[0].strip()


def _last_block(text: str) -> str | None:
    """The last match of <answer>(.*?)</answer>, found in linear time."""
    found, at = None, 0
    while True:
        start = text.find("<answer>", at)
        end = text.find("</answer>", start + len("<answer>")) if start >= 0 else -1
        if end < 0:
            return found
        found, at = text[start + len("<answer>") : end], end + len("</answer>")
