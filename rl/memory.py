"""How much memory this process has used at most."""

import resource
import sys


def peak_memory_mb() -> float:
    """Resident set of this process at its largest, in MB (Linux and macOS)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
