r"""Does an expression reach the target with each given number used exactly once?

    expression = term { (+|-) term }        term   = factor { (*|/) factor }
    factor     = - factor | number | ( expression ) | \frac{expression}{expression}

Read by the parser below over exact fractions, never by `eval`: text from a model cannot run, hang,
or build a decimal out of two of its numbers. Powers and // are not in the grammar; "3 4" is not 34.
"""

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from rewards.extract import first_turn, last_boxed, last_tag

LONGEST = 300  # characters
DEEPEST = 40  # nested parentheses and signs
SPELLINGS = (
    (re.compile("[\N{MULTIPLICATION SIGN}\N{MIDDLE DOT}\N{DOT OPERATOR}]"), "*"),
    (re.compile(r"\\(?:times|cdot|ast)(?![A-Za-z])"), "*"),
    (re.compile(r"\N{DIVISION SIGN}|\\div(?![A-Za-z])"), "/"),
    (re.compile("[\N{MINUS SIGN}\N{EN DASH}]"), "-"),
    (re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[()\[\],;:! ]|\$"), " "),
    (re.compile(r"\\[dt]?frac(?![A-Za-z])"), "F"),
)
TOKEN = re.compile(r"\s*(?:([0-9]+)|([-+*/()\[\]{}=F]))")
CLOSES = {"(": ")", "[": "]", "{": "}"}


class NotAnExpression(Exception):
    """The text is outside the grammar."""


def countdown_reached(completion: str, numbers: Sequence[int], target: int) -> float:
    """1.0 or 0.0. The answer is the last <answer> block, its last box if it has one; else the last
    box; else the whole text. "= target" may follow the expression, if it is true."""
    text = first_turn(completion)
    block = last_tag(text, "answer")
    text = block if block is not None else text
    try:
        value, used = evaluate(last_boxed(text) or text, int(target))
    except (NotAnExpression, ZeroDivisionError):
        return 0.0
    return float(value == int(target) and Counter(used) == Counter(map(int, numbers)))


def evaluate(text: str, target: int) -> tuple[Fraction, list[int]]:
    """(value, numbers used) of an expression, or of "expression = target"."""
    tokens = tokenise(text)
    if "=" in tokens:
        equals = tokens.index("=")
        right = "".join(tokens[equals + 1 :])
        if right != str(target):
            raise NotAnExpression(f"the right side is {right}, not {target}")
        tokens = tokens[:equals]
    parser = _Parser(tokens)
    value = parser.expression()
    if parser.next is not None:
        raise NotAnExpression(f"unexpected {parser.next!r}")
    return value, parser.used


def tokenise(text: str) -> list[str]:
    """Digits, operators and brackets, in the plain spelling."""
    if len(text) > LONGEST:
        raise NotAnExpression(f"{len(text)} characters; at most {LONGEST}")
    for pattern, plain in SPELLINGS:
        text = pattern.sub(plain, text)
    text = text.strip().removesuffix(".").rstrip()
    tokens: list[str] = []
    at = 0
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None:
            raise NotAnExpression(f"unexpected {text[at : at + 10]!r}")
        tokens.append(token[1] or token[2])
        at = token.end()
    return tokens


class _Parser:
    """Recursive descent over the tokens; `used` collects the numbers."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.used: list[int] = []

    @property
    def next(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self) -> str:
        if self.next is None:
            raise NotAnExpression("it ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def expression(self) -> Fraction:
        value = self.term()
        while self.next in ("+", "-"):
            value = value + self.term() if self.take() == "+" else value - self.term()
        return value

    def term(self) -> Fraction:
        value = self.factor()
        while self.next in ("*", "/"):
            value = value * self.factor() if self.take() == "*" else value / self.factor()
        return value

    def factor(self) -> Fraction:
        self.depth += 1
        if self.depth > DEEPEST:
            raise NotAnExpression(f"more than {DEEPEST} levels deep")
        token = self.take()
        if token == "-":
            value = -self.factor()
        elif token == "F":
            value = self.bracketed("{") / self.bracketed("{")
        elif token in CLOSES:
            self.at -= 1
            value = self.bracketed(token)
        elif token.isdigit():
            self.used.append(int(token))
            value = Fraction(int(token))
        else:
            raise NotAnExpression(f"unexpected {token!r}")
        self.depth -= 1
        return value

    def bracketed(self, opening: str) -> Fraction:
        if self.take() != opening:
            raise NotAnExpression(f"expected {opening!r}")
        value = self.expression()
        if self.take() != CLOSES[opening]:
            raise NotAnExpression(f"expected {CLOSES[opening]!r}")
        return value
