"""The text that a logic grader reads: the declared answer, else the completion as a whole.

A model may be asked for the answer and nothing else ("s0120...=" -> 16 digits), so a completion
that declares nothing is read whole. That pays nothing for what is merely mentioned: the graders
accept a text only if *all* of it is an answer.
"""

from rewards.extract import final_answer, first_turn


def declared_or_whole(completion: str, style: str = "auto", mode: str = "strict") -> str:
    """What to grade; "" where an answer was begun but is not usable (cut off, garbled, echoed)."""
    answer = final_answer(completion)
    return first_turn(completion) if answer is None else answer
