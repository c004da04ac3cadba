"""Values of builtin types as JSON, rebuilt exactly and as nothing else.

`encode` reduces a subclass to the builtin it derives from (a Counter to a dict, a named tuple to a
tuple), so that no method of the sender's classes, no __eq__, exists where the value is judged.

This text also runs beside every program, whose start must not wait for imports it does not need.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

EXTRA = ("date", "datetime", "decimal", "deque", "fraction", "range")  # only where asked for
LIST: Any = list  # whose own methods are called, not those of a subclass
DICT: Any = dict
BYTES: Any = bytes
COLLECTIONS: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
LONG = 1 << 1000  # integers from here on are written in hexadecimal: decimal is quadratic, limited


def encode(value: Any, extra: Sequence[str] = ()) -> Any:
    """Raises TypeError for what is not plain."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        value = int(value)
        return value if -LONG < value < LONG else {"int": hex(value)}
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, list):
        return [encode(item, extra) for item in LIST.__iter__(value)]
    if isinstance(value, dict):
        pairs = DICT.items(value)
        return {"dict": [[encode(key, extra), encode(item, extra)] for key, item in pairs]}
    if isinstance(value, bytes | bytearray):
        return {"bytes" if isinstance(value, bytes) else "bytearray": BYTES(value).hex()}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    for name, collection in COLLECTIONS.items():
        if isinstance(value, collection):
            return {name: [encode(item, extra) for item in collection.__iter__(value)]}
    return _encode_extra(value, extra)


def _encode_extra(value: Any, extra: Sequence[str]) -> Any:
    name = type(value).__name__.lower()
    if name not in extra or type(value) not in _extra_types(name):
        raise TypeError(f"{type(value).__name__} is not a plain value")
    if name == "range":
        return {name: [value.start, value.stop, value.step]}
    if name == "fraction":
        return {name: [encode(value.numerator), encode(value.denominator)]}
    if name == "deque":
        return {name: [encode(item, extra) for item in value]}
    return {name: str(value) if name == "decimal" else value.isoformat()}


def decode(message: Any, extra: Sequence[str] = ()) -> Any:
    """Raises TypeError, ValueError or OverflowError for what `encode` does not write."""
    if message is None or isinstance(message, bool | int | float | str):
        return message
    if isinstance(message, list):
        return [decode(item, extra) for item in LIST.__iter__(message)]
    ((kind, content),) = message.items()
    if kind == "int":
        return int(content, 16)
    if kind == "dict":
        return {decode(key, extra): decode(item, extra) for key, item in content}
    if kind in COLLECTIONS:
        return COLLECTIONS[kind]([decode(item, extra) for item in content])
    if kind in ("bytes", "bytearray"):
        return bytes.fromhex(content) if kind == "bytes" else bytearray.fromhex(content)
    if kind == "complex":
        return complex(*map(float, content))
    if kind not in extra:
        raise TypeError(f"{kind!r} is not a plain value")
    return _decode_extra(kind, content, extra)


def _decode_extra(name: str, content: Any, extra: Sequence[str]) -> Any:
    (kind,) = _extra_types(name)
    if name == "range":
        return kind(*map(int, content))
    if name == "fraction":
        return kind(*map(decode, content))
    if name == "deque":
        return kind(decode(content, extra))
    return kind(content) if name == "decimal" else kind.fromisoformat(content)


def _extra_types(name: str) -> tuple[Any, ...]:
    import collections
    import datetime
    import decimal
    import fractions

    return {
        "date": (datetime.date,),
        "datetime": (datetime.datetime,),
        "decimal": (decimal.Decimal,),
        "deque": (collections.deque,),
        "fraction": (fractions.Fraction,),
        "range": (range,),
    }[name]
