"""Plant faults, one at a time, and see that the tests catch each of them.

python scripts/mutation_check.py [--only NAME ...] [--list]

The faults are in tests/mutations.yaml: a file, a line of it, what the line becomes, and the tests
that must fail. They are planted in a copy of the repository; nothing here is changed. Exit code 1:
a fault survived, or its tests fail without it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).parents[1]
FAULTS = ROOT / "tests" / "mutations.yaml"
out = Console()


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """`old`, which stands exactly once in `file`, becomes `new`; then `tests` must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted(self, text: str) -> str:
        """The file's text with the fault in it."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.name}: {self.old!r} stands {count} times in {self.file}")
        return text.replace(self.old, self.new)


def mutations(path: Path = FAULTS) -> list[Mutation]:
    """The faults of a file, whose names are the keys."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        Mutation(name=name, **{**entry, "tests": tuple(entry["tests"])})
        for name, entry in entries.items()
    ]


def copy_of_repository(folder: Path) -> Path:
    """What git tracks or would track, and nothing else."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def fails(copy: Path, tests: tuple[str, ...]) -> bool:
    """Whether a test fails. Anything but a failed or a passed test is an error of the list."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    # no stale bytecode: two faults in one second may leave files of equal size and time
    data = {"UNMASK_DATA": str(ROOT.parent / "shared" / "data")}  # beside us, not beside the copy
    env = {**data, **os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest {' '.join(tests)} did not run:\n{done.stdout}{done.stderr}")
    return done.returncode == 1


def survivors(faults: list[Mutation]) -> list[Mutation]:
    """The faults that no test sees."""
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_of_repository(Path(folder))
        every = tuple(dict.fromkeys(test for fault in faults for test in fault.tests))
        if fails(copy, every):
            raise RuntimeError(f"tests fail without any fault: {' '.join(every)}")
        left: list[Mutation] = []
        for fault in track(faults, description="planting", console=out):
            path = copy / fault.file
            clean = path.read_text(encoding="utf-8")
            path.write_text(fault.planted(clean), encoding="utf-8")
            caught = fails(copy, fault.tests)
            path.write_text(clean, encoding="utf-8")
            out.print(f"{'caught  ' if caught else 'SURVIVED'}  {fault.name}")
            left += [] if caught else [fault]
        return left


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these faults")
    parser.add_argument("--list", action="store_true", help="print the faults and stop")
    options = parser.parse_args()
    faults = mutations()
    if options.only:
        unknown = set(options.only) - {fault.name for fault in faults}
        if unknown:
            parser.error(f"unknown: {', '.join(sorted(unknown))}; see --list")
        faults = [fault for fault in faults if fault.name in options.only]
    if options.list:
        table = Table("fault", "file", "becomes")
        for fault in faults:
            table.add_row(fault.name, fault.file, fault.new.strip())
        out.print(table)
        return 0
    left = survivors(faults)
    out.print(f"{len(faults) - len(left)} of {len(faults)} faults are caught")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
