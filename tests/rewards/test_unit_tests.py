"""The grader of programs: right ones pass, wrong ones do not, and none can forge the result."""

import ast
import functools
import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rewards import REWARDS, per_completion, sandbox
from rewards.sandbox import Limits
from rewards.unit_tests import Report, check_settings, counts, grade_program, unit_tests

LIMITS = Limits(wall_s=60, cpu_s=40)
ADD = "def add(a, b):\n    return a + b\n"
ADD_TESTS = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0", "assert add('a', 'b') == 'ab'"]


def grade(program: str, tests: list[str], **options: Any) -> Report:
    return grade_program([program], tests, **{"limits": LIMITS} | options)


def in_threads(function: Any, items: list[Any]) -> list[Any]:
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(function, items))


# ----------------------------------------------------------------------------- published problems


@pytest.fixture(scope="module")
def humaneval(shared_data: Path) -> list[dict[str, Any]]:
    with gzip.open(shared_data / "humaneval" / "HumanEval.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def mbpp(shared_data: Path) -> list[dict[str, Any]]:
    with (shared_data / "mbpp" / "mbpp-py_reflexion.jsonl").open() as lines:
        return [json.loads(line) for line in lines]


def humaneval_score(problem: dict[str, Any], completion: str) -> float | None:
    return unit_tests(
        completion,
        test=problem["test"],
        entry_point=problem["entry_point"],
        prompt=problem["prompt"],
        execute_code=True,
        wall_s=60,
        cpu_s=40,
    )


NEAR_MISS = """

def changed(value):
    if isinstance(value, bool): return not value
    if isinstance(value, int | float): return value + 1
    if isinstance(value, str): return value + "x"
    if isinstance(value, list | tuple): return [*value, 0]
    return 0 if value is None else None

right = {name}
def {name}(*arguments): return changed(right(*arguments))
"""


def near_miss(problem: dict[str, Any]) -> str:
    own = NEAR_MISS.replace("{name}", problem["entry_point"])
    return f"```python\n{problem['prompt']}{problem['canonical_solution']}{own}\n```"


@pytest.mark.slow
def test_every_humaneval_solution_passes_and_a_near_miss_does_not(humaneval: list[dict[str, Any]]):
    assert len(humaneval) == 164
    right = in_threads(lambda p: humaneval_score(p, p["canonical_solution"]), humaneval)
    assert [p["task_id"] for p, score in zip(humaneval, right, strict=True) if score != 1.0] == []
    some = humaneval[::8]
    wrong = in_threads(lambda p: humaneval_score(p, near_miss(p)), some)
    assert [p["task_id"] for p, score in zip(some, wrong, strict=True) if score != 0.0] == []


def looked_up(problem: dict[str, Any], spoil: bool) -> str | None:
    """A program that knows the expected values, of which the last may be another one."""
    table: list[str] = []
    for node in ast.walk(ast.parse(problem["test"])):
        if not isinstance(node, ast.Assert):
            continue
        test = node.test
        if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Call)):
            return None
        arguments = ast.unparse(ast.Tuple(test.left.args, ast.Load()))
        table.append(f"({arguments}, {ast.unparse(test.comparators[0])})")
    if spoil:
        inputs = ast.unparse(ast.parse(table[-1], mode="eval").body.elts[0])  # type: ignore[attr-defined]
        table[-1] = f"({inputs}, ['another value'])"
    return (
        f"```python\ndef {problem['entry_point']}(*given):\n"
        f"    for arguments, value in [{', '.join(table)}]:\n"
        "        if repr(arguments) == repr(given):\n            return value\n```"
    )


@pytest.mark.slow
def test_every_mbpp_problem_pays_its_expected_values_and_no_others(mbpp: list[dict[str, Any]]):
    def scores(problem: dict[str, Any]) -> tuple[float | None, float | None] | None:
        right, wrong = looked_up(problem, spoil=False), looked_up(problem, spoil=True)
        if right is None or wrong is None:
            return None
        columns = {"test": problem["test"], "entry_point": problem["entry_point"]}
        settings = {"execute_code": True, "wall_s": 60, "cpu_s": 40}
        given = {"starter_code": problem["prompt"]}
        return tuple(unit_tests(text, **columns, **given, **settings) for text in (right, wrong))

    found = in_threads(scores, mbpp[::10])
    assert sum(score is not None for score in found) >= 35
    assert {score for score in found if score is not None} == {(1.0, 0.0)}


# ----------------------------------------------------------------------------- forms of completions

DOUBLE = "def double(x):\n    return 2 * x"
DOUBLE_COLUMNS: dict[str, Any] = {"test_list": ["assert double(3) == 6"], "execute_code": True}


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (f"```python\n{DOUBLE}\n```", 1.0),
        (f"Let me think.\n```\n{DOUBLE}\n```\nThat is it.", 1.0),
        (f"<answer>\n```python\n{DOUBLE}\n```\n</answer>", 1.0),
        (f"<answer>\n{DOUBLE}\n</answer>", 1.0),
        (DOUBLE, 1.0),
        (f"~~~py\n{DOUBLE}\n~~~", 1.0),
        (f"```python\r\n{DOUBLE}\r\n```".replace("\n", "\r\n").replace("\r\r", "\r"), 1.0),
        (f"```python\ndef double(x):\n    return x\n```\nNo:\n```python\n{DOUBLE}\n```", 1.0),
        (f"```python\n{DOUBLE}\n```\nNo:\n```python\ndef double(x):\n    return x\n```", 0.0),
        (f"```python\n{DOUBLE}\n```\nRun it:\n```bash\npython double.py\n```", 1.0),
        (f"{DOUBLE}\n```", 1.0),  # the prompt ends with the opening fence
        ("- so:\n  ```python\n  def double(x):\n      return 2 * x\n  ```", 1.0),
        (f"```python\n{DOUBLE}", 0.0),  # cut off
        (f"```python\n{DOUBLE}\n```<|eot_id|>```python\nfrom os import *\n```", 1.0),
        ("I cannot do that.", 0.0),
        ("", 0.0),
        ("```python\n```", 0.0),
        ("```python\ndef double(x): return 2 *\n```", 0.0),
        ("def double(x):\n    return 2 * x\0", 0.0),
        ("\ud800", 0.0),
        ("(" * 90_000, 0.0),
        (f"```python\n# {'x' * 100_001}\n{DOUBLE}\n```", 0.0),
    ],
)
def test_where_the_program_stands(completion: str, expected: float):
    assert unit_tests(completion, **DOUBLE_COLUMNS) == expected


def test_the_last_block_that_defines_the_function_counts_when_its_name_is_known():
    text = f"```python\n{DOUBLE}\n```\nExample:\n```python\nprint(double(2))\n```"
    assert unit_tests(text, entry_point="double", **DOUBLE_COLUMNS) == 1.0


STARTER = 'import math\n\ndef root(x: float) -> float:\n    """The square root."""\n'
ROOT: dict[str, Any] = {
    "test": "def check(candidate):\n    assert candidate(9) == 3\n    assert candidate(4.0) == 2",
    "entry_point": "root",
    "prompt": STARTER,
    "execute_code": True,
}


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("    return math.sqrt(x)\n", 1.0),
        ("    return math.sqrt(x)\n\nprint(root('x'))\nassert False", 1.0),  # beyond the function
        ("    return math.sqrt(x)\n\nAnd that is the answer.", 1.0),
        ("```python\n    return math.sqrt(x)\n```", 1.0),
        ("```python\ndef root(x):\n    return math.sqrt(x)\n```", 1.0),
        ("    return x", 0.0),
        ("", 0.0),
        ("    pass", 0.0),
    ],
)
def test_a_completion_may_continue_the_prompt(completion: str, expected: float):
    assert unit_tests(completion, **ROOT) == expected


# ----------------------------------------------------------------------------------------- forging

EQUALS_ALL = """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __hash__(self): return 0
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __sub__(self, other): return self
    __rsub__ = __add__ = __abs__ = __round__ = __sub__
    def __instancecheck__(self, other): return True
"""
FORGERIES = {
    "exit": "import sys\nsys.exit(0)",
    "exit at once": "import os\nos._exit(0)",
    "exit in the call": "import os\ndef add(a, b): os._exit(0)",
    "system exit in the call": "def add(a, b): raise SystemExit(0)",
    "killed in the call": "import os\ndef add(a, b): os.kill(os.getpid(), 9)",
    "equal to all": EQUALS_ALL + "def add(a, b): return Equal()",
    "number equal to all": EQUALS_ALL.replace("class Equal:", "class Equal(int):")
    + "def add(a, b): return Equal()",
    "text equal to all": EQUALS_ALL.replace("class Equal:", "class Equal(str):")
    + "def add(a, b): return Equal()",
    "list equal to all": EQUALS_ALL.replace("class Equal:", "class Equal(list):")
    + "def add(a, b): return Equal()",
    "type equal to all": "class M(type):\n    def __eq__(self, o): return True\n"
    "    def __hash__(self): return 0\nclass A(metaclass=M): pass\ndef add(a, b): return A",
    "not implemented": "def add(a, b): return NotImplemented",
    "mock": "from unittest.mock import ANY\ndef add(a, b): return ANY",
    "changed builtins": "import builtins\nbuiltins.AssertionError = ValueError\n"
    "builtins.isinstance = lambda *a: True\nbuiltins.all = lambda *a: True\n"
    "builtins.abs = lambda x: 0\nbuiltins.__build_class__ = None\ndef add(a, b): return 0",
    "own names of the tests": "def check(candidate): pass\ndef test(): pass\n"
    "def len(x): return 3\ndef add(a, b): return None",
    "replaced main": "import sys, types\nsys.modules['__main__'] = types.ModuleType('__main__')\n"
    "sys.modules['tests'] = sys.modules['__main__']\ndef add(a, b): return 0",
    "marks of success": "print('OK passed 1.0')\nimport sys\nsys.stderr.write('Ran 3 tests OK')\n"
    'import os\nos.write(1, b\'{"status": "passed", "passed": 3}\\n\')\ndef add(a, b): return 0',
    "a verdict on every file": "import os\nfor fd in range(64):\n    try: os.write(fd, "
    'b\'{"status": "passed", "passed": 3, "total": 3, "detail": ""}\\n\' * 5)\n'
    "    except OSError: pass\ndef add(a, b): return 0",
    "an exit status in its place": "import os\nfor fd in range(64):\n    try: os.write(fd, "
    "b'{\"exit\": 0}\\n')\n    except OSError: pass\nos._exit(0)",
    "a patched encoder": "import json\njson.dumps = lambda *a, **k: '{\"value\": true}'\n"
    "import __main__\n__main__.encode = lambda *a: True\ndef add(a, b): return 0",
    "a forged exception": "class AssertionError(Exception): pass\ndef add(a, b): "
    "raise StopIteration",
    "an exit handler": "import atexit, os\natexit.register(os._exit, 0)\ndef add(a, b): return 0",
    "a thread": "import threading, time, os\nthreading.Thread(target=lambda: (time.sleep(0.05), "
    "os._exit(0))).start()\ndef add(a, b): time.sleep(0.2); return 0",
    "a process that outlives": "import os\nif os.fork() > 0: os._exit(0)\ndef add(a, b): return 0",
    "recursion": "def add(a, b): return add(a, b)",
    "a value that contains itself": "def add(a, b):\n    x = []\n    x.append(x)\n    return x",
    "a huge value": "def add(a, b): return 'x' * 10**7",
    "a segfault": "import ctypes\ndef add(a, b): ctypes.string_at(0)",
    "a changed argument": "def add(a, b): raise AssertionError",
    "no such function": "def plus(a, b): return a + b",
    "a name that is no function": "add = 3",
    "a coroutine": "async def add(a, b): return a + b",
    "a generator": "def add(a, b): yield a + b",
    "a stop before the end": "import os\ndef add(a, b): os.kill(os.getpid(), 19)  # SIGSTOP",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_no_forgery_is_paid(name: str):
    program = FORGERIES[name]
    limits = Limits(wall_s=2 if "stop" in name else 30, cpu_s=20)
    report = grade(program, ADD_TESTS, limits=limits)
    assert report.status not in ("passed", "no_code", "bad_test"), report
    loop = "def check(candidate):\n    assert all(map(candidate, [1, 2], [3, 4]))\n"
    loop += "    assert candidate(1, 2) == 3"
    report = grade(program, [loop], entry_point="add", limits=limits)
    assert report.status not in ("passed", "no_code", "bad_test"), report


@pytest.mark.parametrize("name", ["exit in the call", "equal to all", "a verdict on every file"])
def test_no_forgery_is_paid_without_namespaces(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "_forced", "fallback")
    assert grade(ADD, ADD_TESTS).status == "passed"
    assert grade(FORGERIES[name], ADD_TESTS).status in ("died", "failed")


LOOKS_AROUND = """
import gc, glob, os, sys
MARK = "-".join(["secret", "of", "the", "test"])
def look():
    found = [type(thing).__name__ for thing in gc.get_objects() if MARK in repr(thing)[:10**6]
             and thing is not globals()] if objects else []
    frame = sys._getframe()
    while frame:
        seen = [*frame.f_locals.items(), *frame.f_code.co_consts]
        found += ["frame" for thing in seen if MARK in repr(thing) and "MARK" not in repr(thing)]
        frame = frame.f_back
    for path in glob.glob("/proc/*/mem") + glob.glob("/proc/*/cmdline"):
        try:
            if MARK.encode() in open(path, "rb").read(10**6): found.append(path)
        except (OSError, ValueError): pass
    for folder, _, files in os.walk("/tmp"):
        found.extend(files)
    return found
objects = True
def add(a, b): return look()
"""


def test_a_program_does_not_find_the_tests():
    tests = ['assert add("x", 1) == [], "secret-of-the-test"']
    report = grade(LOOKS_AROUND, tests)
    assert report.status == "passed", report
    told = ['assert add("secret-of-the-test", 1) == []']  # its arguments, it does find
    assert grade(LOOKS_AROUND, told).status == "failed"


def test_results_are_compared_as_their_exact_builtin_type():
    program = """
import collections
Point = collections.namedtuple("Point", "x y")
class Odd(int):
    def __eq__(self, other): return False
    __hash__ = int.__hash__
values = [None, True, 1, 2**5000, -1.5, float("inf"), "ü\\ud800", b"\\x00", 1j, [1, [2]], (1, (2,)),
          {1: "a", (2, 3): {4}}, frozenset([1]), collections.Counter("aab"), Point(1, 2), Odd(7)]
def value(i): return values[i]
def kind(i): return type(values[i]).__name__
"""
    tests = [
        "assert value(0) is None and value(1) is True and type(value(2)) is int",
        "assert value(3) == 2**5000 and type(value(4)) is float and value(5) == float('inf')",
        "assert value(6) == 'ü\\ud800' and value(7) == b'\\x00' and value(8) == 1j",
        "assert value(9) == [1, [2]] and value(10) == (1, (2,)) and type(value(10)[1]) is tuple",
        "assert value(11) == {1: 'a', (2, 3): {4}} and type(value(12)) is frozenset",
        "assert value(13) == {'a': 2, 'b': 1} and type(value(13)) is dict",
        "assert value(14) == (1, 2) and type(value(14)) is tuple",
        "assert value(15) == 7 and type(value(15)) is int",
        "assert kind(13) == 'Counter'",
    ]
    report = grade(program, tests)
    assert (report.status, report.passed) == ("passed", 9), report


def test_exceptions_arrive_as_the_builtin_they_are():
    program = """
class Own(ValueError): pass
def fail(i):
    if i == 0: raise ValueError("no")
    if i == 1: raise Own("own")
    raise KeyboardInterrupt
"""
    test = """
def check(candidate):
    for i, kinds in enumerate([ValueError, Exception, Exception]):
        try:
            candidate(i)
        except kinds as error:
            assert i != 0 or str(error) == "no"
        else:
            assert False
"""
    assert grade(program, [test], entry_point="fail").status == "passed"


# ----------------------------------------------------------------------------------------- settings


def test_other_types_only_where_asked_for():
    program = "from decimal import Decimal\ndef half(x): return Decimal(x) / 2"
    tests = ["from decimal import Decimal\nassert half(3) == Decimal('1.5')"]
    report = grade(program, tests)
    assert report.status == "failed"
    assert "Decimal is not a plain value" in report.detail
    assert grade(program, tests, extra_types=["decimal"]).status == "passed"


def test_changes_of_arguments_come_back_only_where_asked_for():
    program = "def empty(x):\n    x.clear()\n    return x"
    forged = ["x = [1]\nassert empty(x) == x"]
    assert grade(program, forged).status == "failed"
    assert grade(program, ["x = [1]\nempty(x)\nassert x == []"], in_place=True).status == "passed"


def test_shaped_is_the_share_of_the_asserts_that_hold():
    program = "def add(a, b): return a + b if isinstance(a, int) and a > 0 else None"
    columns: dict[str, Any] = {"test_list": ADD_TESTS, "execute_code": True}
    assert unit_tests(program, **columns) == 0.0
    assert unit_tests(program, **columns, shaped=True) == pytest.approx(1 / 3)
    assert unit_tests(ADD, **columns, shaped=True) == 1.0
    check = "def check(candidate):\n" + "".join(
        f"    assert candidate({i}, 1) == {i + 1}\n" for i in (1, 2, -1, -2)
    )
    report = grade(program, [check], entry_point="add", shaped=True)
    assert (report.status, report.passed, report.total) == ("failed", 2, 4)
    ends = "import os\ndef add(a, b):\n    if a < 2: return a + b\n    os._exit(0)"
    report = grade(ends, [check], entry_point="add", shaped=True)
    assert (report.status, report.passed, report.total) == ("died", 1, 4)


def test_names_that_tests_leave_undefined_are_functions_of_the_program():
    setup = "import math\ndef twice(x): return 2 * x"
    program = "def f(x): return x + 1\ndef g(x): return x * 2\ndef twice(x): return 0"
    assert grade(program, ["assert g(f(1)) == twice(2)"], setup=setup).status == "passed"
    assert grade("def sum(a, b): return a - b", ["assert sum(5, 3) == 2"]).status == "passed"


@pytest.mark.parametrize(
    "test",
    ["assert add(1, 2) ==", "import no_such_module", "assert True", "def check(x): assert False"],
)
def test_a_test_that_does_not_work_grades_nothing(test: str):
    assert unit_tests(ADD, test_list=[test], execute_code=True) is None


@pytest.mark.parametrize("tests", [[], [""], ["assert add(1, 2) == 3", " \n"]])
def test_an_empty_test_is_refused(tests: list[str]):
    with pytest.raises(ValueError, match="no test, or an empty one"):
        unit_tests(ADD, test_list=tests, execute_code=True)


def test_limits_are_statuses():
    def status(program: str, **limits: float) -> str:
        return grade(program, ["assert f(1) == 1"], limits=Limits(**limits)).status

    assert status("def f(x):\n    while True: pass", wall_s=1) == "timeout"
    assert status("def f(x):\n    while True: pass", wall_s=60, cpu_s=1) in ("cpu", "died")
    hog = "import os, time\ndef f(x):\n    for _ in range(3): os.fork()\n    "
    assert status(hog + "y = b'x' * 90_000_000; time.sleep(9)", memory_mib=300) == "memory"
    assert status("print('x' * 10**7)\ndef f(x): return 1", wall_s=60) == "passed"


def test_a_batch_is_graded_in_order_and_counted():
    before = counts.copy()
    reward = per_completion(REWARDS["unit_tests"])
    texts = [f"def f(x): return {i}" for i in range(8)]
    with pytest.raises(ValueError, match="execute_code: true"):
        reward(["p"] * 8, texts, test_list=[["assert f(0) == 4"]] * 8)
    allowed = functools.partial(unit_tests, execute_code=True, workers=3)
    allowed.__name__ = "unit_tests"  # type: ignore[attr-defined]
    allowed.batch = functools.partial(  # type: ignore[attr-defined]
        unit_tests.batch, execute_code=True, workers=3
    )
    tests = [[f"assert f(0) == {4 if i == 4 else i + 1}"] for i in range(8)]
    tests[7] = None
    scores = per_completion(allowed)(["p"] * 8, texts, test_list=tests)
    assert scores == [0.0] * 4 + [1.0] + [0.0] * 2 + [None]
    assert (counts - before) == {"passed": 1, "failed": 6}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "execute_code: true"),
        ({"execute_code": False}, "runs programs that the model has written"),
        ({"execute_code": 1}, "execute_code: true"),
        ({"execute_code": True, "workers": 0}, "workers is 0"),
        ({"execute_code": True, "extra_types": ["numpy"]}, "allowed are date"),
        ({"execute_code": True, "wall_s": -1}, "wall_s is -1"),
        ({"execute_code": True, "memory_mib": 8}, "64 MiB"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        check_settings(**settings)
