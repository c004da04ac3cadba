r"""A number as people and models write it, read exactly.

1,234.50   $1,000   \$5   -\frac{3}{4}   7/8   1 1/4   2\frac{1}{2}   385\,000   12\text{ cm}   20.

What a numeral may look like is in `rewards.numerals`, which thousands separators among it.
"""

import re
import unicodedata
from fractions import Fraction

from rewards.digits import ascii_digits
from rewards.numerals import NUMBER, numeral_value

LONGEST = 500  # characters; no answer is longer, and int() refuses 4300 digits
CURRENCY = "$" + "".join(
    c for c in map(chr, range(0xA2, 0x20C1)) if unicodedata.category(c) == "Sc"
)

CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("\N{MINUS SIGN}\N{EN DASH}\N{HYPHEN}\N{NON-BREAKING HYPHEN}", "-"),
        **dict.fromkeys("\N{FRACTION SLASH}\N{DIVISION SLASH}", "/"),
        **dict.fromkeys(
            "\N{RIGHT SINGLE QUOTATION MARK}\N{PRIME}\N{MODIFIER LETTER APOSTROPHE}", "'"
        ),
        **dict.fromkeys("\xa0\u2007\u2008\u2009\u200a\u202f\u3000", " "),
        **dict.fromkeys("\xad\u200b\u200c\u200d\u2060\ufeff", ""),
        "\N{IDEOGRAPHIC FULL STOP}": ".",
        **{chr(0xFEE0 + code): chr(code) for code in range(0x21, 0x7F)},  # fullwidth forms
        **{
            half: " " + unicodedata.normalize("NFKC", half).replace("\N{FRACTION SLASH}", "/")
            for half in "\xbc\xbd\xbe\u2150\u2151\u2152\u2153\u2154\u2155\u2156\u2157\u2158\u2159"
            "\u215a\u215b\u215c\u215d\u215e"
        },
    }
)
RAISED = str.maketrans(
    "\u2070\xb9\xb2\xb3\u2074\u2075\u2076\u2077\u2078\u2079\u207b", "0123456789-"
)
EXPONENT = re.compile("[\u2070\xb9\xb2\xb3\u2074-\u2079\u207b]+")
SPACING = re.compile(r"\\!\s*|(?<=\d)\{,\}(?=\d)")  # nothing, and a comma in braces
THIN = re.compile(r"\\[,;: ]\s?|~")
WRAPPERS = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
BRACED = re.compile(r"\{([^{}]*)\}")
UNIT = re.compile(WRAPPERS.pattern + r"\Z")
DEGREES = re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree\b|\N{DEGREE SIGN}")
# words of a unit that change the value of the number before them
SCALED = re.compile(
    r"\b(?:hundred|thousand|[mbtr]+illion|dozen)s?\b|\b(?:half|quarter|and|or|to|point|pi|minus|plus"
    r"|times|over|squared|cubed)\b",
    re.IGNORECASE,
)
CURRENCY_FIRST = re.compile(rf"^([+-]?)\s*[{CURRENCY}]\s*")


def as_number(text: str) -> Fraction | None:
    r"""The number that the text is, or None. A unit must be in \text{} or \mbox{}."""
    return exact(without_units(plain(text))) if len(text) <= LONGEST else None


def plain(text: str) -> str:
    """Typography removed: other digits and minus signs, thin spaces, math delimiters, the currency
    sign at either end."""
    text = EXPONENT.sub(lambda power: f"^{{{power[0].translate(RAISED)}}}", text)
    text = ascii_digits(DEGREES.sub(" ", text).translate(CHARACTERS))
    text = THIN.sub(" ", SPACING.sub(lambda space: "," if space[0] == "{,}" else "", text))
    text = text.replace(r"\$", "$")
    text = re.sub(r"\\[()\[\]]", "", text).strip().strip("*").strip()
    braced = BRACED.fullmatch(text)
    return (braced[1] if braced else text).removesuffix(".").strip(CURRENCY + " \n\t")


def without_units(text: str) -> str:
    """`12\\text{ cm}` -> `12`, `\\text{17}` -> `17`."""
    whole = WRAPPERS.fullmatch(text)
    if whole:
        return whole[1].strip()
    bare = text
    while unit := UNIT.search(bare):
        if re.search(r"\d", unit[1]) or SCALED.search(unit[1]):
            break
        bare = bare[: unit.start()].rstrip()
    return bare


def exact(text: str) -> Fraction | None:
    """The value of a numeral with nothing around it but a currency sign."""
    text = CURRENCY_FIRST.sub(r"\1", text.strip())  # the sign may stand before it: -$5
    match = NUMBER.fullmatch(text)
    return None if match is None else numeral_value(match)
