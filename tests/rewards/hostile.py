"""Hostile statements, each tried in the sandbox; they print ESCAPED where they can tell."""

from rewards.sandbox import Limits, Result, run

LIMITS = Limits(wall_s=20, cpu_s=15)


def attempt(body: str, **limits: float) -> Result:
    """Run statements of which each is tried, and none may succeed."""
    lines = "\n".join(
        f"try:\n    {line}\n    print('ESCAPED', {line!r})\nexcept BaseException as e:\n    "
        f"print('refused', type(e).__name__, e)"
        for line in body.strip().splitlines()
    )
    prelude = "import ctypes, os, resource, signal, socket, subprocess, sys\n"
    wanted = {"wall_s": 20, "cpu_s": 15} | limits
    return run(prelude + lines, limits=Limits(**wanted))


def refused(body: str) -> None:
    result = attempt(body)
    assert "ESCAPED" not in result.stdout, result.stdout
    assert result.stdout.count("refused") == len(body.strip().splitlines()), result
