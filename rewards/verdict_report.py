"""Verdicts as a page for people and as JSON for programs."""

from collections.abc import Mapping, Sequence
from typing import Any

from rewards.verdicts import Status, Verdict, counts

HEAD = ("id", "kind", "reward", "expected", "got", "seconds", "what")
WIDEST = 44  # characters of a cell
PLURAL: Mapping[Status, str] = {
    "false_positive": "false positives",
    "false_negative": "false negatives",
    "hang": "hangs",
    "error": "errors",
}


def as_json(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Counts over all cases, over those that nobody contests, and every case."""
    settled = [v for v in verdicts if not v.case.contested]
    return {
        "n": len(verdicts),
        **counts(verdicts),
        "uncontested": {"n": len(settled), **counts(settled)},
        "cases": [
            {
                "id": v.case.id,
                "score": v.score,
                "seconds": round(v.seconds, 6),
                "status": v.status,
                "kind": v.case.kind,
                "reward": v.reward,
                "expected": v.case.expected,
                "contested": v.case.contested,
                "detail": v.detail,
            }
            for v in verdicts
        ],
    }


def as_text(verdicts: Sequence[Verdict], seconds: float, workers: int) -> str:
    """The cases that are wrong, then one line for each thing there is to know.

    seconds: wall clock of the whole run.
    """
    settled = [v for v in verdicts if not v.case.contested]
    contested = [v for v in verdicts if v.case.contested]
    parts = [
        _section("Wrong", settled),
        _section("Contested, and not as the case expects", contested),
        _tally("", settled),
        _tally("contested: ", contested) if contested else "",
        _cost(verdicts, seconds, workers),
    ]
    return "".join(parts)


def _section(title: str, verdicts: Sequence[Verdict]) -> str:
    wrong = [v for v in verdicts if v.status != "right"]
    if not wrong:
        return ""
    rows = [HEAD, *(_row(v) for v in wrong)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD) - 1)]
    lines = [
        "  " + "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    ]
    return "\n".join([title, *lines]) + "\n\n"


def _row(v: Verdict) -> tuple[str, ...]:
    what = v.status.replace("_", " ") + (f": {v.detail}" if v.detail else "")
    expected = " or ".join(map(_shown, v.case.right))
    got = "nothing" if v.status in ("hang", "error") and v.score is None else _shown(v.score)
    reward = v.reward.rpartition("/")[2]
    cells = (v.case.id, v.case.kind, reward, expected, got, f"{v.seconds:.2f}")
    return (*(_short(cell) for cell in cells), what.replace("\n", " ")[:200])


def _shown(score: float | None) -> str:
    return "None" if score is None else f"{score:.6g}"


def _short(cell: str) -> str:
    cell = " ".join(cell.split())
    return cell if len(cell) <= WIDEST else cell[: WIDEST - 3] + "..."


def _tally(prefix: str, verdicts: Sequence[Verdict]) -> str:
    found = counts(verdicts)
    wrong = ", ".join(f"{found[status]} {name}" for status, name in PLURAL.items())
    return f"{prefix}{found['right']} of {len(verdicts)} right; {wrong}\n"


def _cost(verdicts: Sequence[Verdict], seconds: float, workers: int) -> str:
    slowest = max(verdicts, key=lambda v: v.seconds)
    busy = sum(v.seconds for v in verdicts)
    rate = f"{len(verdicts) * workers / busy:.0f} gradings/s with " if busy else ""  # all failed
    return (
        f"{len(verdicts)} gradings: {rate}{workers} worker{'s' * (workers > 1)}, {seconds:.1f} s "
        f"in all; slowest {slowest.seconds:.2f} s ({slowest.case.id})\n"
    )
