"""The grader of programs: right ones pass, wrong ones do not, and none can forge the result."""

import functools
from typing import Any

import pytest

from rewards import REWARDS, per_completion, sandbox
from rewards.sandbox import Limits, SandboxError
from rewards.unit_tests import Report, check_settings, grade_program, unit_tests
from rewards.values import Failed, Unsettled

LIMITS = Limits(wall_s=60, cpu_s=40)
ADD = "def add(a, b):\n    return a + b\n"
ADD_TESTS = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0", "assert add('a', 'b') == 'ab'"]


def grade(program: str, tests: list[str], **options: Any) -> Report:
    return grade_program([program], tests, **{"limits": LIMITS} | options)


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


def test_a_program_that_runs_too_long_is_counted():
    late = unit_tests(
        "def f(x):\n    while True: pass", test_list=["assert f(1)"], execute_code=True, wall_s=1
    )
    assert late == 0.0
    assert isinstance(late, Unsettled)
    assert late.failed.kind == "timeouts"


def test_a_program_that_breaks_its_sandbox_costs_no_other(monkeypatch: pytest.MonkeyPatch):
    def run(host: str, check: dict[str, Any], **settings: Any) -> Any:
        if "777" in check["programs"][0]:
            raise SandboxError("the launcher of sandboxes has ended")
        return found(host, check, **settings)

    found = sandbox.run_checked
    monkeypatch.setattr(sandbox, "run_checked", run)
    texts = ["def f(x): return 1", "def f(x): return 777", "def f(x): return 2"]
    tests = [["assert f(0) == 1"]] * 3
    scores = unit_tests.batch(texts, test_list=tests, execute_code=True)  # type: ignore[attr-defined]
    assert (scores[0], scores[2]) == (1.0, 0.0)
    assert isinstance(scores[1], Failed)
    assert "the launcher of sandboxes has ended" in scores[1].why


def test_a_batch_is_graded_in_order():
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
