import functools

import pytest

from rewards import REWARDS, per_completion, required_columns, with_batch
from rewards.values import Failed


def length_is(completion: str, answer: int, bonus: float = 0.0) -> float:
    """Right if it has so many characters."""
    return float(len(completion) == answer) + bonus


def test_each_row_gets_its_own_column_values():
    reward = per_completion(length_is)
    assert reward(["p", "q"], ["abc", "abc"], answer=[3, 4], bonus=[0.0, 0.5]) == [1.0, 0.5]


def test_name_and_docstring_are_the_graders():
    reward = per_completion(length_is)
    assert reward.__name__ == "length_is"
    assert reward.__doc__ == "Right if it has so many characters."
    for score in REWARDS.values():
        assert per_completion(score).__name__ == score.__name__


def test_a_grader_without_a_name_is_named_after_its_type():
    assert per_completion(functools.partial(length_is, answer=3)).__name__ == "partial"


def test_trl_call_with_conversations_and_extras():
    reward = per_completion(length_is)
    values = reward(
        prompts=[[{"role": "user", "content": "?"}]] * 2,
        completions=[
            [{"role": "assistant", "content": "abc"}],
            [{"role": "assistant", "content": ""}],
        ],
        completion_ids=[[1], [2]],
        trainer_state=object(),
        log_extra=print,
        log_metric=print,
        environments=None,
        answer=[3, 3],
        difficulty=["easy", "hard"],
    )
    assert values == [1.0, 0.0]


def test_a_value_that_is_no_list_holds_for_every_row():
    assert per_completion(length_is)(["p", "q"], ["a", "bb"], answer=1) == [1.0, 0.0]


def test_a_row_without_the_column_is_skipped_not_failed():
    assert per_completion(length_is)(["p"] * 3, ["a", "b", "cc"], answer=[1, None, 1]) == [
        1.0,
        None,
        0.0,
    ]


def test_open_ended_graders_get_the_data_columns_and_the_prompt_but_no_extras():
    seen = []

    def spy(completion: str, **columns: object) -> float:
        seen.append(columns)
        return 1.0

    per_completion(spy)(["p"], ["c"], answer=["x"], trainer_state=object(), completion_ids=[[1]])
    assert seen == [{"prompt": "p", "answer": "x"}]


def test_missing_column_names_what_is_there():
    with pytest.raises(ValueError, match=r"'length_is' needs the column 'answer'.*gold, prompt"):
        per_completion(length_is)(["p"], ["c"], gold=["x"], trainer_state=None)


def test_column_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"'answer' has 1 values for 2 completions"):
        per_completion(length_is)(["p", "q"], ["c", "d"], answer=[1])


def test_completion_that_is_no_text_is_shown():
    with pytest.raises(ValueError, match=r"got \[\{'role': 'assistant'\}\]"):
        per_completion(length_is)(["p"], [[{"role": "assistant"}]], answer=[1])


def test_grader_without_a_parameter_is_refused():
    with pytest.raises(ValueError, match="takes no argument"):
        per_completion(lambda: 1.0)


def test_batch_form_scores_the_rows_that_apply_in_one_call():
    calls = []

    def many(completions: list[str], answer: list[str]) -> list[float | None]:
        calls.append(completions)
        return [float(c == a) for c, a in zip(completions, answer, strict=True)]

    @with_batch(many)
    def same(completion: str, answer: str) -> float | None:
        return many([completion], [answer])[0]

    values = per_completion(same)(["p"] * 3, ["a", "b", "c"], answer=["a", None, "x"])
    assert values == [1.0, None, 0.0]
    assert calls == [["a", "c"]]


@pytest.mark.parametrize("in_batches", [False, True])
def test_a_grading_that_raises_costs_one_completion_where_the_rest_survives(in_batches: bool):
    def inverse(completion: str, answer: int) -> float:
        return answer / int(completion)

    if in_batches:
        with_batch(lambda texts, answer: list(map(inverse, texts, answer)))(inverse)
    arguments = (["p"] * 3, ["1", "0", "2"])
    one, failed, two = per_completion(inverse, survives=True)(*arguments, answer=[1, 2, 3])
    assert (one, two) == (1.0, 1.5)
    assert failed == Failed("exceptions", "raised ZeroDivisionError: division by zero")
    with pytest.raises(ZeroDivisionError):
        per_completion(inverse)(*arguments, answer=[1, 2, 3])


def test_required_columns():
    assert required_columns(length_is) == ("answer",)
    assert required_columns(REWARDS["countdown"]) == ("numbers", "target")
    assert required_columns(REWARDS["math"]) == ("answer",)
    assert required_columns(REWARDS["xml_count"]) == ()
