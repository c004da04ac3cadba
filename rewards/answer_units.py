r"""The number and the unit of an answer: 15\mbox{ cm}^2, \$18.90, 35\%, 90^\circ, 240 sheets.

A unit is a set of (name, power): square inches = in^2 = (("inch", 2),). A unit that is not said is
none, and fits all; two that are said must be the same, powers included. A noun that is no unit of
measure counts as one ("5 apples"); words that change the value are never taken for a unit.
"""

import re
from collections import Counter

Unit = tuple[tuple[str, int], ...]
NAMES = {
    "mm": "millimeter millimetre",
    "cm": "centimeter centimetre",
    "m": "meter metre",
    "km": "kilometer kilometre",
    "inch": "in inches",
    "foot": "ft feet",
    "yard": "yd",
    "mile": "mi",
    "g": "gram gm",
    "kg": "kilogram",
    "mg": "milligram",
    "pound": "lb",
    "ounce": "oz",
    "second": "s sec",
    "minute": "min",
    "hour": "h hr",
    "day": "",
    "week": "",
    "month": "",
    "year": "yr",
    "dollar": "usd buck",
    "cent": "",
    "euro": "eur",
    "degree": "deg",
    "radian": "rad",
    "liter": "l litre",
    "ml": "milliliter millilitre",
    "unit": "",
}
SYNONYMS = {alias: name for name, aliases in NAMES.items() for alias in (name, *aliases.split())}
SHORT = {"mph": (("mile", 1), ("hour", -1)), "kph": (("km", 1), ("hour", -1))}
CURRENCIES = {
    "US\\$": "dollar",
    "US$": "dollar",
    "USD": "dollar",
    "\\$": "dollar",
    "$": "dollar",
    "\N{POUND SIGN}": "sterling",
    "\\pounds": "sterling",
    "\N{EURO SIGN}": "euro",
    "\\euro": "euro",
    "\N{YEN SIGN}": "yen",
    "\N{CENT SIGN}": "cent",
    "\N{INDIAN RUPEE SIGN}": "rupee",
}
MONEY = frozenset((*CURRENCIES.values(), "cent"))
SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
# they change the value, or hedge: no unit
CHANGING = frozenset(
    re.findall(
        r"\w+",
        "and or to not dozen half halves third quarter fifth tenth tenths hundredth hundredths"
        " thousandth thousandths millionth millionths percent pair pairs score minus plus times"
        " over point root pi more less fewer least most about approximately remainder than between"
        " below above under negative zero if when with except without mod modulo factorial choose"
        " infinity is are was undefined unknown maybe sin cos tan log ln",
    )
)
IDLE = frozenset(("of", "the", "a", "an", "each", "total", "altogether"))
POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
RAISED = {"squared": 2, "cubed": 3}

POWER = r"(?:\s*\^\s*(?:\{\s*-?\d\s*\}|-?\d))?"
WORD = rf"(?:\\text\{{[^{{}}\d]*\}}|(?<![A-Za-z\\])[A-Za-z]{{2,}}\.?){POWER}"
TAIL = re.compile(rf"\s*(?:/\s*(?=\\text))?{WORD}(?:(?:\s|/|\\cdot|,(?=\s))*{WORD})*\s*$")
# 864 in^2, but 12 in total
PREPOSITION = re.compile(r"\bin\b(?=[\s{}]+(?!per\b)[A-Za-z])", re.IGNORECASE)
PIECE = re.compile(r"(?P<word>[A-Za-z]+)|\^\s*\{?\s*(?P<power>-?\d)|(?P<per>/)")
DEGREES = re.compile(r"\s*(?:\^\s*(?:\{\s*\\circ\s*\}|\\circ)|\\degree)\s*([CF])?\s*$")
ANGLE = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])")  # of what follows it
PERCENT = re.compile(r"\s*(?:%|(?:\\text\{\s*)?(?<![A-Za-z])per\s?cent\s*\}?)\s*$", re.IGNORECASE)


def split_unit(text: str) -> tuple[str, Unit]:
    """(the number, its unit) of `plain` text; the unit is empty if none is said."""
    number, unit = _currency(text.strip())
    if (match := PERCENT.search(number)) and match.start():
        return number[: match.start()], (("%", 1),)
    if (match := DEGREES.search(number)) and match.start() and not ANGLE.search(number):
        scale = match[1] or ""
        return number[: match.start()], (("degree" + scale, 1),)
    match = TAIL.search(number)
    if match is None or match.start() == 0:
        return number, unit
    said = read_unit(match[0])
    bare = number[: match.start()].strip()
    known = bool(said) and said[0][0] in NAMES
    variable = bare[-1:].isalpha() and not bare.endswith(r"\pi")
    marked = match[0].lstrip().startswith("\\")
    glued = (variable and not (marked and known)) or (match[0][0].isalpha() and said and not known)
    if said is None or glued or not re.search(r"\d|\\pi|\\sqrt", bare):
        return number, unit
    scales = [name for name, _ in said if name in SCALES]
    if scales:
        bare = f"({bare}) * 10^{{{sum(SCALES[name] for name in scales)}}}"
        said = tuple(x for x in said if x[0] not in SCALES)
    return bare, tuple(sorted((*unit, *said))) if _is_rate(said) else said or unit


def _is_rate(unit: Unit) -> bool:
    """Per day."""
    return bool(unit) and all(power < 0 for _, power in unit)


def read_unit(text: str) -> Unit | None:
    """None if a word in it changes the value of the number before it."""
    powers: Counter[str] = Counter()
    last, sign, pending = "", 1, 1
    for piece in PIECE.finditer(PREPOSITION.sub(" ", text.replace(r"\text", " "))):
        word = (piece["word"] or "").lower()
        if word in CHANGING or piece["word"] == "k" or (word in RAISED and not last):
            return None
        if piece["per"] or word == "per" or (word == "an" and last):
            sign = -1
        elif piece["power"] and last:
            powers[last] += sign * (int(piece["power"]) - 1)
        elif word in POWERS:
            pending = POWERS[word]
        elif word in RAISED and last:
            powers[last] += sign * (RAISED[word] - 1)
        elif word in SHORT:
            powers.update(dict(SHORT[word]))
            last = word
        elif word and word not in IDLE and word != "cdot":
            last = _singular(word)
            powers[last] += sign * pending
            pending = 1
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def fits(gold: Unit, answer: Unit) -> bool:
    """True if the two units do not contradict each other."""
    if not gold or not answer or gold == answer:
        return True
    if len(gold) == 1 and gold[0][0] in MONEY and _is_rate(tuple({*answer} - {*gold})):
        return gold[0] in answer  # $5 may be $5 per day
    if (("unit" in dict(gold)) or ("unit" in dict(answer))) and len(gold) == len(answer) == 1:
        return gold[0][1] == answer[0][1]
    known = [{x for x in unit if x[0] in NAMES} for unit in (gold, answer)]
    others = [{x for x in unit if x[0] not in NAMES} for unit in (gold, answer)]
    return known[0] == known[1] and (others[0] <= others[1] or others[1] <= others[0])


def _currency(text: str) -> tuple[str, Unit]:
    for sign, name in CURRENCIES.items():
        for lead in ("", "-", "- "):
            if text.startswith(lead + sign):
                return lead + text[len(lead + sign) :].strip(), ((name, 1),)
        if text.endswith(sign) and len(text) > len(sign):
            return text.removesuffix(sign).strip(), ((name, 1),)
    return text, ()


def _singular(word: str) -> str:
    if word in SYNONYMS or word in SCALES:
        return SYNONYMS.get(word, word)
    for ending in ("es", "s"):
        bare = word.removesuffix(ending)
        if (bare != word and bare in SYNONYMS) or bare in SCALES:
            return SYNONYMS.get(bare, bare)
    return word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word
