"""Every kind of fault that is known has further inputs of ours; one input is no proof."""

from collections import Counter
from pathlib import Path

from rewards.cases import Case, read_cases

OWN = Path(__file__).parent / "cases"
ENOUGH = 4


def own_cases() -> list[Case]:
    return [case for file in sorted(OWN.glob("*.jsonl")) for case in read_cases(file)]


def test_every_kind_has_four_further_cases(shared_cases: Path) -> None:
    given = read_cases(shared_cases / "reward_cases.jsonl")
    texts = {(case.completion, str(case.columns)) for case in given}
    further = [case for case in own_cases() if (case.completion, str(case.columns)) not in texts]
    found = Counter(case.kind for case in further)
    few = {kind: found[kind] for kind in {case.kind for case in given} if found[kind] < ENOUGH}
    assert few == {}


def test_no_id_is_there_twice() -> None:
    ids = Counter(case.id for case in own_cases())
    assert [name for name, count in ids.items() if count > 1] == []
