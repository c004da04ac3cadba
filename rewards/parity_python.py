"""What Python's `eval` gives for arithmetic, without running anything and within bounds.

Only for rewards of others that evaluate model text: + - * / // ** and signs over int and float
literals, walked over in the syntax tree. Everything else, and what grows too large, is OutOfBounds.
"""

import ast
from typing import Any

LONGEST = 300  # characters; also bounds the depth of the walk
LARGEST = 2**256  # of any value on the way


class OutOfBounds(Exception):
    """No arithmetic, a division by zero, or more than the bounds allow."""


def python_value(text: str) -> complex:
    """The value of an expression (an int or float; complex for a root of a negative number)."""
    if len(text) > LONGEST:
        raise OutOfBounds(f"{len(text)} characters; at most {LONGEST}")
    try:
        tree = ast.parse(text.lstrip(" \t"), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise OutOfBounds(f"not an expression: {error}") from error
    try:
        return _walk(tree.body)
    except (ArithmeticError, TypeError) as error:  # / 0, float overflow, // of complex
        raise OutOfBounds(str(error)) from error


def _walk(node: ast.expr) -> Any:
    value: Any
    match node:
        case ast.Constant(value=int() | float() as value):
            pass
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = -_walk(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            value = +_walk(operand)
        case ast.BinOp(left=left, op=op, right=right):
            value = _apply(op, _walk(left), _walk(right))
        case _:
            raise OutOfBounds(f"{type(node).__name__} is no arithmetic")
    if not abs(value) <= LARGEST:
        raise OutOfBounds("a value that is too large")
    return value


def _apply(op: ast.operator, a: Any, b: Any) -> Any:
    match op:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.Div():
            return a / b
        case ast.FloorDiv():
            return a // b
        case ast.Pow():
            if abs(b) * _bits(a) > _bits(LARGEST):
                raise OutOfBounds("a power that is too large")
            return a**b
        case _:
            raise OutOfBounds(f"{type(op).__name__} is no arithmetic")


def _bits(value: Any) -> float:
    """The binary digits of the larger of |value| and, for a power below 1, its inverse."""
    size = abs(value)
    if size == 0 or size == 1:
        return 0.0
    return float(int(max(size, 1 / size)).bit_length())
