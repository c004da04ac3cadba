"""Numbers spelled out in English, 2 to 99: "two", "ninety-nine". "One" is mostly a pronoun."""

import re

TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SMALL = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
SPELLED = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(TENS)})(?:[-\s](?P<ones>one|{'|'.join(SMALL[:8])}))?"
    rf"|(?P<small>{'|'.join(SMALL)}))\b",
    re.IGNORECASE,
)


def spelled_numbers(text: str) -> set[int]:
    """Every number that the text spells out."""
    return {_value(match) for match in SPELLED.finditer(text)}


def _value(match: re.Match[str]) -> int:
    if match["small"]:
        return SMALL.index(match["small"].lower()) + 2
    tens = 10 * (TENS.index(match["tens"].lower()) + 2)
    ones = (match["ones"] or "").lower()
    return tens + (SMALL.index(ones) + 2 if ones in SMALL else int(ones == "one"))
