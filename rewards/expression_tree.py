"""The tree of an expression, as `rewards.latex_expression` reads it.

A node is a tuple: ("num", Fraction), ("sym", name), ("const", "pi" | "e" | "i" | "inf"),
("neg" | "fact" | "abs", node), ("add" | "mul" | "div" | "pow", node, node) or ("call", name, ...).
"""

from typing import Any, cast

Node = tuple[Any, ...]


class Unreadable(ValueError):
    """The text is no expression that we know."""


class UnknownCommand(Unreadable):
    """It may be one to somebody else."""


def symbols(tree: Node) -> frozenset[str]:
    """The names of the variables in it."""
    if tree[0] == "sym":
        return frozenset({tree[1]})
    return frozenset[str]().union(
        *(symbols(cast(Node, x)) for x in tree[1:] if isinstance(x, tuple))
    )
