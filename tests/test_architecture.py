"""The conventions that a machine can check, so that nobody has to argue about them."""

import ast
import itertools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from estimators import ESTIMATORS

ROOT = Path(__file__).parents[1]
PACKAGES = ("estimators", "rewards", "rl")


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository, also those that are about to be added to it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted({ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()})


PYTHON = tracked("*.py")
MODULES = [path for path in PYTHON if path.relative_to(ROOT).parts[0] in PACKAGES]


def where(path: Path, node: ast.AST | None = None) -> str:
    line = f":{node.lineno}" if isinstance(node, ast.stmt | ast.expr | ast.ExceptHandler) else ""
    return f"{path.relative_to(ROOT)}{line}"


def nodes(paths: list[Path]) -> Iterator[tuple[Path, ast.AST]]:
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path, node


def dotted(node: ast.AST) -> str:
    """`torch.manual_seed` for the expression of that name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


def test_there_is_something_to_check() -> None:
    assert len(MODULES) > 40
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(PACKAGES)


def test_no_file_is_longer_than_300_lines() -> None:
    lengths = {where(path): len(path.read_text().splitlines()) for path in PYTHON}
    assert {name: length for name, length in lengths.items() if length > 300} == {}


def test_functions_are_short() -> None:
    """At most 3 % are longer than 60 lines, and those say why in their docstring."""
    functions = [
        (path, node)
        for path, node in nodes(PYTHON)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    long = [(p, f) for p, f in functions if (f.end_lineno or 0) - f.lineno + 1 > 60]
    assert len(long) <= 0.03 * len(functions), [where(p, f) for p, f in long]
    assert [where(p, f) for p, f in long if not ast.get_docstring(f)] == []


def test_every_module_says_what_it_is() -> None:
    silent = [
        where(path)
        for path in [*MODULES, *tracked("tests/test_*.py", "scripts/*.py")]
        if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_no_print_in_the_packages() -> None:
    calls = [(p, n) for p, n in nodes(MODULES) if isinstance(n, ast.Call)]
    assert [where(p, n) for p, n in calls if dotted(n.func) == "print"] == []


def test_no_exception_is_caught_blindly_or_swallowed() -> None:
    handlers = [(p, n) for p, n in nodes(PYTHON) if isinstance(n, ast.ExceptHandler)]
    bare = [where(p, n) for p, n in handlers if n.type is None]
    swallowed = [
        where(p, n)
        for p, n in handlers
        if n.type is not None
        and dotted(n.type) in ("Exception", "BaseException")
        and all(isinstance(statement, ast.Pass | ast.Continue) for statement in n.body)
    ]
    assert bare + swallowed == []


GLOBAL_RANDOMNESS = re.compile(
    r"^((torch|torch\.random|torch\.cuda|np\.random|numpy\.random|random)\.(manual_seed|"
    r"manual_seed_all|seed)|(transformers\.|accelerate\.utils\.)?set_seed|"
    r"(np|numpy)\.random\.(rand|randn|randint|choice|shuffle|permutation)|"
    r"random\.(random|randint|choice|shuffle|sample|uniform))$"
)


def test_randomness_is_passed_in() -> None:
    """`default_generator` is the global one too; only weights that are drawn may touch it."""
    calls = [(p, dotted(n.func), n) for p, n in nodes(MODULES) if isinstance(n, ast.Call)]
    assert [where(p, n) for p, name, n in calls if GLOBAL_RANDOMNESS.match(name)] == []
    touching = {where(p) for p, name, _ in calls if "default_generator" in name}
    assert touching <= {"rl/models/private_rng.py"}


@pytest.mark.parametrize(
    ("name", "is_global"),
    [
        ("torch.manual_seed", True),
        ("np.random.seed", True),
        ("random.random", True),
        ("set_seed", True),
        ("generator.manual_seed", False),
        ("rng.random", False),
        ("torch.rand", False),
    ],
)
def test_the_rule_for_randomness_can_fail(name: str, is_global: bool) -> None:
    assert bool(GLOBAL_RANDOMNESS.match(name)) is is_global


def test_no_module_hides_another() -> None:
    """`python rl/train.py` puts rl/ first on sys.path: `import datasets` would find ours."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    requirements = itertools.chain(project["dependencies"], *extras)
    ours = {re.split(r"[^\w-]", requirement)[0].lower() for requirement in requirements}
    owners = packages_distributions()
    names = {name for name, owned_by in owners.items() if ours & {o.lower() for o in owned_by}}
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
    taken = names | sys.stdlib_module_names | vague
    assert {"yaml", "datasets", "math_verify", "logging"} <= taken
    stems = {path.stem: where(path) for path in MODULES if path.stem != "__init__"}
    assert {place for stem, place in stems.items() if stem in taken} == set()


def test_nobody_imports_scripts_or_tests() -> None:
    assert [
        where(path, node)
        for path, node in nodes(MODULES)
        if any(name.split(".")[0] in ("scripts", "tests") for name in imported(node))
    ] == []


def test_no_path_of_one_machine_and_nothing_left_undone() -> None:
    machine = re.compile(r"(?<![\w.}\])~-])/(work|root|tmp|home/\w+|Users/\w+)\b(?!\.)")
    undone = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|mark\.(sk" + r"ip|xf" + r"ail)")
    found = [
        f"{where(path)}:{number}: {line.strip()}"
        for path in tracked()
        if path.suffix in (".py", ".md", ".yaml", ".toml", ".sh", ".json", ".txt", "")
        and path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if machine.search(line) or undone.search(line)
    ]
    assert found == []


def test_the_readme_lists_every_estimator() -> None:
    """The table whose first column is headed `estimator` has one row for each, and no other."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    first = [line.split("|")[1].strip(" `*") if line.startswith("|") else None for line in lines]
    heads = [i for i, cell in enumerate(first) if cell and cell.lower() == "estimator"]
    assert heads, "README.md has no table whose first column is headed `estimator`"
    names = [*itertools.takewhile(lambda cell: cell is not None, first[heads[0] + 2 :])]
    assert names == list(ESTIMATORS)
