"""Exact equality with the number that a grade-school problem asks for.

The gold is the number after "####", or the whole column if there is no such mark. The completion's
answer may carry a currency sign, a unit, thousands separators or a few words; it must be one
number. 25% is 25, and also 0.25 where the gold is no whole number. No rounding, and no symbolic
mathematics: this grader needs no worker process.
"""

import re

from rewards.extraction import Mode, extract, reads_answer
from rewards.prose_numbers import number_in_prose
from rewards.quantities import as_number

PERCENT = re.compile(r"[%\uff05]|\bpercent\b", re.IGNORECASE)


@reads_answer
def gsm8k_correct(
    completion: str, answer: str, *, style: str = "auto", mode: Mode = "strict"
) -> float:
    """1.0 if the completion's final answer is the number that the gold `answer` gives, else 0.0.

    style, mode: how the answer is read, see `rewards.extraction`.
    """
    gold = as_number(str(answer).rpartition("####")[2])
    if gold is None:
        raise ValueError(
            f"column 'answer' must hold a number, or a solution that ends in '#### <number>'; "
            f"got {answer!r:.200}"
        )
    found = extract(completion, style=style, mode=mode).text
    number = None if found is None else number_in_prose(found)
    if found is None or number is None:
        return 0.0
    as_share = gold.denominator > 1 and PERCENT.search(found) is not None
    return float(number == gold or (as_share and number / 100 == gold))
