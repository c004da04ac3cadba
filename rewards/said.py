r"""A line that declares an answer in words.

    #### 7      **Final Answer:** 7      Hence the answer is B.      ### Final Answer \n 7
    ### Answer \n 7, if 7 is the last line

"If the answer is 7" and "the answer isn't 7" declare nothing; a #### that does not stand on the
last line is a heading.
"""

import re

MARKER = re.compile(
    r"""(?: \banswers?\b (?:[ ](?:choice|option))?+ [*_\x20]{0,4}
        (?: (?:[ ]?(?:to|for|of)[ ][^.:\n=]{1,80}?)? [ ]?\b(?:is|are)\b(?!n't|[ ]not\b)
            [*_\x20]{0,4}:? | [:=] )
      | \bfinal[ ]answer\b [*_]{0,3}[ \t]*+(?=\n)
      | \#[ ]{0,3}[*_]{0,3}answer\b [*_]{0,3}[ \t]*+(?=\n\s*+[^\n]++\s*+\Z) )
    [*_ \t]*+ (?:\n[*_ \t]*+){0,2} (?=\S)""",
    re.IGNORECASE | re.VERBOSE,
)
SUPPOSED = re.compile(
    r"\b(?:if|whether|suppose|assum\w+|unless|that|guess\w*)\W+(?:(?:the|my|your|an|our)\W+)?"
    r"(?:(?:final|correct|right|possible)\W+)?\Z",
    re.IGNORECASE,
)
LAST_LINE = 2000  # characters at the end, of which the last line is read
CLOSING_TAG = re.compile(r"</[A-Za-z]{1,20}>")
EMPHASIS_BEFORE_STOP = re.compile(r"[*_]{1,3}\.\Z")
MAY_ANSWER = re.compile(r"[\d$\\]")


def said_answer(text: str) -> str | None:
    """What the last line that declares an answer says, or None."""
    at = -1
    for match in reversed([*MARKER.finditer(text)]):
        if not SUPPOSED.search(text[max(match.start() - 40, 0) : match.start()]):
            at = match.end()
            break
    final = _after_hashes(text)
    if final is not None or at < 0:
        return final
    return _sentence(text[at:].partition("\n")[0])


def _after_hashes(text: str) -> str | None:
    """What the last line says, after ####."""
    lines = CLOSING_TAG.sub("", text[-LAST_LINE:]).rstrip().rpartition("\n")[2]
    _, mark, answer = lines.rpartition("####")
    return _sentence(answer) if mark and answer.strip() else None


def _sentence(line: str) -> str:
    """Without a tag after it, emphasis, and a next sentence that cannot hold an answer ("I hope it
    is correct")."""
    line = CLOSING_TAG.split(line, maxsplit=1)[0].strip()
    first, stop, rest = line.partition(". ")
    said = first + stop.strip() if stop and not MAY_ANSWER.search(rest) else line
    return EMPHASIS_BEFORE_STOP.sub(".", said).strip("*_").strip()
