"""The list of faults that the tests must catch, and the script that plants them."""

import pytest

from scripts.mutation_check import ROOT, Mutation, mutations, survivors

FAULTS = mutations()


def test_there_are_enough_of_them() -> None:
    assert len(FAULTS) >= 12
    assert len({fault.file for fault in FAULTS}) >= 8


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_can_be_planted(fault: Mutation) -> None:
    clean = (ROOT / fault.file).read_text(encoding="utf-8")
    assert fault.planted(clean) != clean
    assert [test for test in fault.tests if not (ROOT / test).is_file()] == []


def test_a_fault_that_has_no_place_is_an_error() -> None:
    fault = Mutation(name="n", file="f", old="x", new="y", tests=())
    with pytest.raises(ValueError, match="stands 2 times in f"):
        fault.planted("x = x")


@pytest.mark.slow
def test_a_fault_that_no_test_sees_survives() -> None:
    caught = Mutation(
        name="k2 without its half", file="rl/kl.py", old="d.square() / 2", new="d.square()",
        tests=("tests/test_kl.py",),
    )  # fmt: skip
    unseen = Mutation(
        name="a comment", file="rl/kl.py", old="Elementwise; same shape", new="Same shape",
        tests=("tests/test_kl.py",),
    )  # fmt: skip
    assert survivors([caught, unseen]) == [unseen]
