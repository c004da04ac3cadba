"""Numbers spelled out in English: "two", "ninety-nine", "one hundred and five thousand".

"One" by itself is mostly a pronoun ("each one"), so it is a number only with others around it, or
as the whole text.
"""

import re

TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
VALUES = dict(zip(SMALL, range(20), strict=True)) | {w: 10 * i for i, w in enumerate(TENS, 2)}
FIRST, NEXT = "|".join(VALUES), "|".join((*VALUES, *SCALES))
SPELLED = re.compile(
    rf"\b(?:{FIRST})(?:(?:\s*-\s*|\s+|(?<=hundred)\s+and\s+|(?<=thousand)\s+and\s+)"
    rf"(?:{NEXT}))*\b",
    re.IGNORECASE,
)


def spelled_numbers(text: str) -> set[int | None]:
    """Every number that the text spells out, without a lone "one"; None for words such as "two
    three", that are no single number."""
    return {
        spelled_number(match[0])
        for match in SPELLED.finditer(text)
        if match[0].lower() not in ("zero", "one")
    }


def spelled_number(words: str) -> int | None:
    """The number that all of the text spells out, or None."""
    if not SPELLED.fullmatch(words):
        return None
    total, group, last = 0, 0, 0
    room, scale = 100, 10**12  # the next word must be smaller than this; the next scale
    for word in re.findall(r"(?!\band\b)\b[a-z]+", words.lower()):
        if word == "hundred" and 0 < last < 10:
            group, last, room = group * 100, 0, 100
        elif word in SCALES and word != "hundred" and 0 < group < 1000 and SCALES[word] < scale:
            total, group, last = total + group * SCALES[word], 0, 0
            room, scale = 100, SCALES[word]
        elif word in VALUES and VALUES[word] < room:
            last = VALUES[word]
            group, room = group + last, 10 if last >= 20 else 0
        else:
            return None
    return total + group
