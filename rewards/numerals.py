r"""One numeral, read exactly. A separator is read only where it can mean nothing else.

    1,234,567.89    groups of three by commas, decimals after a dot (English, as in every data set)
    12,34,567       the last group of three, the others of two (Indian)
    1.234.567,89    dots that group are told by a comma after them, or by being more than one
    1 234 567,89    groups by single spaces, thin or unbreakable ones too: decimals after , or .
    1'234'567.89    groups by apostrophes (Swiss)
    0,125           a comma after a lone zero marks decimals

So 1,234 is 1234 and 1.234 is not; 3,5 and 1,23 are no numeral (a list, or a decimal comma).
A fraction, a mixed number (1 1/4, 1\frac{1}{4}) and 1.2e3, 1.2 \times 10^3, 10^{3} are numerals.
"""

import re
from fractions import Fraction

GROUPED = (
    r"[1-9]\d{0,2}(?:,\d{3})++(?:\.\d++)?+(?![,.]?\d)"
    r"|[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d++)?+(?![,.]?\d)"
    r"|[1-9]\d{0,2}(?:(?:\.\d{3})++,\d++|(?:\.\d{3}){2,}+)(?![,.]?\d)"
    r"|[1-9]\d{0,2}(?:[ ]\d{3})++(?:[.,]\d++)?+(?![,.]?\d|[ ]?/)"
    r"|[1-9]\d{0,2}(?:'\d{3})++(?:[.,]\d++)?+(?![,.]?\d)"
    r"|0,\d++(?![,.]?\d)"
)
DECIMAL = rf"(?:{GROUPED}|\d++(?:\.\d*+)?+(?!,\d)|\.\d++)"
POWER = r"10\s?\^\s?\{?\s?(?P<NAME>[+-]?\d{1,3})(?!\d)\s?\}?"
TIMES = r"\s?(?:\\times|\\cdot|[x*\N{MULTIPLICATION SIGN}\N{MIDDLE DOT}\N{DOT OPERATOR}])\s?"
NUMBER = re.compile(
    rf"""(?P<sign>[+-]\s*)?
    (?: (?:(?P<whole>\d++)\s*)?(?P<fraction>\\[dtc]?frac\s*
            (?:\{{\s*(?P<above>{DECIMAL})\s*\}}|(?P<above1>\d)) \s*
            (?:\{{\s*(?P<below>{DECIMAL})\s*\}}|(?P<below1>\d)))
      | (?:(?P<whole2>\d++)\s+)?(?P<above2>\d++)\s*/\s*(?P<below2>\d++)
      | {POWER.replace("NAME", "exponent")}
      | (?P<decimal>{DECIMAL})
        (?: [eE](?P<exponent2>[+-]?\d{{1,3}})(?!\d)
          | {TIMES}{POWER.replace("NAME", "exponent3")} )? )""",
    re.VERBOSE | re.ASCII,
)
LARGEST_EXPONENT = 300


def numeral_value(match: re.Match[str]) -> Fraction | None:
    """The value of a match of NUMBER; None for a division by zero, or a power beyond sense."""
    sign = -1 if (match["sign"] or "").startswith("-") else 1
    exponent = int(match["exponent"] or match["exponent2"] or match["exponent3"] or 0)
    if abs(exponent) > LARGEST_EXPONENT:
        return None
    if match["exponent"] or match["decimal"] is not None:
        digits = _decimal(match["decimal"] or "1")
        return sign * digits * Fraction(10) ** exponent
    above = _decimal(match["above"] or match["above1"] or match["above2"])
    below = _decimal(match["below"] or match["below1"] or match["below2"])
    whole = match["whole"] or match["whole2"]
    if below == 0 or (whole and above >= below):  # 1 5/4 may be 1 and 5/4, or a slip for 15/4
        return None
    return sign * (int(whole or 0) + above / below)


def _decimal(numeral: str) -> Fraction:
    """The value of a match of DECIMAL."""
    grouped = " " in numeral or "'" in numeral
    digits = numeral.replace(" ", "").replace("'", "")
    comma, dot = digits.rfind(","), digits.rfind(".")
    if comma > dot and (dot >= 0 or grouped or digits.startswith("0,")):  # a decimal comma
        digits = digits.replace(".", "").replace(",", ".")
    elif digits.count(".") > 1:
        digits = digits.replace(".", "")
    return Fraction(digits.replace(",", "").removesuffix("."))
