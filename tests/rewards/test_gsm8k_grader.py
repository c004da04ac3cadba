import json
import re
from pathlib import Path

import pytest

from rewards import gsm8k_correct


@pytest.mark.parametrize(
    ("answer", "gold", "score"),
    [
        ("18", "18", 1.0),
        ("$18.00", "18", 1.0),
        ("18 dollars", "She makes 9 * 2 = 18\n#### 18", 1.0),
        (r"\boxed{18}", "18", 1.0),
        ("1000", "#### 1,000", 1.0),
        ("1,000", "1000", 1.0),
        ("-4", "-4", 1.0),
        ("4", "-4", 0.0),
        ("17", "7", 0.0),
        ("18.5", "18", 0.0),
        ("180", "18", 0.0),
        (r"\frac{2}{3}", "2", 0.0),
        ("17 or 18", "18", 0.0),
        ("", "0", 0.0),
    ],
)
def test_one_answer(answer: str, gold: str, score: float):
    assert (
        gsm8k_correct(f"<reasoning>99</reasoning><answer>{answer}</answer>", answer=gold) == score
    )


def test_an_answer_must_be_declared():
    assert gsm8k_correct("16 - 3 - 4 = 9, and 9 * 2 = 18", answer="18") == 0.0
    assert gsm8k_correct("16 - 3 - 4 = 9, and 9 * 2 = 18\n#### 18", answer="18") == 1.0


def test_gold_that_is_no_number_is_shown():
    with pytest.raises(ValueError, match=r"column 'answer' must hold a number.*'eighteen'"):
        gsm8k_correct("18", answer="eighteen")


def test_every_gold_of_the_test_set(shared_data: Path):
    lines = (shared_data / "gsm8k" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1319
    for line in lines:
        solution = json.loads(line)["answer"]
        gold = solution.rpartition("####")[2].strip()
        wrong = gold[:-1] + str((int(gold[-1]) + 1) % 10)
        for text in (gold, gold.replace(",", ""), f"\\boxed{{{gold}}}", f"${gold}"):
            assert gsm8k_correct(f"<answer>\n{text}\n</answer>", answer=solution) == 1.0
        assert gsm8k_correct(f"<answer>\n{wrong}\n</answer>", answer=solution) == 0.0
        assert gsm8k_correct(re.sub(r"<<.*?>>", "", solution), answer=solution) == 1.0
