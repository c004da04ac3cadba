"""Runs tests against functions that live in another process. No code of the program is run here.

A test calls a stand-in, which sends the arguments to the program's process and returns the builtin
value that comes back (`plain_data`). So `==`, `assert`, `isinstance` and every name that a test
uses are this process's own, whatever the program has changed in its own.
"""

import ast
import builtins
import json
import os
import symtable
from collections.abc import Iterator
from typing import Any

from model_calls import BadTest, Failed, Model, StandIn


def main(check: dict[str, Any], replies: int, calls: int, verdict: int) -> None:
    model = Model(replies, calls, check["extra"], check["in_place"])
    found: dict[str, Any]
    try:
        found = judge(check, model)
    except Failed as failed:
        found = {"status": failed.status, "detail": failed.detail, "passed": 0}
    except BadTest as error:
        found = {"status": "bad_test", "detail": str(error), "passed": 0}
    found = {"total": max(1, len(check["tests"])), **found}
    found["detail"] = found["detail"][:1000]
    os.write(verdict, json.dumps(found).encode() + b"\n")


def judge(check: dict[str, Any], model: Model) -> dict[str, Any]:
    trees = [_parse(text) for text in check["tests"]]
    space = _space(check, model, trees)
    model.load(check["programs"])
    tally = Tally(check["shaped"])
    for tree in trees:
        _run(tree, space, model, tally)
        if tally.failures and not check["shaped"]:
            break
    status = "passed" if not tally.failures else tally.failures[0][0]
    detail = tally.failures[0][1] if tally.failures else ""
    return {"status": status, "detail": detail, "passed": tally.passed, "total": tally.total(trees)}


def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise BadTest(f"the test is not Python: {error}") from error


def _space(check: dict[str, Any], model: Model, trees: list[ast.Module]) -> dict[str, Any]:
    """The names that the tests see: the prompt's helpers, the set-up's, and stand-ins."""
    space: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins}
    for text in (_whole(check["starter"]), check["setup"]):
        try:
            exec(compile(text, "prompt.py", "exec"), space)
        except BaseException as error:
            raise BadTest(f"the prompt's or set-up code fails: {_name(error)}") from error
    for name in _functions(check, trees, space):
        space[name] = StandIn(model, name)
    return space


def _whole(starter: str) -> str:
    """The prompt's code, with a body for its last function if it has none."""
    for body in ("", "\n    pass\n", "\n\tpass\n"):
        try:
            ast.parse(starter + body)
        except SyntaxError:
            continue
        return starter + body
    return starter


def _functions(check: dict[str, Any], trees: list[ast.Module], space: dict[str, Any]) -> set[str]:
    """The names that stand for functions of the program: what the tests leave undefined.

    A name that is a builtin is one of them only if it is asked for, or if nothing else is called:
    a program's own `len` must not judge it.
    """
    if check["entry_point"]:
        return {check["entry_point"]} | _undefined(check["tests"], space)
    missing = _undefined(check["tests"], space)
    return missing or {name for tree in trees if (name := _called_first(tree))}


def _undefined(tests: list[str], space: dict[str, Any]) -> set[str]:
    defined = set(space) | set(dir(builtins))
    used: set[str] = set()
    for text in tests:
        table = symtable.symtable(text, "test.py", "exec")
        defined |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}
        defined |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_imported()}
        used |= set(_globals_used(table))
    return used - defined


def _globals_used(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _globals_used(inner)


def _called_first(tree: ast.Module) -> str | None:
    """`sum` in `assert sum(10, 15) == 6`."""
    for node in tree.body:
        if isinstance(node, ast.Assert):
            test = node.test.left if isinstance(node.test, ast.Compare) else node.test
            if isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
                return test.func.id
    return None


class Tally:
    """failures: (status, detail) in order. Shaped: each `assert` of the text is a test."""

    def __init__(self, shaped: bool) -> None:
        self.shaped, self.passed = shaped, 0
        self.failures: list[tuple[str, str]] = []
        self.places = 0
        self.seen: dict[int, bool] = {}  # by the place of an assert in the tests

    def total(self, trees: list[ast.Module]) -> int:
        if not self.shaped:
            return len(trees)
        return sum(isinstance(node, ast.Assert) for tree in trees for node in ast.walk(tree)) or 1

    def note(self, place: int, passed: bool) -> None:
        self.seen[place] = self.seen.get(place, True) and passed


class _Marked(ast.NodeTransformer):
    """Each `assert` tells whether it held instead of ending the test."""

    def __init__(self, offset: int) -> None:
        self.place = offset

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.place += 1
        call = "__note__({}, {})"
        kept = ast.parse(
            "try:\n    pass\nexcept Exception:\n    "
            + call.format(self.place, False)
            + "\nelse:\n    "
            + call.format(self.place, True)
        ).body[0]
        assert isinstance(kept, ast.Try)
        kept.body = [node]
        return ast.copy_location(kept, node)


def _run(tree: ast.Module, space: dict[str, Any], model: Model, tally: Tally) -> None:
    before, first = model.count, len(tally.failures)
    if tally.shaped:
        marked = _Marked(tally.places)
        tree = ast.fix_missing_locations(marked.visit(tree))
        tally.places = marked.place
        space["__note__"] = tally.note
    try:
        exec(compile(tree, "test.py", "exec"), space)
        if model.count == before and "check" in space:
            space["check"](next(each for each in space.values() if isinstance(each, StandIn)))
    except Failed as failed:
        tally.failures.append((failed.status, failed.detail))
    except BaseException as error:
        if model.count == before and model.failure is None:
            raise BadTest(f"it fails before it calls anything: {_name(error)}") from error
        tally.failures.append(("failed", _name(error)))
    if model.failure is not None and len(tally.failures) == first:
        tally.failures.append((model.failure.status, model.failure.detail))
    if model.count == before and model.failure is None:
        raise BadTest("it calls no function of the program")
    wrong = [place for place, right in tally.seen.items() if not right]
    if tally.shaped:
        if wrong and len(tally.failures) == first:
            tally.failures.append(("failed", f"{len(wrong)} of the asserts do not hold"))
        tally.passed = sum(tally.seen.values())
    elif len(tally.failures) == first:
        tally.passed += 1


def _name(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
