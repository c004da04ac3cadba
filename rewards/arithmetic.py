r"""Sums over whole numbers, read exactly and safely: + - * / and brackets, as fractions.

    expression = term { (+|-) term }        term   = factor { (*|/) factor }
    factor     = - factor | number | ( expression ) | \frac{expression}{expression}

Plain, Unicode and LaTeX spellings are one grammar. Read by the parser below, never by `eval`: text
from a model cannot run, hang, or build a decimal out of two numbers. Powers, //, factorials and
juxtaposition are not in the grammar: "3 4" is not 34, and "2(3)" is nothing.
"""

import re
from fractions import Fraction

from rewards.digits import ascii_digits

DEEPEST = 100  # nested brackets and signs; four Python frames each
SPELLINGS = (
    (re.compile(r"\$+|~|\\displaystyle(?![A-Za-z])|\\q?quad(?![A-Za-z])|\\[()\[\],;:!> ]"), " "),
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?)(?![A-Za-z])"), " "),
    (re.compile(r"\\([{}])"), r"\1"),
    (re.compile(r"\\(?:times|cdot|ast)(?![A-Za-z])"), "*"),
    (re.compile("[\u00d7\u00b7\u22c5\u2219\u2022\u2217\u2715\u2716\u2a2f\uff0a\uff58\u30fb]"), "*"),
    (re.compile(r"(?<=[\d)\]}\s])[xX](?=[\s\d(\[{\\-])"), "*"),
    (re.compile(r"\\div(?![A-Za-z])|[\u00f7\u2215\u2044\u2797\uff0f]"), "/"),
    (re.compile("[\u2212\u2010\u2011\u2012\u2013\u2014\u2796\ufe63\uff0d]"), "-"),
    (re.compile("[\u2795\ufe62\uff0b]"), "+"),
    (re.compile("[\uff1d\ufe66]|=="), "="),
    (re.compile("\uff08"), "("),
    (re.compile("\uff09"), ")"),
    (re.compile(r"\\[cdt]?frac(?![A-Za-z])"), "F"),
    (re.compile(r"(?<![\d.,])([1-9]\d{0,2}(?:(?:,|\{,\})\d{3})+)(?![\d.,])"), None),
)
TOKEN = re.compile(r"\s*(?:(\d+)|([-+*/()\[\]{}=F]))", re.ASCII)
CLOSES = {"(": ")", "[": "]", "{": "}"}


class NotAnExpression(Exception):
    """The text is outside the grammar."""


def tokenise(text: str, longest: int) -> list[str]:
    """Numbers, operators and brackets, in the plain spelling; "F" for a LaTeX fraction."""
    if len(text) > longest:
        raise NotAnExpression(f"{len(text)} characters; at most {longest}")
    if "F" in text:
        raise NotAnExpression("unexpected 'F'")
    text = ascii_digits(_without_markdown(text.strip()))
    for pattern, plain in SPELLINGS:
        text = pattern.sub(plain if plain is not None else _without_commas, text)
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


def evaluate(tokens: list[str]) -> tuple[Fraction, list[int]]:
    """(value, numbers used) of an expression; NotAnExpression also for a division by zero."""
    parser = _Parser(tokens)
    value = parser.expression()
    if parser.next is not None:
        raise NotAnExpression(f"unexpected {parser.next!r}")
    return value, parser.used


def _without_markdown(text: str) -> str:
    """A whole text in bold, in backticks or in a code fence, without them."""
    for mark in ("```", "`", "**"):
        inner = text.removesuffix(".")
        if len(inner) > 2 * len(mark) and inner.startswith(mark) and inner.endswith(mark):
            text = inner[len(mark) : -len(mark)].strip()
            text = re.sub(r"^[a-z]+\n", "", text) if mark == "```" else text
    return text


def _without_commas(number: re.Match[str]) -> str:
    return re.sub(r"\D", "", number[1])


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
            value = value * self.factor() if self.take() == "*" else _divide(value, self.factor())
        return value

    def factor(self) -> Fraction:
        self.depth += 1
        if self.depth > DEEPEST:
            raise NotAnExpression(f"more than {DEEPEST} levels deep")
        token = self.take()
        if token == "-":
            value = -self.factor()
        elif token == "F":
            above = self.part_of_fraction()
            value = _divide(above, self.part_of_fraction())
        elif token in CLOSES:
            value = self.until(CLOSES[token])
        elif token.isdigit():
            value = self.number(token)
        else:
            raise NotAnExpression(f"unexpected {token!r}")
        self.depth -= 1
        return value

    def part_of_fraction(self) -> Fraction:
        r"""{expression}, or one digit as LaTeX reads it: \frac12 is \frac{1}{2}."""
        token = self.take()
        if token == "{":
            return self.until("}")
        if not token.isdigit():
            raise NotAnExpression(f"unexpected {token!r} in a fraction")
        if len(token) > 1:  # the digits after the first belong to what follows
            self.at -= 1
            self.tokens[self.at] = token[1:]
        return self.number(token[0])

    def until(self, closing: str) -> Fraction:
        value = self.expression()
        if self.take() != closing:
            raise NotAnExpression(f"expected {closing!r}")
        return value

    def number(self, token: str) -> Fraction:
        self.used.append(int(token))
        return Fraction(self.used[-1])


def _divide(above: Fraction, below: Fraction) -> Fraction:
    if below == 0:
        raise NotAnExpression("a division by zero")
    return above / below
