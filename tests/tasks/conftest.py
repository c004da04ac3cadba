import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def jsonl(tmp_path: Path) -> Callable[..., str]:
    """Write rows to a .jsonl file and return its path."""

    def write(*rows: dict[str, Any] | str, name: str = "rows.jsonl") -> str:
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return str(tmp_path / name)

    return write
