r"""The one number of an answer with words around it.

    18 dollars a day   $1,000   60\%   5 km/h   2:00 pm   3 + 4 = 7 eggs   42 apples (42)
    5 million   minus 5   -(5)   (-5)   seventy-two clips   72 (seventy-two)

Refused, since a reader would have to choose: several different numbers (also spelled out), a range,
a variable or an operation beside the number, and words that deny or bound it ("not 5", "more than
5"). Of an equation the right side counts. A full hour is a number of hours; 2:30 is none.
"""

import re
import unicodedata
from fractions import Fraction
from itertools import pairwise

from rewards.numerals import NUMBER, numeral_value
from rewards.quantities import CURRENCY, LONGEST, WRAPPERS, exact, plain, without_units
from rewards.spelled_numbers import SPELLED, spelled_number, spelled_numbers

EQUALS = re.compile(r"(?<![<>!:/\\])=(?![<>])|\N{ALMOST EQUAL TO}|\\approx(?![A-Za-z])")
UNITS = r"[cmkd]?m|ft|foot|feet|in|inch|inches|yd|yards?|mi|miles?|met(?:er|re)s?|units?"
REWRITTEN = tuple(
    (re.compile(pattern, re.IGNORECASE), plainer)
    for pattern, plainer in (
        (WRAPPERS.pattern, r" \1 "),
        (r"\\(?:left|right|q?quad)(?![A-Za-z])", " "),
        (r"\\([%#&_])", r"\1"),
        (r"(?<![\^_])\{\s*([^{}\d\\]*[A-Za-z][^{}\d\\]*)\}", r" \1 "),  # 7,000{ feet}
        (rf"(?<![A-Za-z])({UNITS})\.?\s?\^\s?\{{?\s?[23]\s?\}}?", r"\1"),  # cm^2
        (r"(?<![\d:])([01]?\d|2[0-4]):00(?::00)?(?![:\d])", r"\1 "),  # 2:00 pm
        (r"\b([ap])\.\s?m\b\.?", r"\1m"),  # 2 p.m.
        (r"\bUSD\s?(?=[\d.])", " "),
        (rf"(?<![\w)])-\s?\(\s?[{CURRENCY}]?\s?([\d.,]+)\s?\)", r"-\1"),
        (rf"-\s?[{CURRENCY}]\s?(?=[\d.])", "-"),
        (rf"(?<![\d)])(?<![\d)] )\b(?:minus|negative)\s+[{CURRENCY}]?\s?(?=\d)", "-"),
        (rf"(?:\b(?:US|A|C|HK|NZ))?[{CURRENCY}]|\bRs\.?(?=\s?\d)", " "),
    )
)
CENTS = re.compile(  # 12,50 is a decimal beside a currency
    rf"(?<=[{CURRENCY}])(\s?\d+),(\d\d)(?![\d,])|(?<![\d.,])(\d+),(\d\d)(?=\s?\\?[{CURRENCY}])"
)
SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
SCALE = re.compile(rf"\s?({'|'.join(SCALES)})s?\b", re.IGNORECASE)
GLUED_UNIT = re.compile(
    r"(?:[ckm]?m|usd|kg|mg|g|lbs?|oz|ft|in|yds?|mi|mph|kph|ml|l|hrs?|h|mins?|secs?|[ap]\.?m|st|nd|rd|th)"
    r"(?![A-Za-z\d^])|/\s?[A-Za-z]{2,}",
    re.IGNORECASE,
)
GLUED_BEFORE = re.compile(r"\S\Z")
APART = re.compile(r"\(|\n|[.!:;]\s")  # between a number and its repetition
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
LETTERS_BEFORE = frozenset("aAI")  # one-letter words that are no variables
LETTERS_AFTER = LETTERS_BEFORE | frozenset("mghlLsCF")
CHANGING = re.compile(
    rf"\b(?:half|halves|quarters?|or|point|pi|plus|minus|squared|cubed|not|wrong|incorrect"
    rf"|thirds|(?:four|fif|six|seven|eigh|nin|ten|hundred|thousand)ths|below\s+zero"
    rf"|and\s*\Z|{'|'.join(SCALES)})\b|n't\b",
    re.IGNORECASE,
)
SQUARED_UNIT = re.compile(rf"\b(?:{UNITS})\s+(?:squared|cubed)\b", re.IGNORECASE)
BOUNDING = re.compile(
    r"\b(?:(?:more|less|fewer|greater|larger|smaller|higher|lower|other)\sthan|over|under|below"
    r"|above|almost|nearly|double|twice|triple|times|except|instead\sof|without)\s*\Z",
    re.IGNORECASE,
)
FORBIDDEN = frozenset("/^\\{}|@\N{REPLACEMENT CHARACTER}")


def number_in_prose(text: str) -> Fraction | None:
    """The number in an answer with words around it ("18 dollars a day"), if there is just one."""
    if len(text) > LONGEST:
        return None
    side = _right_side(plain(CENTS.sub(_with_point, text)))
    if side is None:
        return None
    side = side if re.search(r"\d", side) else _in_digits(side)
    number = exact(without_units(side))
    return number if number is not None else _among_words(side)


def _with_point(cents: re.Match[str]) -> str:
    return f"{cents[1] or cents[3]}.{cents[2] or cents[4]}"


def _in_digits(text: str) -> str:
    """The only number that the text spells out, as digits; a lone "one" is a pronoun."""
    runs = [run for run in SPELLED.finditer(text) if run[0].lower() != "one"]
    whole = spelled_number(text.strip(" .*"))
    if whole is not None:
        return str(whole)
    value = spelled_number(runs[0][0]) if len(runs) == 1 else None
    return text if value is None else f"{text[: runs[0].start()]}{value}{text[runs[0].end() :]}"


def _right_side(text: str) -> str | None:
    """3 + 4 = 7 eggs -> 7 eggs; None for two named numbers (x = 5, y = 6)."""
    sides = EQUALS.split(text)
    if len(sides) > 2 and all(_ends_in_name(side) for side in sides[-3:-1]):
        return None
    return sides[-1].strip()


def _ends_in_name(side: str) -> bool:
    name = re.split(r"[,;\n]|\band\b", side)[-1]
    return bool(re.search(r"[A-Za-z]", name)) and not re.search(r"\d", name)


def _among_words(text: str) -> Fraction | None:
    for pattern, plainer in REWRITTEN:
        text = pattern.sub(plainer, text)
    found = list(NUMBER.finditer(text))
    values = {numeral_value(match) for match in found}
    value = values.pop() if len(values) == 1 else None
    if value is None:
        return None
    between = [text[a.end() : b.start()] for a, b in pairwise(found)]
    before, after = text[: found[0].start()], text[found[-1].end() :]
    if not all(APART.search(words) for words in between):
        return None
    scale = SCALE.match(after)
    if scale and len(found) == 1:
        value *= 10 ** SCALES[scale[1].lower()]
        after = after[scale.end() :]
    after = GLUED_UNIT.sub("", after, count=1) if GLUED_UNIT.match(after) else after
    words = " ".join([before, *between, after])
    fits = _stands_apart(before, after) and _is_prose(words) and _says_only(value, words)
    return value if fits and not BOUNDING.search(before) else None


def _stands_apart(before: str, after: str) -> bool:
    """Whether the number is a word of its own, with no variable beside it."""
    glued = GLUED_BEFORE.search(before.rstrip("*:([\"'`#_")) or re.match(r"[\w!^]|-\W*\Z", after)
    names = {w for w in WORD.findall(before) if len(w) == 1} - LETTERS_BEFORE
    names |= {w for w in WORD.findall(after) if len(w) == 1} - LETTERS_AFTER
    return not glued and not names


def _is_prose(words: str) -> bool:
    """No operators and no mathematics; a slash between words is "per"."""
    words = re.sub(r"(?<=[A-Za-z])\s*/\s*(?=[A-Za-z])", " ", words)
    return not any(
        letter.isdigit()
        or letter in FORBIDDEN
        or unicodedata.category(letter) in ("Sm", "Cs")
        or (unicodedata.category(letter) == "Cc" and not letter.isspace())
        for letter in words
    )


def _says_only(value: Fraction, words: str) -> bool:
    """Whether no word changes the value, or spells another number."""
    words = SPELLED.sub(lambda run: " " if spelled_number(run[0]) == value else run[0], words)
    others = spelled_numbers(words)
    return not CHANGING.search(SQUARED_UNIT.sub(" ", words)) and not others
