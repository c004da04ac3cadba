r"""One spelling for what is written in several: \dfrac and \frac, Unicode, 1,000 and 1000.

`plain` loses no meaning that two answers could differ in. Thousands separators are taken out where
they can be nothing else: 1,000,000  1{,}000  12,34,567  1 000 000  1'000'000  1.000.000  1.234,56
A decimal comma alone (3,5) is a list, and 1.234 is a decimal; inside brackets a comma separates.
"""

import re
import unicodedata
from fractions import Fraction

from rewards.digits import ascii_digits

LONGEST = 500  # characters; no answer is longer
DEEPEST = 30  # brackets within each other

SUPERSCRIPTS = "\N{SUPERSCRIPT ZERO}\xb9\xb2\xb3" + "".join(map(chr, range(0x2074, 0x207A)))
RAISED = str.maketrans(SUPERSCRIPTS + "\N{SUPERSCRIPT MINUS}", "0123456789-")
SUBSCRIPT = re.compile("[\u2080-\u2089]+")
OTHER_NUMBER = re.compile(
    "[\u2150-\u215f\u2189\u2460-\u249b\u24ea-\u24ff\u2776-\u2793]"
)  # 1/5, (1)
CHARACTERS = str.maketrans(
    {
        "\N{MINUS SIGN}": "-",
        "\N{EN DASH}": "-",
        "\N{MULTIPLICATION SIGN}": r"\times ",
        "\N{MIDDLE DOT}": r"\cdot ",
        "\N{DOT OPERATOR}": r"\cdot ",
        "\N{DIVISION SIGN}": "/",
        "\N{FRACTION SLASH}": "/",
        "\N{INFINITY}": r"\infty ",
        "\N{LESS-THAN OR EQUAL TO}": r"\leq ",
        "\N{GREATER-THAN OR EQUAL TO}": r"\geq ",
        "\N{NOT EQUAL TO}": r"\neq ",
        "\N{ALMOST EQUAL TO}": r"\approx ",
        "\N{UNION}": r"\cup ",
        "\N{INTERSECTION}": r"\cap ",
        "\N{ELEMENT OF}": r"\in ",
        "\N{EMPTY SET}": r"\emptyset ",
        "\N{PLUS-MINUS SIGN}": r"\pm ",
        "\N{SQUARE ROOT}": r"\sqrt ",
        "\N{DEGREE SIGN}": r"^\circ ",
        "\N{VULGAR FRACTION ONE HALF}": " 1/2",
        "\N{VULGAR FRACTION ONE QUARTER}": " 1/4",
        "\N{VULGAR FRACTION THREE QUARTERS}": " 3/4",
        "\N{VULGAR FRACTION ONE THIRD}": " 1/3",
        "\N{VULGAR FRACTION TWO THIRDS}": " 2/3",
        "\N{PRIME}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{DOUBLE-STRUCK CAPITAL R}": r"\mathbb{R}",
        "\N{HORIZONTAL ELLIPSIS}": r"\ldots ",
    }
    | {
        chr(code): "\\" + unicodedata.name(chr(code)).rpartition(" ")[2].lower() + " "
        for code in (*range(0x3B1, 0x3C2), *range(0x3C3, 0x3CA))
    }
)
SPACES = re.compile(r"[\s\u00a0\u2000-\u200a\u202f\u3000]+")
INVISIBLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
NO_MEANING = re.compile(
    r"\\(?:left|right|displaystyle|textstyle|limits|small|large|[bB]igg?[lrm]?)(?![A-Za-z])|\\!"
    r"|\\(?:text)?color\s*\{[A-Za-z!\d]{1,30}\}"
)
DELIMITERS = re.compile(r"(?<!\\)\\[()\[\]]|(?<=\\\\)\s*\[-?\d+\.?\d*(?:pt|ex|em)\]")
DOLLAR = re.compile(r"(?<!\\)\$")
THIN = re.compile(r"(?<!\\)\\[,;:> ]|\\(?:quad|qquad|thinspace)(?![A-Za-z])|(?<!\\)~")
FUNCTIONS = "arcsin|arccos|arctan|sin|cos|tan|cot|sec|csc|ln|log|exp"
REPLACED = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\{([^{}]*?)\\over(?![A-Za-z])([^{}]*)\}", r"\\frac{\1}{\2}"),
        (r"\{\s*\\rm\s+([^{}]{2,})\}", r"\\text{\1}"),
        (r"(?<=\s)\{\s*\\rm\s+([^{}])\}", r"\\mathrm{\1}"),
        (r"\{\s*\\rm\s+([^{}])\}", r"{\\text{\1}}"),
        (r"\\mu\s*\\(?:text|mathrm)\s*\{\s*([A-Za-z]{1,3})\s*\}", r"\\text{u\1}"),
        (  # 5 \mathrm{m} \cdot \mathrm{s}^{-1}
            r"((?<=[\d}])\s+|\\cdot\s*|/\s*)\\mathrm\s*\{\s*([gmshNJWVLKCA])\s*\}",
            r"\1\\text{\2}",
        ),
        (r"\\(?:leqslant|leqq|le)(?![A-Za-z])|<=|=<", r"\\leq "),
        (r"\\(?:geqslant|geqq|ge)(?![A-Za-z])|>=", r"\\geq "),
        (r"\\ne(?![A-Za-z])|!=", r"\\neq "),
        (r"\\(?:approxeq|simeq)(?![A-Za-z])", r"\\approx"),
        (r"\\lt(?![A-Za-z])", "<"),
        (r"\\gt(?![A-Za-z])", ">"),
        (r"\\colon(?![A-Za-z])", ":"),
        (r"\\(?:[lr]?vert|mid)(?![A-Za-z])", "|"),
        (r"\\lbrace(?![A-Za-z])", r"\\{"),
        (r"\\rbrace(?![A-Za-z])", r"\\}"),
        (r"\\(?:varnothing)(?![A-Za-z])", r"\\emptyset"),
        (r"\\(?:land|wedge)(?![A-Za-z])", " and "),
        (r"\\(?:lor|vee)(?![A-Za-z])", " or "),
        (r"\\(?:mathop|operatorname\*)(?![A-Za-z])", r"\\operatorname"),
        (r"\*\*", "^"),
        (r"\^\s*(?:\{\s*\\prime\s*\}|\\prime(?![A-Za-z]))", "'"),
        (r"(?<![\w.])(\d++(?:\.\d*+)?+)[eE]([+-]?\d++)(?![\w.])", r"\1*10^{\2}"),
        (r"\\%", "%"),
        (r"\\(?:text|mbox|textrm|textnormal|textup|texttt|mathsf|hbox)\s*\{", r"\\text{"),
        (
            r"\\(?:textbf|textit)\s*\{|\\(?:emph|underline|mathbf)\s*\{(?=(?:[^{}]{2,}|\d)\})",
            r"\\text{",
        ),
        (r"(?<![A-Za-z\\])(pi|sqrt|infinity)(?![A-Za-z])", r"\\\1 "),
        (rf"\\(?:operatorname|mathrm|text)\s*\{{\s*({FUNCTIONS})\s*\}}", r"\\\1 "),
        (rf"(?<![A-Za-z\\])({FUNCTIONS})(?=\s*[(^\\]|\s+(?:\d|[A-Za-z](?![A-Za-z])))", r"\\\1"),
        (r"\\infinity\s", r"\\infty "),
        (r"(?<=[)\]])\s*U\s*(?=[(\[])", r"\\cup "),
        (r"(?<=[)\]])\s*-\s*(?=\\\{)", r"\\setminus "),
        (r"(?<=\d)\s*\^\s*(?:o(?![A-Za-z])|\{\s*o\s*\})", r"^\\circ "),
        (r"\\mathrm\s*\{(?=[^{}]{2,}\})", r"\\text{"),
        (
            r"\\frac\s*\{\s*(\\(?:text|mathrm)\{[^{}\d]*\})\s*\}\s*\{\s*(\\(?:text|mathrm)\{[^{}\d]*\})\s*\}",
            r" \1/\2",
        ),
    )
)
GROUPS = (
    re.compile(r"(?<![\d.,])\d{1,3}(?:(?:,|\{,\}|'| )\d{3})+(?![\d,']| ?/)"),
    re.compile(r"(?<![\d.,])\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])"),
)
CONTINENTAL = re.compile(
    r"(?<![\d.,])(?:\d{1,3}(?:[. ]\d{3})+,\d{1,2}|\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?)(?![\d.,])"
)
MIXED = re.compile(r"(?<![\d.,/^_{])(\d+) (\d+) ?/ ?(\d+)(?!\d)", re.ASCII)
SPACE_BESIDE_SYMBOL = re.compile(r"(?<![A-Za-z0-9])\s+|\s+(?![A-Za-z0-9])")
DECIMAL = r"(?:\d+\.?\d*|\.\d+)"
RATIONAL = re.compile(
    rf"""(?P<sign>[+-]?)\s*(?:
      (?:(?P<whole>\d+)\s*)?\\frac\s*(?:\{{\s*(?P<minus>-?)(?P<above>{DECIMAL})\s*\}}|(?P<a>\d))\s*
          (?:\{{\s*(?P<below>{DECIMAL})\s*\}}|(?P<b>\d)(?!\d))
      | (?:(?P<whole2>\d+)\s+)?(?P<above2>\d+)\s*/\s*(?P<below2>\d+)
      | (?P<decimal>{DECIMAL}) )""",
    re.VERBOSE | re.ASCII,
)


def plain(text: str) -> str:
    """The answer in one spelling. Linear in its length, and total."""
    text = re.sub(f"[{SUPERSCRIPTS}\N{SUPERSCRIPT MINUS}]+", _lowered, text)
    text = SUBSCRIPT.sub(lambda match: "_{" + unicodedata.normalize("NFKC", match[0]) + "}", text)
    text = OTHER_NUMBER.sub(lambda match: f" {match[0]} ", text.translate(CHARACTERS))
    text = unicodedata.normalize("NFKC", ascii_digits(text))
    text = SPACES.sub(" ", INVISIBLE.sub("", text.translate(CHARACTERS)))
    text = NO_MEANING.sub("", re.sub(r"(?<=\d),\\!\s*(?=\d)", "{,}", text))
    text = THIN.sub(" ", DELIMITERS.sub(" ", text))
    if len(DOLLAR.findall(text)) % 2 == 0:
        text = DOLLAR.sub(" ", text)
    for pattern, new in REPLACED:
        text = pattern.sub(new, text)
    text = _without_thousands(SPACES.sub(" ", text).strip())
    return MIXED.sub(r"\1\\frac{\2}{\3}", text)


def spelling(text: str) -> str:
    r"""What is left of `plain` text when \text and idle spaces do not count."""
    text = re.sub(r"\\text\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\(frac)\s*(\d)\s*(\d)(?!\d)", r"\\\1{\2}{\3}", text)
    return SPACE_BESIDE_SYMBOL.sub("", text.strip())


def is_deep(text: str) -> bool:
    """True if brackets are nested deeper than in any answer."""
    depth = 0
    for bracket in re.finditer(r"[({\[]|[)}\]]", text):
        depth += 1 if bracket[0] in "({[" else -1
        if depth > DEEPEST:
            return True
    return False


def rational(text: str) -> Fraction | None:
    """The number that `plain` text is, if it is one, written as a whole, decimal or fraction."""
    match = RATIONAL.fullmatch(text.strip())
    if match is None:
        return None
    sign = -1 if match["sign"] == "-" else 1
    if match["decimal"] is not None:
        return sign * _decimal(match["decimal"])
    above = _decimal(match["above"] or match["a"] or match["above2"])
    below = _decimal(match["below"] or match["b"] or match["below2"])
    whole = match["whole"] or match["whole2"]
    if below == 0 or (whole and match["minus"]):
        return None
    if match["minus"]:
        above = -above
    return sign * (int(whole or 0) + above / below)


def is_finite_decimal(number: Fraction) -> bool:
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def _decimal(digits: str) -> Fraction:
    return Fraction(digits.removesuffix("."))


def _lowered(match: re.Match[str]) -> str:
    return "^{" + match[0].translate(RAISED) + "}"


def _without_thousands(text: str) -> str:
    """Separators of thousands taken out, outside of brackets only."""
    parts = re.split(r"(\([^()]*\)|\[[^\[\]]*\]|\\\{.*?\\\})", text)
    return "".join(part if i % 2 else _joined(part) for i, part in enumerate(parts))


def _joined(text: str) -> str:
    text = CONTINENTAL.sub(lambda m: re.sub(r"[. ]", "", m[0]).replace(",", "."), text)
    for pattern in GROUPS:
        text = pattern.sub(lambda m: re.sub(r"[^\d]", "", m[0]), text)
    return re.sub(r"(?<=\d)\{,\}(?=\d)", ".", text)
