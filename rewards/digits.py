"""Decimal digits of any script as ASCII: fullwidth, Arabic-Indic, mathematical bold, ...

A superscript two is no decimal digit and stays what it is: 3 squared must not become 32.
"""

import unicodedata


def ascii_digits(text: str) -> str:
    """`text` with every Unicode decimal digit (category Nd) as one of 0-9; same length."""
    if text.isascii():
        return text
    return "".join(
        str(unicodedata.decimal(letter)) if letter.isdecimal() else letter for letter in text
    )
