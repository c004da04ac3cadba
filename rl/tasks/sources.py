"""Rows from a file, a folder or the hub, with errors that name the place.

`path` is one of
    a folder        with train.jsonl and test.jsonl (or .csv),
    a file          .jsonl or .csv (for some tasks .parquet), both the train and the test file,
    a hub data set  "owner/name".
`test` is the test file, whole. `train` and `validation` divide the train file nine to one by a hash
of the problem. (That a file is not trained and tested on at once is `assert_disjoint`'s to refuse.)
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl.tasks.base import Split, split_of

SUFFIXES = (".jsonl", ".csv")
WITH_PARQUET = (*SUFFIXES, ".parquet")
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True, kw_only=True)
class Record:
    """One line of a source. `id` is its place in the split, `where` its place for a reader."""

    id: str
    where: str
    fields: Mapping[str, Any]

    def text(self, field: str) -> str:
        value = self.fields.get(field)
        if not isinstance(value, str) or not value.strip():
            has = ", ".join(map(repr, self.fields)) or "no fields"
            problem = f"is {value!r:.80}" if field in self.fields else f"is missing; it has {has}"
            raise ValueError(f"{self.where}: field {field!r} {problem}. A text is expected there")
        return value


def check_path(task: str, path: str, expected: str, suffixes: tuple[str, ...] = SUFFIXES) -> None:
    """Raise ValueError unless the path exists or looks like the name of a hub data set."""
    place = Path(path).expanduser()
    if not path.strip():
        raise ValueError(f"task {task!r}: the path is empty. {expected}")
    if place.is_dir():
        if not any(file.suffix in suffixes for file in place.iterdir()):
            raise ValueError(
                f"task {task!r}: no .jsonl or .csv file in {path!r}; it has {_names(place)}. "
                f"{expected}"
            )
    elif place.exists():
        if place.suffix not in suffixes:
            raise ValueError(f"task {task!r}: {path!r} is neither .jsonl nor .csv. {expected}")
    elif place.suffix in (*SUFFIXES, ".json", ".parquet") or not HUB_ID.fullmatch(path):
        raise ValueError(f"task {task!r}: there is nothing at {path!r}. {expected}")


def read_split(
    task: str, path: str, split: Split, *, key: str | None, config: str | None = None
) -> list[Record]:
    """The records of a split; `key` is the field that tells one problem from another.

    Without one, the train file is not divided, and all of it is trained on.
    """
    held = "test" if split == "test" else "train"
    place = Path(path).expanduser()
    if place.exists():
        records = list(_read_file(_file_of(task, place, held), held))
    else:
        records = list(_read_hub(path, held, config))
    if split == "test" or key is None:
        return records
    kept = split == "validation"
    return [r for r in records if (split_of(task, r.text(key)) == "validation") == kept]


def _file_of(task: str, place: Path, held: str) -> Path:
    if place.is_file():
        return place
    for suffix in WITH_PARQUET:
        if (place / f"{held}{suffix}").exists():
            return place / f"{held}{suffix}"
    raise ValueError(
        f"task {task!r}: {str(place)!r} has no {held}.jsonl or {held}.csv; it has {_names(place)}"
    )


def _names(folder: Path) -> str:
    """The first of what is in a folder; a packed file is to be unpacked."""
    names = sorted(p.name for p in folder.iterdir())
    packed = any(name.endswith((".gz", ".zip", ".zst")) for name in names)
    listed = ", ".join(names[:10] + ["..."] * (len(names) > 10)) or "nothing"
    return listed + ", to be unpacked first" * packed


def _read_file(file: Path, held: str) -> Iterator[Record]:
    if file.suffix == ".parquet":
        yield from _read_parquet(file, held)
        return
    with file.open(encoding="utf-8", newline="") as lines:
        if file.suffix == ".csv":
            reader = csv.DictReader(lines)
            for i, fields in enumerate(reader):
                yield Record(
                    id=f"{held}-{i}", where=f"{file}, line {reader.line_num}", fields=fields
                )
            return
        for i, line in enumerate(lines):
            where = f"{file}, line {i + 1}"
            try:
                fields = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(
                    f"{where}: not JSON ({error.msg}): {line.strip()!r:.80}"
                ) from error
            if not isinstance(fields, dict):
                raise ValueError(f"{where}: one JSON object a line is expected; got {line!r:.80}")
            yield Record(id=f"{held}-{i}", where=where, fields=fields)


def _read_parquet(file: Path, held: str) -> Iterator[Record]:
    from pyarrow import ArrowException, parquet  # slow to import, and most tasks do without it

    try:
        rows = parquet.read_table(file).to_pylist()
    except (ArrowException, OSError) as error:
        raise ValueError(f"{file} cannot be read as parquet: {error}") from error
    for i, fields in enumerate(rows):
        yield Record(id=f"{held}-{i}", where=f"{file}, row {i}", fields=fields)


def _read_hub(path: str, held: str, config: str | None) -> Iterator[Record]:
    from datasets import load_dataset  # slow to import, and most tasks do without it

    try:
        data = load_dataset(path, config, split=held)
    except (FileNotFoundError, ConnectionError, ValueError) as error:
        raise ValueError(
            f"could not load split {held!r} of the hub data set {path!r}: {error}. A local folder "
            f"with train.jsonl and test.jsonl, or one .jsonl file, does as well"
        ) from error
    for i, fields in enumerate(data):
        yield Record(id=f"{held}-{i}", where=f"{path}, {held} row {i}", fields=dict(fields))
