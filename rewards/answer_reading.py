r"""The form of an answer, by its brackets and separators. Nothing is evaluated.

    read("x = 1, 2") == Listing((Relation(("x", "1"), ("=",)), Quantity("2")), ",")

Every text has a form: what is no mathematics is `Words`.
"""

import re
from collections.abc import Iterator

from rewards.answer_forms import (
    Based,
    Choice,
    Clock,
    Form,
    Group,
    Listing,
    Matrix,
    Quantity,
    Relation,
    Union,
    Words,
)
from rewards.answer_units import split_unit
from rewards.spelled_numbers import spelled_number

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s*\b(?:and|or)\b\s*|.", re.DOTALL)
OPENING = frozenset({"(", "[", "{", r"\{", r"\langle", r"\begin", r"\lfloor", r"\lceil"})
CLOSING = frozenset({")", "]", "}", r"\}", r"\rangle", r"\end", r"\rfloor", r"\rceil"})
OPERATORS = frozenset(
    {"=", "<", ">", r"\leq", r"\geq", r"\neq", r"\in", r"\approx", r"\equiv", r"\subset"}
)
EMPTY = (r"\emptyset", "no solution", "no solutions", "empty set", "no real solutions")
JOINTS = re.compile(
    r"\\text\s*\{(?P<before>[^{}]*?)[\s,;]*\b(?P<joint>and|or)\b[\s,;]*(?P<after>[^{}]*)\}",
    re.IGNORECASE,
)
LEAD_IN = re.compile(
    r"(?:\\text\{)?(?P<lead>(?:[A-Za-z]{2,}|[aAI](?=\s+[A-Za-z]{2})|[A-Za-z](?=\s+(?:is|equals)\b))"
    r"(?:['\s-]+[A-Za-z]+)*?)\s*\}?(?:\s*[:=]|\s+(?:is|are|equals)\b\s*:?)\s*\}?\s*(?P<rest>\S.*)",
    re.DOTALL,
)
CODAS = ("altogether", "in total", "total", "in all", "respectively")  # "72 clips, altogether"
HEDGES = frozenset(
    re.findall(
        r"\w+",
        "not isn no never less more greater fewer least most between about approximately roughly"
        " than under over below above near either neither if when unless",
    )
)
CLOCK = re.compile(r"(\d{1,2}):([0-5]\d)(?::00)?\s*(?:([ap])\.?\s?m\.?)?", re.IGNORECASE)
CHOICE = re.compile(
    r"(?:(?i:option|choice|answer|graph|figure)\b\s*:?\s*)?"
    r"(?:\((?P<inside>[A-J])\)|(?P<marked>[A-J])\s*[).:]|(?P<bare>[A-J]))"
    r"(?:\s*(?P<content>(?<=[).:\s])[^\s+*/^=<>_,!].*))?",
    re.DOTALL,
)
OTHER_CHOICE = re.compile(r"^(?:and|or)\b|\([A-J]\)|\b[A-J]\b\s*(?:[).:]|$)")
BASES = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "sixteen": 16,
}  # fmt: skip
BASE = r"(?P<base{0}>\d{{1,2}}|" + "|".join(BASES) + ")"
BASED = re.compile(
    r"\(?(?P<digits>[0-9A-Z]+)\)?\s*(?:_\s*\{?\s*(?:\\text\{\s*)?\(?\s*(?:base\s*\}?\s*)?"
    + BASE.format(1)
    + r"\s*\)?\s*\}?\s*\}?|\(?\s*(?:\\text\{)?\s*\(?\s*(?:in\s+)?base[\s}~-]*" + BASE.format(2)
    + r"\s*\}?\s*\)?\s*\}?)"
)  # fmt: skip
MATRIX = re.compile(
    r"(?P<factor>[^&=<>,;]*?)\s*(?:\\cdot|\\times|\*)?\s*"
    r"\\begin\s*\{(?P<name>[pbB]?(?:small)?matrix|array)\}\s*(?:\{[clr|\s]*\})?(?P<body>.*)"
    r"\\end\s*\{(?P=name)\}(?P<turned>\s*\^\s*\{?\s*(?:T|\\top|\\intercal)\s*\}?)?",
    re.DOTALL,
)
PLUS_MINUS = re.compile(r"\\pm(?![A-Za-z])")
MINUS_PLUS = re.compile(r"\\mp(?![A-Za-z])")
ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{\w+\}")
WORDY = re.compile(
    r"\\text\{[^{}]*[A-Za-z]{2,}[^{}]*\}|(?<![A-Za-z\\])[A-Za-z]{4,}|"
    r"(?<![A-Za-z\\])[A-Za-z]{2,}['\s]+[A-Za-z]{2,}|"
    r"(?<![A-Za-z\\])(?=[A-Za-z]*[aeiouAEIOU])[A-Za-z]{3}(?![A-Za-z])"
)


def read(text: str) -> Form:
    """The form of `plain` text."""
    text = _unwrapped(text)
    return _special(text) or _composed(text) or _simple(text)


def words_of(text: str) -> str:
    """Text as words: no case, no articles, no punctuation at the ends."""
    text = re.sub(r"\\(?:text|mathrm|mathbf)\s*\{([^{}]*)\}", r" \1 ", text).lower()
    text = re.sub(r"[\s{}~]+|(?<=[a-z])-(?=[a-z])", " ", text).strip(" .!?,;:\"'`*")
    text = re.sub(r"^(?:the|an?)\s+(?=\w)", "", text)
    if text in EMPTY:
        return EMPTY[0]
    return text


def split(text: str, *separators: str) -> tuple[list[str], list[str]]:
    """(the parts, the separators between them) at the outermost level of brackets."""
    parts, found, depth, start = list[str](), list[str](), 0, 0
    for token in TOKEN.finditer(text):
        bare = token[0].strip()
        if bare in OPENING:
            depth += 1
        elif bare in CLOSING:
            depth -= 1
        elif depth == 0 and bare in separators:
            parts.append(text[start : token.start()].strip())
            found.append(bare)
            start = token.end()
    parts.append(text[start:].strip())
    return parts, found


def is_wordy(text: str) -> bool:
    """True if there are words in it, not only letters that multiply."""
    return bool(WORDY.search(ENVIRONMENT.sub("", text)))


def _unwrapped(text: str) -> str:
    r"""Without {...} or \text{...} around all of it, and without "The area is"."""
    text = JOINTS.sub(_joint, text).strip().strip("*").strip()
    while True:
        before = text
        text = text.strip().removeprefix("=").rstrip(".;,").strip()
        for opening in ("{", r"\text{", r"\mathrm{"):
            inner = text[len(opening) : -1]
            if text.startswith(opening) and text.endswith("}") and _balances(inner):
                text = inner.strip()
        match = LEAD_IN.fullmatch(text)
        if (
            match
            and not HEDGES & set(re.findall(r"\w+", match["lead"].lower()))
            and _is_label(match["lead"])
        ):
            text = match["rest"]
        if text == before:
            return text


def _joint(match: re.Match[str]) -> str:
    r"""15\text{ hens and }9 is 15\text{ hens} and 9."""
    sides = [
        rf"\text{{{match[side]}}}" if match[side].strip() else "" for side in ("before", "after")
    ]
    return f"{sides[0]} {match['joint'].lower()} {sides[1]}"


def _is_label(lead: str) -> bool:
    return not CHOICE.fullmatch(lead) or len(lead) > 1


def _balances(text: str) -> bool:
    depth = 0
    for token in re.finditer(r"\\.|[{}]", text):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth < 0:
            return False
    return depth == 0


def _special(text: str) -> Form | None:
    """Forms that a pattern recognises."""
    if words_of(text) == EMPTY[0]:
        return Words(EMPTY[0])
    bare = re.sub(r"\\text\s*\{([^{}]*)\}", r"\1", text).strip()
    if (spelled := spelled_number(bare)) is not None:
        return Quantity(str(spelled))
    if match := CLOCK.fullmatch(bare):
        return Clock(int(match[1]), int(match[2]), (match[3] or "").lower())
    if match := CHOICE.fullmatch(re.sub(r"\\(?:mathbf|mathrm)\s*\{([A-J])\}", r"\1", bare)):
        letter = match["inside"] or match["marked"] or match["bare"]
        content = (match["content"] or "").strip()
        if not (match["bare"] and content) and not OTHER_CHOICE.search(content):
            return Choice(letter, content, sure=match["bare"] is None)
    if match := BASED.fullmatch(text):
        base = match["base1"] or match["base2"]
        return Based(match["digits"].lstrip("0") or "0", BASES.get(base) or int(base))
    if match := MATRIX.fullmatch(text):
        return _matrix(match)
    return None


def _matrix(match: re.Match[str]) -> Form:
    """The cells, each times what stands before the matrix; a mark of transposition turns it."""
    rows = [split(row, "&")[0] for row in re.split(r"\\\\", match["body"]) if row.strip()]
    factor = match["factor"].strip()
    if factor in ("+", "-"):
        factor += "1"
    if factor:
        rows = [[f"({factor})*({cell})" for cell in row] for row in rows]
    if match["turned"] and len({len(row) for row in rows}) == 1:
        rows = [list(column) for column in zip(*rows, strict=True)]
    return Matrix(tuple(tuple(map(read, row)) for row in rows))


def _composed(text: str) -> Form | None:
    """Forms that separators make: lists, unions, relations, and what stands in brackets."""
    if is_wordy(text) and re.search(r"\b(?:if|where|for)\b", text):
        return None
    parts, joints = split(text, ",", ";", "and", "or")
    if len(parts) > 1 and parts[-1].lower() in CODAS:
        parts = parts[:-1]
    parts = [x for part in parts for x in _both_signs(part)]
    if len(parts) == 1 and joints:
        return read(parts[0])
    if len(parts) > 1:
        kinds = set(joints) & {"and", "or"} or {","}
        named = [part for part in parts if part]
        return Listing(tuple(map(read, named)), "or" if "or" in kinds else kinds.pop())
    parts, signs = split(text, r"\cup", r"\setminus", r"\backslash")
    if signs:
        out = [s != r"\cup" for s in ["\\cup", *signs]]
        return Union(
            tuple(read(p) for p, away in zip(parts, out, strict=True) if not away),
            tuple(read(p) for p, away in zip(parts, out, strict=True) if away),
        )
    sides, operators = split(text, *OPERATORS)
    if operators and all(sides):
        return Relation(tuple(sides), tuple(operators))
    return _bracketed(text)


def _bracketed(text: str) -> Form | None:
    for opening in (r"\{", r"\langle", "(", "["):
        if not text.startswith(opening):
            continue
        closing = next((c for c in (r"\}", r"\rangle", ")", "]") if text.endswith(c)), None)
        if closing is None or not _encloses(text):
            return None
        inside = text[len(opening) : -len(closing)].strip()
        if opening == r"\{" and not inside:
            return Words(EMPTY[0])
        if opening == r"\{" and words_of(inside) == EMPTY[0]:
            return Words(text)  # the set that holds the empty set
        if opening == r"\{":
            builder, bars = split(inside, "|", ":")
            if bars and builder[1]:
                return read(builder[1])
            form = read(inside)
            return Listing(form.parts if isinstance(form, Listing) else (form,), r"\{")
        parts, commas = split(inside, ",", ";")
        if commas and all(parts):
            return Group(opening, tuple(map(read, parts)), closing)
        if MATRIX.fullmatch(inside):
            return read(inside)
    return None


def _encloses(text: str) -> bool:
    """True if the first bracket closes with the last."""
    depth = 0
    tokens = [t[0].strip() for t in TOKEN.finditer(text)]
    for token in tokens[:-1]:
        depth += (token in OPENING) - (token in CLOSING)
        if depth == 0:
            return False
    return True


def _both_signs(part: str) -> Iterator[str]:
    r"""1 \pm \sqrt{2} stands for two answers."""
    if not (PLUS_MINUS.search(part) or MINUS_PLUS.search(part)) or "," in part or r"\{" in part:
        yield part
        return
    for plus, minus in (("+", "-"), ("-", "+")):
        yield MINUS_PLUS.sub(minus, PLUS_MINUS.sub(plus, part))


def _simple(text: str) -> Form:
    ratio = split(text, ":")[0]
    if len(ratio) == 2 and all(ratio) and not is_wordy(text):
        return Quantity(f"({ratio[0]})/({ratio[1]})")
    number, unit = split_unit(text)
    if is_wordy(number) or not number:
        return Words(words_of(text))
    return Quantity(number.strip(), unit)
