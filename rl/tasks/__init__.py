"""What is trained and evaluated: prompts, and the name of the grader that judges the completions.

A task of your own is a class like these; "my_file.py:MyTask" works wherever a name does.
"""

from rl.tasks.base import Row, Split, Task, assert_disjoint
from rl.tasks.countdown import Countdown
from rl.tasks.free_sudoku4 import FreeSudoku4
from rl.tasks.gsm8k import Gsm8k
from rl.tasks.humaneval import HumanEval
from rl.tasks.knights_knaves import KnightsKnaves
from rl.tasks.math500 import Math500
from rl.tasks.mbpp import Mbpp
from rl.tasks.preference_labels import PreferenceLabels
from rl.tasks.preference_pairs import PreferencePairs
from rl.tasks.reasoning_gym import ReasoningGym
from rl.tasks.sudoku4 import Sudoku4
from rl.tasks.zebra import Zebra

TASKS: dict[str, type[Task]] = {
    "free_sudoku4": FreeSudoku4,
    "sudoku4": Sudoku4,
    "countdown": Countdown,
    "gsm8k": Gsm8k,
    "math500": Math500,
    "humaneval": HumanEval,
    "mbpp": Mbpp,
    "knights_knaves": KnightsKnaves,
    "reasoning_gym": ReasoningGym,
    "zebra": Zebra,
    "preference_pairs": PreferencePairs,
    "preference_labels": PreferenceLabels,
}

__all__ = [
    "TASKS",
    "Countdown",
    "FreeSudoku4",
    "Gsm8k",
    "HumanEval",
    "KnightsKnaves",
    "Math500",
    "Mbpp",
    "PreferenceLabels",
    "PreferencePairs",
    "ReasoningGym",
    "Row",
    "Split",
    "Sudoku4",
    "Task",
    "Zebra",
    "assert_disjoint",
]
