"""Completions that went wrong in every way we could think of, from a seed."""

import random
from collections.abc import Callable

ANSWERS = (
    "42", "-1,234.50", r"\frac{3}{4}", r"\sqrt{13}", r"(3, \infty)", "x = 5", "12 and 30", "52_8",
    r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"7\text{ cm}^2", r"25\%", "1 1/4", "B",
    "(44 - 19) + 35", r"\frac{12}{4} + 3", "4 \xd7 2", "3+4=7", "1234341221434321",
    "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1", "Zoey is a knight, and Oliver is a knave.",
    '{"House 1": {"Name": "Eric"}}', "def add(a, b):\n    return a + b", "",
)  # fmt: skip
SHAPES = (
    "<reasoning>\nWe add {a} and think.\n</reasoning>\n<answer>\n{a}\n</answer>",
    "<reasoning>\nFirst, 5 * 8 = 40.\n</reasoning>\n<answer>\n\\boxed{{{a}}}\n</answer><|eot_id|>",
    "So we get $x^2 + 1$, then \\boxed{{{a}}}.",
    "Adding them up gives the total.\n#### {a}",
    "**Final Answer:** {a}",
    "The answer is {a}.",
    "```python\n{a}\n```",
    '{{"answer": "{a}"}}',
    "{a}",
)
PIECES = (
    "{", "}", "{}", r"\boxed{", r"\boxed", "boxed{5}", r"\fbox{", "<answer>", "</answer>", "</",
    "<", "<reasoning>", "</reasoning>", "####", "<|eot_id|>", "<|mdm_mask|>", "[MASK]", "[PAD]",
    "$", "$$", r"\[", r"\]", r"\(", r"\)", "\\", "\\\\", r"\left(", r"\right)", r"\frac",
    r"\frac{1}{0}", "0/0", r"\sqrt", "^", "^{", "_", "_{", "!", "!!", "**", "//", "%", ",", ";",
    ".", "...", "\u2026", "-", "--", "\u2212", "\xd7", "\xf7", "\xb7", "\xbd", "\xb2",
    "\u2079\u2079", "\u221e", "\u03c0", "\u2264", "\u0663", "\u0969", "\uff11\uff12", "\u2167",
    "\U0001d7d7", "\u200b", "\u202e", "e\u0301", "\ufeff", "\x00", "\x07", "\x1b[31m", "\x7f",
    "\x85", "\u2028", "\r", "\t", "\x0b", "\ud800", "\udfff", "\U0010ffff", "\U0001f9ee", "1e999",
    "-1e-999", "nan", "inf", "0x1F", "1_000", "\u066b", "__import__('os').system('true')",
    "eval(", "lambda:0", "import os; os._exit(1)", "while True: pass", "sys.exit(0)", "{{{",
    "[[[", r"\begin{pmatrix}", r"\end{pmatrix}", r"\infty", r"\text{", r"\pm", " and ", " or ",
    "=", "==", "<=", r"\cup", r"\in", r"\{", r"\}", "(", ")", "[", "]", "|", "||",
)  # fmt: skip
BRACKETS = (
    ("(", ")"), ("{", "}"), (r"\frac{", "}{2}"), (r"\sqrt{", "}"), (r"\boxed{", "}"), ("[", "]"),
    ("-", ""), ("<answer>", "</answer>"), ("x^{", "}"), (r"\left(", r"\right)"), ('{"a":', "}"),
)  # fmt: skip


def power_tower(rng: random.Random) -> str:
    height = rng.randint(2, 200)
    return "9^{" * height + "9" + "}" * height


def python_tower(rng: random.Random) -> str:
    return "**".join("9" * rng.randint(2, 60))


def factorials(rng: random.Random) -> str:
    return "((" * 3 + str(rng.randint(2, 99_999)) + "!)!)!" + "!" * rng.randint(0, 50)


def long_number(rng: random.Random) -> str:
    digits = rng.choice((50, 50, 400, 5_000, 50_000))
    return rng.choice(("", "-", "0.", "1/", "1e", "\\sqrt{")) + rng.choice("1234567890") * digits


def million_digits(rng: random.Random) -> str:
    return rng.choice(("", "3+", "0.", "1,")) + rng.choice("19") * 1_000_000


def nested(rng: random.Random) -> str:
    depth = rng.choice((5, 5, 50, 50, 1_000, 10_000))
    left, right = rng.choice(BRACKETS)
    return left * depth + "1" + right * (depth if rng.random() < 0.7 else depth // 2)


def repeated(rng: random.Random) -> str:
    return rng.choice(PIECES) * rng.choice((3, 30, 300, 300, 3_000, 20_000))


def many_terms(rng: random.Random) -> str:
    return rng.choice(("+", ", ", " ", "*", " and ", "-", "\n", "\\cup")).join(
        str(rng.randint(-9, 99)) for _ in range(rng.choice((3, 40, 2_000)))
    )


def unicode_noise(rng: random.Random) -> str:
    return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randint(1, 200)))


def piece(rng: random.Random) -> str:
    return rng.choice(PIECES)


INSERTED: tuple[Callable[[random.Random], str], ...] = (
    power_tower, python_tower, factorials, long_number, nested, repeated, many_terms, unicode_noise,
    *[piece] * 12,
)  # fmt: skip


def insert(text: str, rng: random.Random) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + rng.choice(INSERTED)(rng) + text[at:]


def truncate(text: str, rng: random.Random) -> str:
    at = rng.randint(0, len(text))
    return text[:at] if rng.random() < 0.7 else text[at:]


def drop(text: str, rng: random.Random) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + text[at + rng.randint(1, 8) :]


def repeat_a_part(text: str, rng: random.Random) -> str:
    start = rng.randint(0, len(text))
    part = text[start : start + rng.randint(1, 60)]
    return text[:start] + part * rng.choice((2, 2, 3, 20)) + text[start:]


def replace_one(text: str, rng: random.Random) -> str:
    if not text:
        return text
    at = rng.randrange(len(text))
    return text[:at] + rng.choice("0123456789{}<>\\/+-*^_$, \n\x00\u00e9\u0663") + text[at + 1 :]


def swap(text: str, rng: random.Random) -> str:
    at = rng.randint(0, len(text))
    return text[at:] + text[:at]


def recase(text: str, rng: random.Random) -> str:
    return rng.choice((str.upper, str.lower, str.swapcase, str.title))(text)


def relined(text: str, rng: random.Random) -> str:
    return text.replace("\n", rng.choice(("\r\n", "\r", "", "\n\n\n", "\u2028", " ")))


MUTATIONS: tuple[Callable[[str, random.Random], str], ...] = (
    insert, insert, insert, truncate, drop, repeat_a_part, replace_one, replace_one, swap, recase,
    relined,
)  # fmt: skip


def mutated(seed: int, answers: tuple[str, ...] = ANSWERS) -> str:
    """The same text for the same seed; at most a few million characters."""
    rng = random.Random(seed)
    answer = rng.choice(answers) if rng.random() < 0.7 else rng.choice(INSERTED)(rng)
    if rng.random() < 0.001:
        answer = million_digits(rng)
    text = rng.choice(SHAPES).format(a=answer)
    for _ in range(rng.choice((1, 1, 2, 2, 3, 5))):
        if len(text) < 3_000_000:
            text = rng.choice(MUTATIONS)(text, rng)
    return text
