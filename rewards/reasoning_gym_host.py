"""reasoning-gym's own scorers; this file is the program that runs in the sandbox.

In: JSON {"seconds": a limit for each, "items": [[dataset, answer, entry], ...]}. Out: a line
[position, score] for each that was scored. Each answer is scored in a process of its own, forked
after the imports: one that hangs, crashes or eats memory costs itself.
"""

import json
import os
import select
import signal
import sys
from typing import Any


def main() -> None:
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    request = json.load(sys.stdin)
    import reasoning_gym  # pyright: ignore[reportMissingTypeStubs]

    scorers: dict[str, Any] = {}
    for position, (dataset, answer, entry) in enumerate(request["items"]):
        if dataset not in scorers:
            scorers[dataset] = reasoning_gym.get_score_answer_fn(dataset)  # pyright: ignore
        score = in_a_fork(scorers[dataset], answer, entry, request["seconds"])
        if score is not None:
            sys.stdout.write(json.dumps([position, score]) + "\n")
            sys.stdout.flush()


def in_a_fork(score: Any, answer: str, entry: dict[str, Any], seconds: float) -> float | None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            os.write(writing, repr(float(score(answer=answer, entry=entry))).encode())
        finally:
            os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], seconds)
    told = os.read(reading, 64) if ready else b""
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        return float(told)
    except ValueError:
        return None


if __name__ == "__main__":
    main()
