"""Values of a recipe against annotations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from rl.binding import Mismatch, bind, coerce, parameters


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Inner:
    size: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Outer:
    inner: Inner | Mapping[str, Any] | None = None
    pairs: list[Inner] = field(default_factory=list)


ACCEPTED = [
    (1, float, 1.0), (1.0, int, 1), (True, bool, True), ("a", str, "a"), (None, int | None, None),
    (3, int | None, 3), ("x", Any, "x"), ({"a": 1}, Any, {"a": 1}), ("p", Path, Path("p")),
    ([1, 2], tuple[float, ...], (1.0, 2.0)), ([1, "a"], tuple[int, str], (1, "a")),
    (["a"], Sequence[str], ["a"]), (["a"], str | Sequence[str], ["a"]),
    ("a", str | Sequence[str], "a"),
    ("red", Colour, "red"), ("blue", Colour | str, "blue"), ("k1", Literal["k1", "k2"], "k1"),
    (2, Annotated[int, "even"], 2), ({"a": 1}, dict[str, Any], {"a": 1}), ({}, dict | str, {}),
    (1, int | float, 1), (1.5, int | float, 1.5), ("1", int | str, "1"), ([1], list, [1]),
    (0, Literal[0, 1], 0), (2.0, int | float, 2.0), (2, float | int, 2),
]  # fmt: skip


@pytest.mark.parametrize(("value", "annotation", "result"), ACCEPTED)
def test_accepted(value: Any, annotation: Any, result: Any) -> None:
    coerced = coerce(value, annotation)
    assert (coerced, type(coerced)) == (result, type(result))


REFUSED = [
    (1.5, int, "expected an integer, got 1.5 (a number)"),
    (True, int, "expected an integer, got true"),
    (False, float, "expected a number, got false"),
    (1, bool, "expected true or false, got 1 (an integer)"),
    (1, str, "expected a string, got 1 (an integer)"),
    (None, int, "expected an integer, got null"),
    ("3", int, "expected an integer, got '3' (a string)"),
    ("x", int | None, "expected an integer, got 'x' (a string)"),
    ("x", int | float, "expected a number, got 'x' (a string)"),
    ([], int | str, "expected an integer or a string, got []"),
    ("reed", Colour | str, "expected one of 'red', 'blue', got 'reed' (a string); "
     "did you mean 'red'?"),
    (1, Literal["a"], "expected one of 'a', got 1 (an integer)"),
    (True, Literal[0, 1], "expected one of 0, 1, got true"),
    ("a", tuple[int, ...], "expected a list, got 'a' (a string)"),
    ([1], tuple[int, int], "expected a list of 2, got [1]"),
    ([1, "a", "b"], tuple[int, ...], ".1 expected an integer, got 'a' (a string); "
     ".2 expected an integer, got 'b' (a string)"),
    ([1], dict[str, int], "expected a mapping, got [1]"),
    (3, Inner, "expected a mapping of size, names, got 3 (an integer)"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "annotation", "sentence"), REFUSED)
def test_refused(value: Any, annotation: Any, sentence: str) -> None:
    with pytest.raises(Mismatch) as caught:
        coerce(value, annotation)
    assert str(caught.value) == sentence


def problems(section: dict[str, Any]) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    assert bind(Outer, section, "s", lambda where, text: told.append((where, text))) is None
    return told


def test_nested_dataclasses_are_built_and_their_places_told() -> None:
    built = bind(Outer, {"inner": {"size": 1, "names": ["a"]}, "pairs": [{"size": 2}]}, "s", print)
    assert built == Outer(inner=Inner(size=1, names=("a",)), pairs=[Inner(size=2)])
    assert problems(
        {"inner": {"sise": 1, "names": [3]}, "pairs": [{"size": 2}, {"size": "x"}]}
    ) == [
        ("s.inner.sise", "unknown key; did you mean 'size'? Known: names, size."),
        ("s.inner.names.0", "expected a string, got 3 (an integer)"),
        ("s.inner.size", "missing; an integer is required"),
        ("s.pairs.1.size", "expected an integer, got 'x' (a string)"),
    ]


def test_parameters_of_functions_and_defaults() -> None:
    def f(a: int, *rest: int, b: float = 2.0, **more: Any) -> None: ...

    assert {k: (p.annotation, p.required) for k, p in parameters(f).items()} == {
        "a": (int, True),
        "b": (float, False),
    }
    assert parameters(Outer)["pairs"].default == []
    assert parameters(Inner)["size"].required
