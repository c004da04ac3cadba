"""The text that a logic grader reads: the declared answer, else the completion as a whole.

A model may be asked for the answer and nothing else ("s0120...=" -> 16 digits), so with style
"auto" a completion that declares nothing is read whole. That pays nothing for what is merely
mentioned: the graders that use this accept a text only if *all* of it is an answer.
"""

from rewards.extraction import Mode, check_mode, check_style, extract, first_turn


def declared_or_whole(completion: str, style: str = "auto", mode: Mode = "strict") -> str:
    """What to grade; "" where an answer was begun but is not usable (cut off, garbled, echoed)."""
    check_style(style)
    check_mode(mode)
    answer = extract(completion, style=style, mode=mode)
    if answer.text is not None:
        return answer.text
    return first_turn(completion) if style == "auto" and answer.status == "no_answer" else ""
