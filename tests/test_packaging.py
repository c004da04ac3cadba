"""The wheel: three import names, every module and every recipe, and nothing else."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("estimators", "rewards", "rl")


def tracked(*patterns: str) -> set[str]:
    """Files of the repository, also those that are about to be added to it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    assert path.name == "unmask_rl-0.1.0-py3-none-any.whl"
    return zipfile.ZipFile(path)


def test_the_top_levels_are_exactly_ours(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {*PACKAGES, "unmask_rl-0.1.0.dist-info"}


def test_every_module_and_every_recipe_is_in_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    recipes = {name.replace("recipes/", "rl/_recipes/", 1) for name in tracked("recipes")}
    modules = {name for name in tracked(*PACKAGES) if name.endswith((".py", "py.typed"))}
    assert len(recipes) >= 4
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == modules | recipes


def test_recipes_are_data(wheel: zipfile.ZipFile) -> None:
    assert not [name for name in tracked("recipes") if name.endswith(".py")]


def test_metadata(wheel: zipfile.ZipFile) -> None:
    metadata = wheel.read("unmask_rl-0.1.0.dist-info/METADATA").decode()
    for line in ("Name: unmask-rl", "License-Expression: Apache-2.0", "Requires-Python: >=3.11"):
        assert line in metadata.splitlines()
    assert "unmask_rl-0.1.0.dist-info/licenses/LICENSE" in wheel.namelist()


def test_every_dependency_has_a_tested_version() -> None:
    """bitsandbytes is for GPUs and is not part of the tested environment."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {requirement.split(";")[0].split(">=")[0].strip().lower() for requirement in wanted}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].lower() for line in lines if not line.startswith("#")}
    assert names - pinned == set()
    assert all("+" not in line and "@" not in line for line in lines)
