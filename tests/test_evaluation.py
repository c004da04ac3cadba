"""Held-out accuracy: generation that depends on nothing but the row, grading, settings."""

import io
import logging
from dataclasses import replace

import pytest
from rich.console import Console

from rewards import REWARDS
from rl.evaluation import EvaluationConfig, evaluate, generate, held_out_rows
from rl.evaluation_run import results_table
from rl.graded import Generation, Measured, accuracy, grade, measured
from rl.intervals import Accuracy
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel, load
from rl.models.source import ModelSource
from rl.samplers import LowConfidence, RandomOrder
from rl.tasks.free_sudoku4 import FreeSudoku4

TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "initializer_range": 0.5,
}
SOLVED = "1234341221434321"


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return load(ModelSource(name="bert", config=TINY), training=False, seed=3)


@pytest.fixture(scope="module")
def denoiser(loaded: LoadedModel) -> ModelDenoiser:
    return ModelDenoiser.of(loaded)


def rows(count: int) -> list[dict]:
    """Prompts of different lengths, so that batches are padded."""
    return [{"id": f"r{i}", "prompt": "x" * (1 + 3 * i % 7) + str(i)} for i in range(count)]


# --- generation


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_completion_depends_on_its_row_only(
    loaded: LoadedModel, denoiser: ModelDenoiser, temperature: float
) -> None:
    """Not on batch size, row order, or the number of processes."""
    sampler = LowConfidence(steps=3, temperature=temperature)
    data = rows(7)

    def texts(batch: int, order: list[dict], rank: int = 0, world: int = 1) -> dict[str, str]:
        made = generate(
            denoiser, loaded, order, sampler, 6,
            seed=0, batch_size=batch, rank=rank, world_size=world,
        )  # fmt: skip
        return {x.id: x.completion for x in made}

    together = texts(7, data)
    assert list(together) == [row["id"] for row in data]
    assert len(set(together.values())) > 3  # the rows do differ
    assert texts(1, data) == together
    assert texts(3, data[::-1]) == together
    for world in (2, 3, 9):  # nine processes: two of them have no row
        shares = [texts(2, data, rank, world) for rank in range(world)]
        assert [list(share) for share in shares] == [
            [row["id"] for row in data[rank::world]] for rank in range(world)
        ]
        assert {k: v for share in shares for k, v in share.items()} == together


def test_sampling_differs_by_seed_repeat_and_id(
    loaded: LoadedModel, denoiser: ModelDenoiser
) -> None:
    sampler = RandomOrder(steps=6, temperature=1.0)
    same_prompt = [{"id": name, "prompt": "a"} for name in "pqrs"]

    def texts(**change: int) -> list[str]:
        settings = {"seed": 0, "repeat": 0} | change
        made = generate(denoiser, loaded, same_prompt, sampler, 6, batch_size=4, **settings)
        return [x.completion for x in made]

    assert len(set(texts())) == 4
    assert texts() == texts()
    assert texts() != texts(seed=1)
    assert texts() != texts(repeat=1)


def test_cost_and_length_are_recorded(loaded: LoadedModel, denoiser: ModelDenoiser) -> None:
    sampler = LowConfidence(steps=2, temperature=1.0)
    made = generate(denoiser, loaded, rows(5), sampler, 6, seed=0, batch_size=2)
    for x in made:
        assert (x.nfe, x.steps, x.temperature, x.score) == (2, 2, 1.0, None)
        characters = len(x.completion)
        assert x.tokens == (6 if characters == 6 else characters + 1)  # with its end token


# --- grading


def generation(name: str, text: str, score: float | None = None) -> Generation:
    return Generation(
        id=name, repeat=0, completion=text, tokens=1, nfe=1, steps=1, temperature=0.0, score=score
    )


def test_gold_scores_one_and_a_near_miss_does_not() -> None:
    """Each completion is graded with the columns of its own row, whatever the order."""
    other = SOLVED.translate(str.maketrans("12", "21"))
    data = [
        {"id": "gold", "prompt": "p", "puzzle": SOLVED[:-1] + "0"},
        {"id": "other", "prompt": "p", "puzzle": other[:-1] + "0"},
        {"id": "miss", "prompt": "p", "puzzle": SOLVED[:-1] + "0"},
    ]
    made = [
        generation("miss", SOLVED[:-1] + "2"),
        generation("gold", SOLVED),
        generation("other", other),
    ]
    graded = grade(made, data, REWARDS["sudoku"])
    assert [(x.id, x.score) for x in graded] == [("miss", 0.0), ("gold", 1.0), ("other", 1.0)]
    found = accuracy(graded)
    assert (found.correct, found.total) == (2, 3)


def test_completions_that_are_not_graded_do_not_count() -> None:
    def only_even(completion: str, number: int) -> float | None:
        return 1.0 if number % 2 == 0 else None

    data = [{"id": str(i), "prompt": "p", "number": i} for i in range(4)]
    graded = grade([generation(str(i), "") for i in range(4)], data, only_even)
    assert [x.score for x in graded] == [1.0, None, 1.0, None]
    assert accuracy(graded).total == 2


def test_partial_credit_is_not_correct() -> None:
    assert accuracy([generation("a", "", 0.9), generation("b", "", 1.0)]).correct == 1


def test_a_grader_that_fails_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def broken(completion: str) -> float:
        raise KeyError("no such column")

    with caplog.at_level(logging.WARNING, logger="rl"):
        graded = grade([generation("a", "x")], [{"id": "a", "prompt": "p"}], broken)
    assert "broken" in caplog.text
    with pytest.raises(ValueError, match="none of the 1 completions could be graded"):
        accuracy(graded)


def test_both_modes_and_how_answers_were_read() -> None:
    """One completion of each status; only the garbled one is graded apart by the two modes."""
    texts = {
        "ok": "<answer>7</answer>",
        "wrong": r"\boxed{1} no, \boxed{8}",
        "garbled": "<answer>\n\\boxed{7>",
        "template_echo": r"7 <answer>\boxed{...}</answer>",
        "truncated": r"7 <answer>\boxed{7",
        "no_answer": "it is 7",
    }
    data = [{"id": name, "prompt": "p", "answer": "7"} for name in texts]
    graded = grade([generation(name, text) for name, text in texts.items()], data, REWARDS["gsm8k"])
    assert [x.score for x in graded] == [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert [x.strict_score for x in graded] == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert [x.status for x in graded] == ["ok", "ok", *list(texts)[2:]]
    assert [x.answer for x in graded] == ["7", "8", "7", None, None, None]
    assert [x.boxes for x in graded] == [0, 2, 0, 0, 0, 0]
    found = measured(graded)
    assert (found.accuracy.correct, found.accuracy.total) == (2, 6)
    assert found.strict is not None
    assert (found.strict.correct, found.strict.total) == (1, 6)
    sixth = pytest.approx(1 / 6)
    assert found.answers == {
        "ok": pytest.approx(2 / 6), "garbled": sixth, "no_answer": sixth, "template_echo": sixth,
        "truncated": sixth, "several_boxes": sixth,
    }  # fmt: skip
    assert found.as_dict()["strict"]["correct"] == 1
    assert found.as_dict()["answers"]["garbled"] == sixth


def test_a_grader_without_modes_has_one_accuracy() -> None:
    def seven(completion: str) -> float:
        return float("7" in completion)

    found = measured(grade([generation("a", "7")], [{"id": "a", "prompt": "p"}], seven))
    assert (found.strict, found.answers) == (None, {})
    assert found.as_dict() == found.accuracy.as_dict()


def shown(found: Measured) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(results_table({"greedy": {4: found}}, "title"))
    return console.export_text()


def test_the_table_shows_what_the_grader_tells() -> None:
    half, tenth = Accuracy(correct=5, total=10), Accuracy(correct=1, total=10)
    plain = shown(Measured(accuracy=half))
    assert "50.0 %" in plain
    assert "strict" not in plain
    assert "answers" not in plain
    full = shown(Measured(accuracy=half, strict=tenth, answers={"ok": 0.9, "several_boxes": 0.25}))
    assert "10.0 %" in full
    assert "ok 90.0 %, several boxes 25.0 %" in full


# --- settings


def test_evaluate_covers_every_setting(loaded: LoadedModel, denoiser: ModelDenoiser) -> None:
    def starts_well(completion: str) -> float:
        return float(completion[:1] < "P")

    seen: list[tuple[str, int, list[str], set[float]]] = []
    data = rows(9)
    results = evaluate(
        denoiser,
        loaded,
        data,
        LowConfidence(steps=6, temperature=0.7),
        6,
        grader=starts_well,
        config=EvaluationConfig(steps=(1, 3), sampled_steps=(2,), batch_size=4, temperature=0.9),
        on_result=lambda mode, steps, made: seen.append(
            (mode, steps, [x.id for x in made], {x.temperature for x in made})
        ),
    )
    assert {mode: list(found) for mode, found in results.items()} == {
        "greedy": [1, 3],
        "sampled": [2],
    }
    assert results["greedy"][3].accuracy.total == 9
    ids = [row["id"] for row in data]
    assert seen == [
        ("greedy", 1, ids, {0.0}),
        ("greedy", 3, ids, {0.0}),
        ("sampled", 2, ids, {0.9}),
    ]


def test_without_steps_the_sampler_says() -> None:
    sampler = LowConfidence(steps=6, temperature=0.7)
    config = EvaluationConfig(prompts=50, sampled_steps=(3,), monitor_prompts=7)
    assert config.samplers(sampler)["greedy"] == {6: replace(sampler, temperature=0.0)}
    monitor = config.monitor(sampler)
    assert (monitor.prompts, monitor.steps, monitor.sampled_steps) == (7, (6,), ())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prompts": 0}, "prompts is 0; use at least 1, or null for all"),
        ({"batch_size": 0}, "batch_size is 0; use at least 1"),
        ({"every": -1}, "every is -1"),
        ({"steps": (4, 4)}, r"steps is \[4, 4\]; list different numbers from 1 up"),
        ({"sampled_steps": (0,)}, r"sampled_steps is \[0\]"),
        ({"temperature": 0.0}, "temperature is 0.0; sampled decoding needs a positive number"),
    ],
)
def test_wrong_settings(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EvaluationConfig(**settings)


def test_steps_that_do_not_fit_are_told_before_anything_runs() -> None:
    config = EvaluationConfig(steps=(4, 32))
    with pytest.raises(ValueError, match=r"evaluation\.steps: steps 32 do not fit"):
        config.validate(LowConfidence(steps=4), 16)
    EvaluationConfig(steps=(4, 16)).validate(LowConfidence(steps=4), 16)


def test_held_out_rows_are_the_tasks_test_rows() -> None:
    task = FreeSudoku4()
    assert held_out_rows(task, 5) == task.rows("test", limit=5)

    class Twins(FreeSudoku4):
        def rows(self, split, limit=None, seed=0):
            return [{"id": "a", "prompt": "p"}, {"id": "a", "prompt": "q"}]

    with pytest.raises(ValueError, match="2 test rows have 1 different ids"):
        held_out_rows(Twins(), None)
