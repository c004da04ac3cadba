r"""Equality of mathematical answers: the same text, the same number, or the same by what it says.

    math_correct(r"... \boxed{x < 5}", answer=r"(-\infty, 5)")     # 1.0

What the answer is, `rewards.extraction` says. Two answers are compared in this order:

1. one spelling for both (`rewards.math_text`), and the same text is right;
2. numbers as fractions, exactly: 0.30 is 3/10, 100 is not 101. A number that is no finite decimal
   may be written rounded, which is left to the next step;
3. in a worker process, by form and by value (`rewards.equivalence`, which states the policy).

An answer of more than 500 characters, or nested too deep, is wrong. So is one that takes longer
than the limit, which real ones do not approach; it is counted. Settled pairs are remembered.
"""

import re
import threading
from collections.abc import Sequence

from rewards.base import with_batch
from rewards.boxes import last_boxed
from rewards.extraction import Mode, check_mode, check_style, extract, reads_answer
from rewards.math_text import DOLLAR, LONGEST, is_deep, is_finite_decimal, plain, rational, spelling
from rewards.pool_failures import correctness
from rewards.worker_pool import WorkerPool

POOL = WorkerPool("rewards.equivalence:equal", workers=2, limit=3.0)
REMEMBERED = 20_000  # pairs

AROUND = re.compile(r"^(?:\$+|\\\(|\\\[)\s*|\s*(?:(?<!\\)\$+|(?<!\\)\\\)|(?<!\\)\\\])$")
_verdicts: dict[tuple[str, str], bool] = {}
_lock = threading.Lock()


def grade_math(
    completions: Sequence[str],
    answer: Sequence[str],
    *,
    style: str = "auto",
    mode: Mode = "strict",
    pool: WorkerPool = POOL,
) -> list[float | None]:
    """A score for each completion; equal pairs are compared once. None: there is no gold."""
    check_style(style)
    check_mode(mode)
    golds = [bare(str(gold)) for gold in answer]
    found = [extract(text, style=style, mode=mode).text for text in completions]
    pairs = [(gold, bare(text or "")) for gold, text in zip(golds, found, strict=True)]
    settled = {pair: decide(*pair) for pair in dict.fromkeys(pairs)}
    with _lock:
        settled |= {
            pair: _verdicts[pair] for pair, v in settled.items() if v is None and pair in _verdicts
        }
    asked = [pair for pair, verdict in settled.items() if verdict is None]
    scores: dict[tuple[str, str], float] = {p: float(bool(v)) for p, v in settled.items()}
    for pair, outcome in zip(asked, pool.run(asked) if asked else [], strict=True):
        scores[pair] = correctness(outcome, pool.limit)
        if outcome.status == "ok":  # what was killed may have been late for another's sake
            _remember(pair, bool(outcome.value))
    return [scores[pair] if pair[0] else None for pair in pairs]


@reads_answer
@with_batch(grade_math)
def math_correct(
    completion: str, answer: str, *, style: str = "auto", mode: Mode = "strict"
) -> float | None:
    """1.0 if the completion's final answer equals the gold `answer`, else 0.0.

    style, mode: how the answer is read, see `rewards.extraction`.
    """
    return grade_math([completion], [answer], style=style, mode=mode)[0]


def decide(gold: str, answer: str) -> bool | None:
    """What text and exact numbers settle; None if they do not."""
    if not answer or not gold or len(answer) > LONGEST:
        return False
    gold, answer = plain(gold), plain(answer)
    if spelling(gold) == spelling(answer):
        return True
    numbers = rational(gold), rational(answer)
    if numbers[0] is None or numbers[1] is None:
        return False if is_deep(answer) else None
    if numbers[0] == numbers[1]:
        return True
    return False if is_finite_decimal(numbers[0]) else None


def bare(text: str) -> str:
    r"""An answer without its wrapping: a box, $...$, \(...\), the dot that ends a sentence."""
    text = text.strip()
    if re.search(r"\\(?:boxed|fbox)\s*\{", text):
        text = (last_boxed(text) or text).strip()
    text = text.strip("*").strip().removesuffix(".").strip()
    inner = AROUND.sub("", text).strip().removesuffix(".").strip()
    return text if len(DOLLAR.findall(inner)) % 2 else inner  # $10$ square units


def _remember(pair: tuple[str, str], verdict: bool) -> None:
    with _lock:
        if len(_verdicts) >= REMEMBERED:
            _verdicts.clear()
        _verdicts[pair] = verdict
