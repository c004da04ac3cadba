"""Rewards that do what a reward may do to its caller."""

import os
import threading
import time
from pathlib import Path

LIMIT = 3


def score(completion, answer):
    """Does to the caller what the completion says."""
    if completion == "hang":
        while True:
            pass
    if completion == "slow":
        time.sleep(0.6)
    if completion == "die":
        os._exit(3)
    if completion == "raise":
        raise KeyError("no such thing")
    if completion.startswith("write "):
        Path(completion[6:]).write_text("x")
    if completion == "thread":
        return float(threading.current_thread() is not threading.main_thread())
    if completion == "nan":
        return float("nan")
    if completion == "text":
        return "much"
    if completion == "skip":
        return None
    return float(completion == answer)


def batch(prompts, completions, answer, **columns):
    return [float(c == a) for c, a in zip(completions, answer, strict=True)]


async def slow_but_async(completion, answer):
    return float(completion == answer)


def components(completion, answer):
    return {"right": float(completion == answer), "short": 0.25, "unknown": None}


def settings(completion, answer, *, mode="neither", factor=1):
    return factor * float(mode == answer)


def echoed(completion):
    return float(completion == "<a>x")
