r"""d1's reward for MATH as published: the string equality of Hendrycks et al. (arXiv:2103.03874).

Written anew from what it does, for reproducing numbers only; ours without the faults is `math`.
"""

import re

# spellings that are made one, in this order
SPELLINGS = (
    ("\n", ""), (r"\!", ""), ("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), (r"\left", ""),
    (r"\right", ""), (r"^{\circ}", ""), (r"^\circ", ""), (r"\$", ""),
)  # fmt: skip
UNITS = "\\text{ "


def d1_math(completion: str, answer: str) -> float:
    r"""2.0 if the last \boxed (without one: the whole text) is the gold after some respelling.

    Faults: 0.25 is wrong for 1/4, 1,000 for 1000, \text{(A)} for A, 1+x for x+1; the words
    "\boxed " after the real box hide it; what stands in <answer> without a box is not read.
    """
    if r"\boxed" in completion or r"\fbox" in completion:
        found = _last_box(completion)
    else:
        found = completion
    return 2.0 * (found is not None and _equal(found, answer))


def _last_box(text: str) -> str | None:
    r"""What stands in the last box; None if its braces do not balance."""
    if "\\boxed " in text:  # without braces, up to the end of the formula
        return text.rpartition("\\boxed ")[2].partition("$")[0]
    start = text.rfind(r"\boxed")
    start = text.rfind(r"\fbox") if start < 0 else start
    depth, opened = 0, -1
    for at in range(start, len(text)):
        if text[at] == "{":
            opened = at if depth == 0 else opened
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0:
                return text[opened + 1 : at]
    return None


def _equal(a: str, b: str) -> bool:
    try:
        return _respelled(a) == _respelled(b)
    except (ValueError, IndexError):  # it knew no better for what it could not respell
        return a == b


def _respelled(text: str) -> str:
    for old, new in SPELLINGS:
        text = text.replace(old, new)
    if UNITS in text:
        text, _unit = text.split(UNITS)  # two units: ValueError
    text = text.replace(r"\%", "").replace(" .", " 0.").replace("{.", "{0.")
    if not text:
        return text
    text = "0" + text if text[0] == "." else text
    sides = text.split("=")
    if len(sides) == 2 and len(sides[0]) <= 2:
        text = sides[1]
    text = re.sub(r"\\sqrt(?!\{)(.)", r"\\sqrt{\1}", text, flags=re.DOTALL).replace(" ", "")
    text = _braced_fractions(text)
    if text == "0.5":
        return r"\frac{1}{2}"
    return _slashed(text)


def _braced_fractions(text: str) -> str:
    r"""\frac12, \frac1{72} -> \frac{1}{2}, \frac{1}{72}; all or none."""
    first, *parts = text.split(r"\frac")
    found = [first]
    for part in parts:
        if part.startswith("{"):
            found.append(part)
        elif len(part) < 2:
            return text
        elif part[1] == "{":
            found.append(f"{{{part[0]}}}{part[1:]}")
        else:
            found.append(f"{{{part[0]}}}{{{part[1]}}}{part[2:]}")
    return r"\frac".join(found)


def _slashed(text: str) -> str:
    """3/4 -> a fraction, of whole numbers written plainly."""
    if len(text.split("/")) != 2:
        return text
    above, below = map(int, text.split("/"))  # x/2: ValueError
    return rf"\frac{{{above}}}{{{below}}}" if text == f"{above}/{below}" else text
