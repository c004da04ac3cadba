r"""A LaTeX (or plain) expression as a tree. It is read, never evaluated, and nothing in it is run.

    parse(r"\frac{1}{2}x^2") == ("mul", ("div", ("num", 1), ("num", 2)), ("pow", ("sym", "x"), ...))

Only what is listed here is an expression; anything else, every word above all, is `Unreadable`:
so are integrals, sums and limits, which restate a question instead of answering it.
Letters keep their case; e and i are constants; a number before a fraction of whole numbers is a
mixed number; two numbers side by side are nothing.
"""

import re
from fractions import Fraction

from rewards.expression_tree import Node, UnknownCommand, Unreadable, symbols
from rewards.latex_names import (
    CLOSERS,
    CONSTANTS,
    DECORATED,
    DIGITS,
    FUNCTIONS,
    GREEK,
    INVERSES,
    OVER,
    ROUNDINGS,
    TIMES,
    UPRIGHT,
)

__all__ = ["Node", "UnknownCommand", "Unreadable", "parse", "symbols"]
TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d*)?|\.\d+|[A-Za-z]|\S", re.ASCII)
MAX_LENGTH = 500  # characters
MAX_TOKENS = 250  # and so the depth of a tree
MAX_DEPTH = 40  # of brackets, powers and signs within each other
MAX_DIGITS = 400  # of one number
DEGREE: Node = ("div", ("const", "pi"), ("num", Fraction(180)))
END = ""


def parse(latex: str) -> Node:
    """The tree of the whole text; `Unreadable` if any part of it is not understood."""
    if len(latex) > MAX_LENGTH:
        raise Unreadable(f"longer than {MAX_LENGTH} characters")
    tokens = TOKEN.findall(latex)
    if len(tokens) > MAX_TOKENS:
        raise Unreadable(f"more than {MAX_TOKENS} symbols")
    parser = _Parser(tokens)
    tree = parser.sum()
    parser.expect(END)
    return tree


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at, self.depth, self.bars = tokens, 0, 0, 0

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else END

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def skip(self, token: str) -> bool:
        found = self.peek() == token
        self.at += found
        return found

    def expect(self, token: str) -> None:
        if self.next() != token:
            raise Unreadable(f"expected {token or 'the end'!r}")

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable(f"nested more than {MAX_DEPTH} deep")
        tree: Node = self.product()
        while self.peek() in ("+", "-"):
            sign = self.next()
            term = self.product()
            tree = ("add", tree, ("neg", term) if sign == "-" else term)
        self.depth -= 1
        return tree

    def product(self) -> Node:
        tree: Node = self.signed()
        while True:
            token = self.peek()
            if token in TIMES:
                self.next()
                tree = ("mul", tree, self.signed())
            elif token in OVER:
                self.next()
                tree = ("div", tree, self.signed())
            elif self.starts_factor(token):
                if self.is_number_again(token):
                    raise Unreadable("two numbers side by side")
                tree = ("mul", tree, self.power())
            else:
                return tree

    def mixed(self, whole: Node) -> Node:
        part = self.power()
        if part[0] == "div" and part[1][0] == part[2][0] == "num":
            return ("add", whole, part)
        return ("mul", whole, part)

    def starts_factor(self, token: str) -> bool:
        if token == "|":
            return self.bars == 0
        return (
            token[:1].isalnum()
            or token[:1] == "."
            or token in CLOSERS
            or (token[:1] == "\\" and token[1:].isalpha() and token not in (r"\rfloor", r"\rceil"))
        )

    def is_number_again(self, token: str) -> bool:
        """Neither `2 3` nor the garbled 4{10} is a product."""
        begins = self.peek(1) if token == "{" else token
        return self.tokens[self.at - 1][-1].isdigit() and begins[:1] in DIGITS

    def signed(self) -> Node:
        sign = ""
        while self.peek() in ("+", "-"):
            sign += self.next()
        tree = self.power()
        if tree[0] == "num" and self.peek() == r"\frac" and self.tokens[self.at - 1].isdigit():
            tree = self.mixed(tree)
        return ("neg", tree) if sign.count("-") % 2 else tree

    def power(self) -> Node:
        tree: Node = self.atom()
        while True:
            if self.skip("!"):
                tree = ("fact", tree)
            elif self.skip("%") or self.skip(r"\%"):
                tree = ("div", tree, ("num", Fraction(100)))
            elif self.skip(r"\degree"):
                tree = ("mul", tree, DEGREE)
            elif self.peek() == "^":
                self.next()
                circle = self.is_circle()
                tree = ("mul", tree, DEGREE) if circle else ("pow", tree, self.exponent())
            else:
                return tree

    def is_circle(self) -> bool:
        if self.skip(r"\circ"):
            return True
        if self.peek() == "{" and self.peek(1) == r"\circ" and self.peek(2) == "}":
            self.at += 3
            return True
        return False

    def exponent(self) -> Node:
        if self.skip("-"):
            return ("neg", self.exponent())
        return self.argument(digits=None)

    def argument(self, digits: int | None = 1) -> Node:
        r"""What a command applies to: a group, or one token; of a number only so many `digits`."""
        token = self.peek()
        if token == "{":
            return self.group()
        if digits and token.isdigit() and len(token) > digits:
            self.tokens[self.at] = token[digits:]
            return ("num", Fraction(token[:digits]))
        return self.atom()

    def group(self) -> Node:
        closer = CLOSERS[self.next()]
        bars, self.bars = self.bars, 0
        tree = self.sum()
        self.expect(closer)
        self.bars = bars
        return tree

    def atom(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable(f"nested more than {MAX_DEPTH} deep")
        tree = self.unguarded_atom()
        self.depth -= 1
        return tree

    def unguarded_atom(self) -> Node:
        token = self.peek()
        if token in ROUNDINGS:
            return ("call", ROUNDINGS[token], self.group())
        if token in CLOSERS:
            return self.group()
        self.next()
        if token[:1].isdigit() or (token[:1] == "." and token[1:]):
            return self.number(token)
        if token == r"\frac":
            above = self.argument()
            return ("div", above, self.argument())
        if token == r"\binom":
            above = self.argument()
            return ("call", "binomial", above, self.argument())
        if token == r"\sqrt":
            return self.root()
        if token == "|":
            self.bars += 1
            inside = self.sum()
            self.expect("|")
            self.bars -= 1
            return ("abs", inside)
        if token.removeprefix("\\") in FUNCTIONS and token[0] == "\\":
            return self.function(token[1:])
        return self.symbol(token)

    def number(self, digits: str) -> Node:
        if len(digits) > MAX_DIGITS:
            raise Unreadable(f"a number of more than {MAX_DIGITS} digits")
        value = Fraction(digits.removesuffix("."))
        if "." in digits and self.peek() in (r"\overline", r"\bar", r"\dot"):
            self.next()
            self.expect("{")
            again = self.next()
            self.expect("}")
            if not again.isdigit() or len(again) > MAX_DIGITS:
                raise Unreadable("what repeats must be digits")
            shift = 10 ** len(digits.partition(".")[2])
            value += Fraction(int(again), shift * (10 ** len(again) - 1))
        return ("num", value)

    def root(self) -> Node:
        degree = self.group() if self.peek() == "[" else ("num", Fraction(2))
        return ("pow", self.argument(digits=None), ("div", ("num", Fraction(1)), degree))

    def function(self, name: str) -> Node:
        base: Node | None = None
        exponent: Node | None = None
        while (mark := self.peek()) in ("^", "_"):
            self.next()
            if mark == "^":
                exponent = self.exponent()
            elif name == "log":
                base = self.argument()
            else:
                raise Unreadable("a subscript of a function")
        if exponent == ("neg", ("num", Fraction(1))):
            if name not in INVERSES:
                raise Unreadable(f"the inverse of {name}")
            name, exponent = INVERSES[name], None
        tree = ("call", name, self.operand()) + (() if base is None else (base,))
        return tree if exponent is None else ("pow", tree, exponent)

    def operand(self) -> Node:
        r"""What a function applies to: (x), or the factors that follow: \sin 2x."""
        if self.peek() in CLOSERS:
            return self.group()
        tree: Node = self.power()
        while self.starts_factor(self.peek()) and self.peek()[1:] not in FUNCTIONS:
            if self.peek()[0].isdigit():
                raise Unreadable("two numbers side by side")
            tree = ("mul", tree, self.power())
        return tree

    def symbol(self, token: str) -> Node:
        name = token
        if token in UPRIGHT or token in DECORATED:
            self.expect("{")
            letter = self.next()
            self.expect("}")
            if not (len(letter) == 1 and letter.isalpha()) and letter[1:] not in GREEK:
                raise Unreadable(f"the word after {token}")
            name = letter if token in UPRIGHT else token + letter
        if name in CONSTANTS and self.peek() != "_":
            return ("const", CONSTANTS[name])
        if not (len(name) == 1 and name.isalpha()) and name[1:] not in GREEK and name == token:
            raise (UnknownCommand if name[1:].isalpha() else Unreadable)(f"{token!r}")
        if self.skip("_"):
            name += "_" + self.subscript()
        while self.skip("'"):
            name += "'"
        return ("sym", name + self.fixed_argument())

    def fixed_argument(self) -> str:
        """f(0) is a value with a name, not f times 0."""
        if self.peek() == "(" and self.peek(1)[:1].isdigit() and self.peek(2) == ")":
            self.at += 3
            return f"({self.tokens[self.at - 2]})"
        return ""

    def subscript(self) -> str:
        if not self.skip("{"):
            return self.next()
        inside, depth = list[str](), 1
        while depth:
            token = self.next()
            depth += {"{": 1, "}": -1}.get(token, 0)
            if not (token.isalnum() or token in ("{", "}", ",") or token[1:].isalpha()):
                raise Unreadable(f"{token!r} in a subscript")
            inside.append(token.strip("{}"))
        return "".join(inside)
