"""The `rollout:` section: what binds, what does not fit, and a run on recorded pairs."""

import json
from pathlib import Path

import pytest

import rl.train
from rl.models.tiny_checkpoint import make_tiny_checkpoint
from rl.provenance import resolved, write_resolved
from rl.recipe import Recipe, RecipeError, known_names, load_recipe
from rl.recipe_checks import check_recipe
from rl.rollout_schemes import Independent, Intermediate, Recorded, Tree

PLAIN = """\
model: {name: roberta_prelayernorm, path: tiny}
task: {name: free_sudoku4, train_size: 16, test_size: 8, validation_size: 4}
rewards: [sudoku]
sampler: {name: low_confidence, steps: 4}
estimator: {name: trajectory, segments: 2}
objective: clipped
trainer:
  output_dir: out
  max_steps: 2
  per_device_train_batch_size: 8
  num_generations: 4
  max_completion_length: 16
"""
PAIRS = """\
model: {name: roberta_prelayernorm, path: tiny}
task: {name: preference_pairs, path: pairs.jsonl}
rollout: recorded
estimator: {name: elbo, samples: 2}
objective: preference
trainer:
  output_dir: out
  max_steps: 2
  per_device_train_batch_size: 4
  num_generations: 2
  max_completion_length: 16
"""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_checkpoint("roberta_prelayernorm", tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    Path("tiny").symlink_to(checkpoint)
    Path("R.yaml").write_text(PLAIN)
    Path("P.yaml").write_text(PAIRS)
    pairs = [{"prompt": f"{i}:", "chosen": f"{i} yes", "rejected": f"{i} no"} for i in range(8)]
    Path("pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    return tmp_path


def problems(*arguments: str) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        check_recipe(load_recipe(arguments[0], arguments[1:]))
    return list(caught.value.problems)


def test_the_section_is_optional_and_resolved() -> None:
    plain = load_recipe("R.yaml")
    assert plain.rollout == Independent()
    assert resolved(plain)["rollout"] == {"name": "independent"}
    tree = load_recipe("R.yaml", ["rollout={name: tree, branching: [2, 2]}"])
    assert tree.rollout == Tree(branching=(2, 2))
    path = write_resolved(tree, "out")
    assert load_recipe(path).rollout == tree.rollout
    assert load_recipe("R.yaml", ["rollout={name: intermediate, kept: 2}"]).rollout == (
        Intermediate(kept=2)
    )
    assert known_names("rollouts") == ["independent", "tree", "intermediate", "inpaint", "recorded"]


def test_recorded_needs_neither_sampler_nor_rewards() -> None:
    recipe = load_recipe("P.yaml")
    check_recipe(recipe)
    assert recipe.rollout == Recorded()
    assert (recipe.sampler, recipe.rewards, recipe.advantage) == (None, (), None)
    again: Recipe = load_recipe(write_resolved(recipe, "out"))
    assert resolved(again) == resolved(recipe)


WRONG = {
    "rollout=tre": "command line: rollout: unknown rollout 'tre'; did you mean 'tree'? ...",
    "rollout={name: tree, part: [2]}": "command line: rollout.part: unknown key; did you mean ...",
    "rollout={name: tree, branching: [1]}": "command line: rollout: branching is [1]; use one ...",
    "rollout={name: tree}": "R.yaml: rollout: branching [4, 4] gives 16 completions per prompt, "
    "but trainer.num_generations is 4; make them equal, for example by "
    "trainer.num_generations=16",
    "rollout=intermediate": "R.yaml: rollout: kept is 8, but sampler.steps is 4; use at most 4",
    "rollout=recorded": "R.yaml: rewards: leave this section out: rollout Recorded brings the "
    "rewards with the completions; ...",
}


@pytest.mark.parametrize("override", WRONG)
def test_what_does_not_fit(override: str) -> None:
    told = [line for line in problems("R.yaml", override) if "sampler:" not in line]
    sentence = WRONG[override]
    start = sentence.removesuffix("...")
    assert told[0].startswith(start) if sentence != start else told == [sentence]


def test_sections_that_would_be_ignored_are_all_told() -> None:
    advantage = "advantage={scale: none}"
    assert problems("R.yaml", "rollout=recorded", advantage) == [
        "R.yaml: sampler: leave this section out: rollout Recorded writes no completions, and "
        "there is no evaluation",
        "R.yaml: rewards: leave this section out: rollout Recorded brings the rewards with the "
        "completions; they are in task preference_pairs or preference_labels, as in "
        "recipes/llada_8b_vrpo.yaml",
        "command line: advantage: leave this section out: rollout Recorded does not compare "
        "completions",
    ]


def test_a_tree_is_written_by_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = "rollout={name: tree, branching: [2, 2]}"
    check_recipe(load_recipe("R.yaml", [tree]))
    monkeypatch.setenv("WORLD_SIZE", "2")
    sizes = ["trainer.per_device_train_batch_size=2", "trainer.gradient_accumulation_steps=1"]
    assert problems("R.yaml", tree, *sizes) == [
        "R.yaml: rollout: the 4 completions of a prompt must be written by one process, which "
        "writes 2 a rollout; make that a multiple of 4 (per_device_train_batch_size x "
        "steps_per_generation, or generation_batch_size / processes)"
    ]
    check_recipe(load_recipe("R.yaml", [tree, sizes[0], "trainer.steps_per_generation=2"]))
    total = "trainer.generation_batch_size=4"
    assert "writes 2 a rollout" in problems("R.yaml", tree, total)[0]


def test_what_follows_a_sampler_cannot_follow_a_file() -> None:
    (told,) = problems("P.yaml", "estimator={name: trajectory, segments: 2}")
    assert told.startswith(
        "P.yaml: rollout: Trajectory cannot score completions that no sampler wrote ("
    )
    assert told.endswith("; use an estimator that draws its own masks, such as elbo")


def test_pairs_have_no_answers_to_evaluate(capsys: pytest.CaptureFixture[str]) -> None:
    sampler = "sampler={name: low_confidence, steps: 4}"
    with pytest.raises(SystemExit):
        rl.train.main(["P.yaml", sampler, "evaluation={prompts: 2}"])
    assert "task preference_pairs has no right answers to grade" in _flat(capsys)


def _flat(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


def test_a_run_on_pairs_from_the_command_line() -> None:
    assert rl.train.main(["P.yaml"]) == 0
    history = json.loads(Path("out/log_history.json").read_text())
    assert [x["preference/margin"] == 0 for x in history if "loss" in x] == [True, False]
    assert Path("out/model.safetensors").exists()
    lines = Path("out/completions/step_000001_rank_0.jsonl").read_text().splitlines()
    logged = [json.loads(line) for line in lines]
    assert [x["completion"][2:] for x in logged] == ["yes", "no"] * 2
    assert [x["advantage"] for x in logged] == [1.0, -1.0] * 2


BAD_DATA = {
    "trainer.max_completion_length=4": "row 'train-0': a completion has 5 tokens, more than "
    "trainer.max_completion_length 4 (8 of 8 rows have one)",
    "trainer.num_generations=4": "row 'train-0' has 2 recorded completions and "
    "trainer.num_generations is 4; set it to 2",
    "task={name: free_sudoku4}": "has no recorded completions (its columns: completion, id, "
    "prompt, puzzle); use task preference_pairs or preference_labels, as in "
    "recipes/llada_8b_vrpo.yaml",
}


@pytest.mark.parametrize("override", BAD_DATA)
def test_data_that_does_not_fit_stops_before_training(
    capsys: pytest.CaptureFixture[str], override: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        rl.train.main(["P.yaml", override])
    assert stop.value.code == 2
    assert BAD_DATA[override] in _flat(capsys)


def test_long_completions_may_be_cut_by_an_explicit_setting() -> None:
    arguments = ["trainer.max_completion_length=4", "rollout={name: recorded, too_long: truncate}"]
    assert rl.train.main(["P.yaml", *arguments]) == 0
