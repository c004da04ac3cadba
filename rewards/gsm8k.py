"""Exact equality with the number that a grade-school problem asks for.

The gold is the number after "####", or the whole column if there is no such mark. The completion's
answer may carry a currency sign, a unit, thousands commas or a few words; it must be one number.
No rounding, and no symbolic mathematics: this grader needs no worker process.
"""

from rewards.extract import final_answer
from rewards.quantities import as_number, number_in_prose


def gsm8k_correct(completion: str, answer: str) -> float:
    """1.0 if the completion's final answer is the number that the gold `answer` gives, else 0.0."""
    gold = as_number(answer.rpartition("####")[2])
    if gold is None:
        raise ValueError(
            f"column 'answer' must hold a number, or a solution that ends in '#### <number>'; "
            f"got {answer!r:.200}"
        )
    found = final_answer(completion)
    return float(found is not None and number_in_prose(found) == gold)
