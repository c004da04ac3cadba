"""Programs that want to be paid without being right."""

from typing import Any

import pytest

from rewards import sandbox
from rewards.sandbox import Limits
from rewards.unit_tests import Report, grade_program

LIMITS = Limits(wall_s=60, cpu_s=40)
ADD = "def add(a, b):\n    return a + b\n"
ADD_TESTS = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0", "assert add('a', 'b') == 'ab'"]


def grade(program: str, tests: list[str], **options: Any) -> Report:
    return grade_program([program], tests, **{"limits": LIMITS} | options)


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
    for folder, _, files in os.walk(os.getcwd()):
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
