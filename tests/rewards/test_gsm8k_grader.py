import gzip
import json
import re
import time
from pathlib import Path
from statistics import fmean

import pytest

from rewards import gsm8k_correct

FIELDS = ("generation", "gen_length")
REFERENCE = {128: 70.2, 256: 77.4, 512: 78.5}  # per cent, by generated tokens


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


@pytest.mark.parametrize(
    ("settings", "text", "score"),
    [
        ({}, "<answer>\\boxed{18>", 0.0),
        ({"mode": "lenient"}, "<answer>\\boxed{18>", 1.0),
        ({"mode": "lenient"}, "<answer>\\boxed{1>", 0.0),
        ({"style": "box"}, r"\boxed{18} <answer>7</answer>", 1.0),
        ({"style": "last_number"}, "6, then 18.", 1.0),
        ({"style": "json:answer"}, '{"answer": 18}', 1.0),
        ({"style": "tag"}, r"\boxed{18}", 0.0),
    ],
)
def test_settings(settings: dict[str, str], text: str, score: float):
    assert gsm8k_correct(text, answer="18", **settings) == score


def test_wrong_settings_are_told():
    with pytest.raises(ValueError, match="style is 'boxes'; use one of auto"):
        gsm8k_correct("18", answer="18", style="boxes")
    with pytest.raises(ValueError, match="mode is 'loose'; use strict"):
        gsm8k_correct("18", answer="18", mode="loose")


def test_gold_may_be_a_number():
    assert gsm8k_correct("<answer>18</answer>", answer=18) == 1.0
    assert gsm8k_correct("<answer>18</answer>", answer=18.0) == 1.0
    assert gsm8k_correct("<answer>18.5</answer>", answer=18.5) == 1.0


def solutions(data: Path, split: str) -> list[str]:
    lines = (data / "gsm8k" / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["answer"] for line in lines]


@pytest.mark.slow
def test_every_gold(shared_data: Path):
    """In the forms that a prompt asks for it scores 1, with its last digit changed 0."""
    golds = solutions(shared_data, "train") + solutions(shared_data, "test")
    assert len(golds) == 8792
    for solution in golds:
        gold = solution.rpartition("####")[2].strip()
        wrong = gold[:-1] + str((int(gold[-1]) + 1) % 10)
        for text in (gold, f"\\boxed{{{gold}}}", f"${gold.replace(',', '')}"):
            completion = f"<reasoning>\nWe add.\n</reasoning>\n<answer>\n{text}\n</answer>"
            assert gsm8k_correct(completion, answer=solution) == 1.0, gold
        assert gsm8k_correct(f"<answer>\n{wrong}\n</answer>", answer=solution) == 0.0, gold


def test_every_solution_of_the_test_set_is_its_own_answer(shared_data: Path):
    for solution in solutions(shared_data, "test"):
        assert gsm8k_correct(re.sub(r"<<.*?>>", "", solution), answer=solution) == 1.0


@pytest.mark.slow
def test_real_generations_agree_with_the_reference(shared_data: Path):
    """3,390 outputs of LLaDA-8B-Instruct at three lengths, decoded in parallel.

    The reference is what a normalising reader that repairs garbled boxes gave on the same texts.
    d1's reader (arXiv:2504.12216) gives 69.3, 76.4 and 78.1 % and has lost the two negative golds,
    which are those of the data set here.
    """
    folder = shared_data / "gsm8k"
    golds = {
        json.loads(line)["question"].strip(): json.loads(line)["answer"]
        for line in (folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
    }
    paid: dict[int, list[float]] = {}
    strict: dict[int, list[float]] = {}
    slowest = 0.0
    with gzip.open(shared_data / "d1_llada_generations.jsonl.gz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    for record in records:
        if record["task"] != "gsm8k":
            continue
        gold, text, length = golds[record["question"].strip()], *map(record.get, FIELDS)
        start = time.perf_counter()
        paid.setdefault(length, []).append(gsm8k_correct(text, answer=gold, mode="lenient"))
        slowest = max(slowest, time.perf_counter() - start)
        strict.setdefault(length, []).append(gsm8k_correct(text, answer=gold))
    shares = {length: 100 * fmean(scores) for length, scores in paid.items()}
    assert shares == {n: pytest.approx(share, abs=0.3) for n, share in REFERENCE.items()}
    for length, scores in strict.items():  # strict only ever refuses
        assert all(low <= high for low, high in zip(scores, paid[length], strict=True))
        assert fmean(scores) > fmean(paid[length]) - 0.02
    assert slowest < 2
