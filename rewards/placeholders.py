r"""Copies of the instruction: what a prompt shows in the place of the answer.

\boxed{...}   \boxed{}   <answer>answer here</answer>   #### <number>   \boxed{your answer}
"""

import re

LONGEST = 80  # characters; no placeholder is longer
WRAPPING = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)(?![A-Za-z])|[\s{}\[\]<>()$*_`'\"\\]+")
EMPTY = re.compile(r"[\s{}$*_`~]*")  # \{\} is not empty: it is the empty set
DOTS = re.compile(r"(?:[.?\N{HORIZONTAL ELLIPSIS}\N{WHITE SQUARE}]|l?dots|cdots|square|blank)+")
WORD_ENDS = re.compile(r"[\s,]+")
WORDS = re.compile(
    r"(?:(?:insert|put|write|enter|place|give|type|the|your|my|a|an|final|correct|numeric|numerical"
    r"|number|integer|single|short|exact|actual|only|boxed|16|81) )*"
    r"(?:answer|solution|result|number|integer|value|expression|equation|digits|reasoning)s?"
    r"(?: of the solved grid)?(?: (?:goes here|here|in here|alone|only))?"
    r"(?: (?:as an? (?:number|integer)|without units|row by row|in the form that is asked for))?"
    r"|one word",
    re.IGNORECASE,
)


def is_placeholder(text: str) -> bool:
    """Whether the text is empty or only stands for an answer; no letter, number or formula does."""
    if EMPTY.fullmatch(text):
        return True
    if len(text) > LONGEST:
        return False
    words = WRAPPING.sub(" ", text).strip(" :,;!")
    if not words:
        return False
    return bool(
        DOTS.fullmatch(words.replace(" ", ""))
        or WORDS.fullmatch(WORD_ENDS.sub(" ", words).strip(" ."))
    )
