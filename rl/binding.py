"""A recipe's section -> a constructor call, with every mistake collected.

    estimator: {name: elbo, samples: 2}     is     Elbo(samples=2)

The annotations of the dataclass are the schema: there is no second one to keep in step.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from rl.resolve import did_you_mean

Report = Callable[[str, str], None]  # where in the recipe, what is wrong there


class Mismatch(ValueError):
    """A value that its annotation does not allow; `problems` are (place below the value, text)."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{place} {text}".strip() for place, text in problems))


def bind(target: Callable[..., Any], section: Mapping[str, Any], where: str, report: Report) -> Any:
    """Call `target(**section)`; report what is wrong and return None instead of calling it."""
    fields = parameters(target)
    values = check_values(section, fields, where, report)
    missing = [key for key, field in fields.items() if field.required and key not in section]
    for key in missing:
        report(f"{where}.{key}", f"missing; {_describe(fields[key].annotation)} is required")
    if values is None or missing:
        return None
    try:
        return target(**values)
    except ValueError as error:
        report(where, str(error))
        return None


def check_values(
    section: Mapping[str, Any], fields: Mapping[str, "Parameter"], where: str, report: Report
) -> dict[str, Any] | None:
    """The section's values as the annotations want them; None after a report."""
    values: dict[str, Any] = {}
    for key, value in section.items():
        if key not in fields:
            report(f"{where}.{key}", unknown_key(key, fields))
            continue
        try:
            values[key] = coerce(value, fields[key].annotation)
        except Mismatch as error:
            for place, text in error.problems:
                report(f"{where}.{key}{place}", text)
    return values if len(values) == len(section) else None


def located(where: str, text: str) -> str:
    """`where: text`, unless the text says where itself."""
    return text if text.startswith((f"{where}:", f"{where}.")) else f"{where}: {text}"


def unknown_key(key: object, known: Mapping[str, object]) -> str:
    """The sentence about a key that is not there."""
    near = did_you_mean(str(key), known)
    if len(known) > 30:
        return f"unknown key{near} It is none of the {len(known)} known ones."
    return f"unknown key{near} Known: {', '.join(sorted(known)) or 'none'}."


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameter:
    """One key that a section may have."""

    annotation: Any
    required: bool
    default: Any = None


def parameters(target: Callable[..., Any]) -> dict[str, Parameter]:
    """The keyword arguments of a dataclass or function that a recipe can set."""
    if dataclasses.is_dataclass(target):
        hints = typing.get_type_hints(target)
        return {
            field.name: _of_field(field, hints[field.name])
            for field in dataclasses.fields(target)
            if field.init
        }
    hints = typing.get_type_hints(target.__init__ if inspect.isclass(target) else target)
    return {
        name: Parameter(
            annotation=hints.get(name, Any),
            required=parameter.default is parameter.empty,
            default=parameter.default,
        )
        for name, parameter in inspect.signature(target).parameters.items()
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    }


def _of_field(field: dataclasses.Field[Any], annotation: Any) -> Parameter:
    if field.default_factory is not dataclasses.MISSING:
        return Parameter(annotation=annotation, required=False, default=field.default_factory())
    required = field.default is dataclasses.MISSING
    default = None if required else field.default
    return Parameter(annotation=annotation, required=required, default=default)


def coerce(value: Any, annotation: Any) -> Any:
    """`value` as `annotation` wants it, or Mismatch; lossless steps only (1 -> 1.0)."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return coerce(value, arguments[0])
    if origin in (typing.Union, types.UnionType):
        return _coerce_union(value, annotation)
    if dataclasses.is_dataclass(annotation) and isinstance(value, Mapping):
        return _coerce_dataclass(value, annotation)
    if origin in (list, tuple, Sequence) and isinstance(value, list):
        return _coerce_sequence(value, annotation, origin, arguments)
    if (options := _choices(annotation)) is not None:
        if any(value == option and type(value) is type(option) for option in options):
            return value
        near = did_you_mean(value, map(str, options)) if isinstance(value, str) else "."
        raise Mismatch(("", _expected(value, annotation) + near.rstrip(".")))
    if _is_plain(value, annotation, origin):
        return annotation(value) if annotation in (float, int, Path) else value
    raise Mismatch(("", _expected(value, annotation)))


def _choices(annotation: Any) -> list[Any] | None:
    """The values of a Literal or an Enum."""
    if typing.get_origin(annotation) is typing.Literal:
        return list(typing.get_args(annotation))
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return [member.value for member in annotation]
    return None


def _is_plain(value: Any, annotation: Any, origin: Any) -> bool:
    """Whether a scalar or mapping is one of the annotation's values, up to `_widen`."""
    if annotation is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if annotation is int:
        return (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, float) and value.is_integer()
        )
    if annotation in (None, types.NoneType):
        return value is None
    if annotation is Path:
        return isinstance(value, str)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping)
    if origin in (list, tuple, Sequence):
        return False
    if annotation is not Any and inspect.isclass(annotation):
        return isinstance(value, annotation)
    return True  # Any, a type variable: nothing to check against


def _coerce_union(value: Any, annotation: Any) -> Any:
    options = list(typing.get_args(annotation))
    if isinstance(value, str) and any(_choices(option) for option in options):
        options = [option for option in options if option is not str]  # SchedulerType | str
    if isinstance(value, Mapping) and any(map(dataclasses.is_dataclass, options)):
        options = list(filter(dataclasses.is_dataclass, options))  # LoraSpec | Mapping
    # the value's own type first, so that 2.0 stays a float where an integer is allowed too
    options.sort(key=lambda option: option is not type(value))
    errors: dict[Any, Mismatch] = {}
    for option in options:
        try:
            return coerce(value, option)
        except Mismatch as error:
            errors[option] = error
    others = [option for option in options if option is not types.NoneType]
    raise errors[others[0]] if len(others) == 1 else Mismatch(("", _expected(value, annotation)))


def _coerce_sequence(value: list[Any], annotation: Any, origin: Any, arguments: Any) -> Any:
    kinds = list(arguments)
    if origin is tuple and kinds and kinds[-1] is not Ellipsis:
        if len(kinds) != len(value):
            raise Mismatch(("", _expected(value, annotation)))
    else:
        kinds = [kinds[0] if kinds else Any] * len(value)
    items: list[Any] = []
    problems: list[tuple[str, str]] = []
    for i, (item, kind) in enumerate(zip(value, kinds, strict=True)):
        try:
            items.append(coerce(item, kind))
        except Mismatch as error:
            problems += [(f".{i}{place}", text) for place, text in error.problems]
    if problems:
        raise Mismatch(*problems)
    return tuple(items) if origin is tuple else items


def _coerce_dataclass(value: Mapping[str, Any], annotation: Any) -> Any:
    problems: list[tuple[str, str]] = []
    built = bind(annotation, value, "", lambda place, text: problems.append((place, text)))
    if problems:
        raise Mismatch(*problems)
    return built


def _expected(value: Any, annotation: Any) -> str:
    return f"expected {_describe(annotation)}, got {_show(value)}"


_WORDS = {
    float: "a number", int: "an integer", bool: "true or false", str: "a string", dict: "a mapping",
    Path: "a path", types.NoneType: "null", None: "null", Any: "a value",
}  # fmt: skip


def _describe(annotation: Any) -> str:
    """An annotation in the words of a recipe's author."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if (options := _choices(annotation)) is not None:
        return "one of " + ", ".join(map(repr, options))
    if origin in (typing.Union, types.UnionType):
        told = [option for option in arguments if not (option is int and float in arguments)]
        return " or ".join(map(_describe, told))
    if annotation in _WORDS:
        return _WORDS[annotation]
    if dataclasses.is_dataclass(annotation):
        return f"a mapping of {', '.join(field.name for field in dataclasses.fields(annotation))}"
    if origin in (list, tuple, Sequence):
        size = f" of {len(arguments)}" if origin is tuple and arguments[-1] is not Ellipsis else ""
        return f"a list{size}"
    if origin in (dict, Mapping):
        return "a mapping"
    return getattr(annotation, "__name__", str(annotation))


def _show(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    kind = {str: "a string", int: "an integer", float: "a number"}.get(type(value))
    return f"{value!r} ({kind})" if kind else repr(value)
