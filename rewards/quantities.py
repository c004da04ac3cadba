r"""A number as people and models write it, read exactly.

1,234.50   $1,000   \$5   -\frac{3}{4}   7/8   1 1/4   2\frac{1}{2}   385\,000   12\text{ cm}   20.
"""

import re
from fractions import Fraction

MINUS = str.maketrans({"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-"})
SPACING = re.compile(
    r"\\[!,;:]\s*|\{,\}"
)  # thin spaces, also between groups of digits, and 1{,}000
WRAPPERS = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
DECIMAL = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+"
NUMBER = re.compile(
    rf"""(?:(?P<sign>[+-])\s*)?
    (?: (?:(?P<whole>\d+)\s*)?\\[dt]?frac\s*\{{\s*(?P<above>{DECIMAL})\s*\}}\s*
            \{{\s*(?P<below>{DECIMAL})\s*\}}
      | (?:(?P<whole2>\d+)\s+)?(?P<above2>\d+)\s*/\s*(?P<below2>\d+)
      | (?P<decimal>{DECIMAL}) )""",
    re.VERBOSE | re.ASCII,
)
# words that change the value of the number before them
SCALES = re.compile(
    r"\b(?:hundred|thousand|[mbtr]+illion)s?\b|\b(?:half|quarter|and|or|to|point|pi|minus|plus|times"
    r"|over|squared|cubed)\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[^\W\d_]+")
LONGEST = 500  # characters; no answer is longer, and int() refuses 4300 digits
PROSE = re.compile(r"(?:[\w\s,.!?:;'\"%()*-]|(?<=[a-z])/(?=[a-z]))*")
DEGREES = re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree\b|\N{DEGREE SIGN}")


def as_number(text: str) -> Fraction | None:
    r"""The number that the text is, or None. A unit must be in \text{} or \mbox{}."""
    return _exact(_without_units(_plain(text))) if len(text) <= LONGEST else None


def number_in_prose(text: str) -> Fraction | None:
    """The number in an answer with words around it ("18 dollars a day"), if there is just one."""
    if len(text) > LONGEST:
        return None
    text = _plain(text).rpartition("=")[2].strip()  # 3 + 4 = 7 eggs
    number = _exact(_without_units(text))
    if number is not None:
        return number
    text = WRAPPERS.sub(r" \1 ", text).replace("$", " ").replace(r"\%", "%")
    found = list(NUMBER.finditer(text))
    if len(found) != 1:
        return None
    before, after = text[: found[0].start()], text[found[0].end() :]
    glued = bool(re.search(r"\S$", before.rstrip("*:(\"'"))) or bool(re.match(r"[\w!^]", after))
    prose = PROSE.fullmatch(before) and PROSE.fullmatch(after)
    variables = any(len(word) == 1 and word not in "aAI" for word in WORD.findall(before))
    if glued or variables or not prose or SCALES.search(f"{before} {after}"):
        return None
    return _exact(found[0][0])


def _plain(text: str) -> str:
    """Typography removed: other minus signs, thin spaces, math delimiters, the currency sign."""
    text = SPACING.sub("", DEGREES.sub("", text).translate(MINUS))
    text = text.replace(r"\$", "$").replace(r"\ ", " ")
    text = re.sub(r"\\[()\[\]]", "", text).strip().strip("*").strip()
    return text.removesuffix(".").strip("$ \n\t")


def _without_units(text: str) -> str:
    """`12\\text{ cm}` -> `12`, `\\text{17}` -> `17`."""
    whole = WRAPPERS.fullmatch(text)
    if whole:
        return whole[1].strip()
    bare = text
    while (unit := WRAPPERS.search(bare)) and unit.end() == len(bare):
        if re.search(r"\d", unit[1]) or SCALES.search(unit[1]):
            break
        bare = bare[: unit.start()].rstrip()
    return bare


def _exact(text: str) -> Fraction | None:
    # the sign may stand before the currency: -$5
    match = NUMBER.fullmatch(re.sub(r"^([+-]?)\s*[$\N{POUND SIGN}\N{EURO SIGN}]\s*", r"\1", text))
    if match is None:
        return None
    sign = -1 if match["sign"] == "-" else 1
    if match["decimal"] is not None:
        return sign * _decimal(match["decimal"])
    above = _decimal(match["above"] or match["above2"])
    below = _decimal(match["below"] or match["below2"])
    if below == 0:
        return None
    return sign * (int(match["whole"] or match["whole2"] or 0) + above / below)


def _decimal(digits: str) -> Fraction:
    return Fraction(digits.replace(",", "").removesuffix("."))
