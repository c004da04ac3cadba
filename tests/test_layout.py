"""The start-up check against other owners of our import names."""

import importlib
import sys
from pathlib import Path

import pytest

from rl import _layout


def install(site: Path, distribution: str, package: str) -> None:
    """A distribution as pip leaves it behind."""
    info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"{package}/__init__.py,,\n{info.name}/METADATA,,\n")
    (site / package).mkdir(exist_ok=True)
    (site / package / "__init__.py").touch()


def test_this_checkout_passes() -> None:
    _layout.check_layout()


@pytest.mark.parametrize("name", _layout.NAMES)
def test_a_rival_is_named(tmp_path: Path, monkeypatch, name: str) -> None:
    install(tmp_path, "keras-rl2", name)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError) as caught:
        _layout.check_layout()
    assert str(caught.value) == (
        f"`{name}` is also installed by keras-rl2, and the two overwrite each other's files. "
        "Use a fresh environment, or: pip uninstall keras-rl2 unmask-rl; pip install unmask-rl"
    )


def test_our_own_distribution_is_no_rival(tmp_path: Path, monkeypatch) -> None:
    install(tmp_path, "unmask-rl", "rewards")
    install(tmp_path, "keras-other", "keras_other")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    _layout.check_layout()


@pytest.mark.parametrize("is_package", [True, False])
def test_a_folder_of_the_same_name_is_named(tmp_path: Path, monkeypatch, is_package: bool) -> None:
    (tmp_path / "rewards").mkdir()
    if is_package:
        (tmp_path / "rewards" / "__init__.py").touch()
    path = [str(tmp_path)] if is_package else [str(tmp_path), *_without_rewards(tmp_path)]
    monkeypatch.setattr(sys, "path", path + (sys.path if is_package else []))
    for module in [name for name in sys.modules if name.split(".")[0] == "rewards"]:
        monkeypatch.delitem(sys.modules, module)
    importlib.invalidate_caches()
    with pytest.raises(ImportError) as caught:
        _layout.check_layout()
    home = tmp_path if is_package else "nowhere"
    assert f"rewards from {home}; estimators from " in str(caught.value)
    assert "hides ours: rename it, or start from another folder" in str(caught.value)


def _without_rewards(tmp_path: Path) -> list[str]:
    """A path with the other two packages, so that a bare folder `rewards` is all there is."""
    bare = tmp_path / "bare"
    bare.mkdir()
    root = Path(_layout.__file__).parents[1]
    for name in ("rl", "estimators"):
        (bare / name).symlink_to(root / name)
    return [str(bare)]
