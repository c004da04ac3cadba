"""Near misses of a gold answer: each differs from it in value or form, and none may be paid."""

import re
from collections.abc import Iterator

BRACKETS = {"(": "[", "[": "(", ")": "]", "]": ")"}
SWAPPED = {"+": "-", "-": "+"}
WORDS = (
    (r"\sqrt", ""),
    (r"\pi", ""),
    (r"\infty", r"-\infty"),
    (r"\cup", r"\cap"),
    (r"\pm", "+"),
    (r"\frac", r"\binom"),
    ("text{", "text{not "),
    ("^2", "^3"),
    ("^", "^{-1}"),
    ("_", ""),
    ("=", "<"),
    (r"\in", r"\notin"),
    ("x", "y"),
    ("i", "j"),
)


def last_digit_changed(gold: str) -> str | None:
    digits = list(re.finditer(r"\d", gold))
    return _next_digit(gold, digits[-1]) if digits else None


def near_misses(gold: str) -> Iterator[str]:
    """Wrong answers that look like the gold. Some may be equal by chance; see `is_same`."""
    for digit in re.finditer(r"\d", gold):
        yield _next_digit(gold, digit)
        yield gold[: digit.end()] + digit[0] + gold[digit.end() :]
        yield gold[: digit.start()] + gold[digit.end() :]
    for sign in re.finditer(r"[+-]", gold):
        yield gold[: sign.start()] + SWAPPED[sign[0]] + gold[sign.end() :]
    for bracket in re.finditer(r"[()\[\]]", gold):
        yield gold[: bracket.start()] + BRACKETS[bracket[0]] + gold[bracket.end() :]
    for old, new in WORDS:
        if old in gold:
            yield gold.replace(old, new)
    for above, below in re.findall(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", gold):
        yield gold.replace(f"{{{above}}}{{{below}}}", f"{{{below}}}{{{above}}}")
    parts = gold.split(",")
    if len(parts) > 1 and not re.search(r"\d,(?:\\!)?\s?\d{3}", gold):
        yield ",".join(parts[:-1])
        yield gold + ", 17"
        yield ",".join([parts[0].replace("(", "(9,"), *parts[1:]])
    yield from (f"-({gold})", f"{gold}+1", f"2({gold})", f"{gold}, {gold}", f"{gold} or 17")


def is_same(gold: str, changed: str) -> bool:
    """True for the changes that do not change what is said."""
    zeros = re.compile(r"(?<![\d.])0+(?=\d)|(?<=\.)0+(?!\d)|(?<=\.\d)0+(?!\d)|(?<=\.\d\d)0+(?!\d)")
    return (
        zeros.sub("", gold) == zeros.sub("", changed)  # 00.15
        or changed in ("-(0)", "2(0)", "-0", ".15", r"\$18.9", r"\$18.900")
        or changed == gold
        or (r"\in" in gold and changed == f"{gold}, {gold}")  # both hold
    )


def _next_digit(gold: str, digit: re.Match[str]) -> str:
    return gold[: digit.start()] + str((int(digit[0]) + 1) % 10) + gold[digit.end() :]
