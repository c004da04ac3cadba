"""What is asked before a model is loaded, and what is written beside the results."""

import subprocess
from pathlib import Path

import pytest

from rl import provenance
from rl.provenance import RESOLVED, resolved, write_resolved
from rl.recipe import Recipe, RecipeError, load_recipe
from rl.recipe_checks import check_recipe
from rl.recipe_yaml import parse

TEXT = """
model: {name: llada, config: {hidden_size: 64}, lora: {r: 8, alpha: 16}}
task: {name: free_sudoku4, min_empty: 12}
rewards: [sudoku, {name: "mine.py:score", weight: 0.5, bonus: 1}]
sampler: {name: low_confidence, steps: 8, block_length: 16}
method: diffu_grpo
trainer:
  output_dir: out
  num_generations: 4
  max_completion_length: 16
  per_device_train_batch_size: 8
  save_strategy: no
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    (tmp_path / "R.yaml").write_text(TEXT)
    (tmp_path / "mine.py").write_text("def score(completion, bonus=0):\n    return 1.0 + bonus\n")
    return tmp_path


def load(*overrides: str) -> Recipe:
    return load_recipe("R.yaml", overrides)


def problems(recipe: Recipe, **allowed: bool) -> tuple[str, ...]:
    with pytest.raises(RecipeError) as caught:
        check_recipe(recipe, **allowed)
    return caught.value.problems


@pytest.mark.usefixtures("here")
def test_a_good_recipe_passes() -> None:
    check_recipe(load())


CHECKS = {
    "sampler.steps=5 sampler.block_length=8": "R.yaml: sampler: steps 5 do not fit 2 blocks of 8 "
    "tokens; use a multiple of 2 from 2 to 16",
    "trainer.max_completion_length=24": "R.yaml: sampler: block_length 16 does not divide "
    "max_completion_length 24; use a divisor of 24",
    "trainer.num_generations=6": "R.yaml: trainer.num_generations: 8 completions a rollout "
    "(per_device_train_batch_size 8 x 1 process x gradient_accumulation_steps 1) are not whole "
    "groups of 6; num_generations may be 2, 4, 8 here, or make the product a multiple of 6",
    "trainer.num_generations=6 trainer.generation_batch_size=8": "R.yaml: trainer.num_generations: "
    "8 completions a rollout (generation_batch_size) are not whole groups of 6; num_generations "
    "may be 2, 4, 8 here, or make the product a multiple of 6",
    "trainer.num_generations=1": "R.yaml: trainer.num_generations: 1 completion per prompt has "
    "nothing to be compared with; use >= 2",
    "trainer.output_dir=null": "R.yaml: trainer.output_dir: missing; a run needs a folder for its "
    "checkpoints and logs",
    "model.config=null model.path=./nope": "R.yaml: model.path: there is no './nope' (looked in "
    "HERE)",
    "model.config=null model.path=out/nope": "R.yaml: model.path: there is no 'out/nope' (looked "
    "in HERE)",
    "task={name: gsm8k, path: data/gsm8k.jsonl}": "R.yaml: task: task 'gsm8k': there is nothing "
    "at 'data/gsm8k.jsonl'. ...",
    "task.min_empty=15": "R.yaml: task: task 'free_sudoku4': ...",
    "model.path=a/b": "R.yaml: model: path is 'a/b' and config is {'hidden_size': 64}; give ...",
}


@pytest.mark.parametrize("overrides", CHECKS)
def test_what_does_not_fit_together(here: Path, overrides: str) -> None:
    (here / "out").mkdir()
    given = [overrides] if "{" in overrides else overrides.split(" ")
    (told,) = problems(load(*given))
    sentence = CHECKS[overrides].replace("HERE", str(here))
    start = sentence.removesuffix("...")
    assert told == sentence if start == sentence else told.startswith(start)


SPLIT = ["trainer.per_device_train_batch_size=2", "trainer.gradient_accumulation_steps=4"]


@pytest.mark.usefixtures("here")
def test_a_loss_over_groups_needs_them_in_one_micro_batch() -> None:
    check_recipe(load(*SPLIT))
    assert problems(load(*SPLIT, "objective={name: preference}")) == (
        "R.yaml: trainer.per_device_train_batch_size: 2 completions are not whole groups of "
        "num_generations 4, which objective preference compares within a micro-batch; use a "
        "multiple of 4",
    )
    check_recipe(load("objective={name: preference}"))


@pytest.mark.usefixtures("here")
def test_weights_of_completions_need_one_text_of_each() -> None:
    intermediate = "rollout={name: intermediate, kept: 3}"
    assert problems(load("objective={name: weighted}", intermediate)) == (
        "R.yaml: objective: weighted weighs the completions of a prompt against each other, but "
        "rollout intermediate learns from 3 texts of each; use another rollout or objective",
    )
    check_recipe(load("objective={name: weighted}"))


@pytest.mark.usefixtures("here")
def test_a_backward_mode_that_would_not_be_exact_is_refused() -> None:
    """d1's KL of type k3 depends on the current log-probs; without it, all updates are first."""
    (told,) = problems(load("trainer.backward=linear"))
    assert told.startswith("R.yaml: trainer.backward: linear is not exact here, because")
    first = ["trainer.backward=linear", "objective.beta=0", "trainer.num_iterations=1"]
    check_recipe(load(*first))
    (told,) = problems(
        load("trainer.backward=linear", "objective.beta=0", "trainer.num_iterations=2")
    )
    assert "linear is not exact here" in told
    (told,) = problems(load("trainer.backward=replay", "trainer.disable_dropout=false"))
    assert told.startswith("R.yaml: trainer.backward: replay scores every view twice")
    with pytest.raises(RecipeError, match=r"trainer\.backward"):
        load("trainer.backward=twice")


@pytest.mark.usefixtures("here")
def test_hub_ids_are_left_to_the_hub() -> None:
    check_recipe(load("model.config=null", "model.path=GSAI-ML/LLaDA-8B-Instruct"))


@pytest.mark.usefixtures("here")
def test_the_rollout_is_that_of_all_processes(monkeypatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    check_recipe(load("trainer.num_generations=6"))
    assert problems(load("trainer.num_generations=16", "trainer.steps_per_generation=3")) == (
        "R.yaml: trainer.num_generations: 72 completions a rollout (per_device_train_batch_size 8 "
        "x 3 processes x steps_per_generation 3) are not whole groups of 16; num_generations may "
        "be 2, 3, 4, 6, 8, 9, 12, 18, 24, 36, 72 here, or make the product a multiple of 16",
    )


@pytest.mark.usefixtures("here")
def test_checks_are_told_together_and_evaluation_needs_fewer() -> None:
    recipe = load("trainer.num_generations=3", "sampler.steps=5", "sampler.block_length=8")
    assert [p.split(":")[1] for p in problems(recipe)] == [" sampler", " trainer.num_generations"]
    assert [p.split(":")[1] for p in problems(recipe, training=False)] == [" sampler"]


def test_another_run_is_not_written_over(here: Path) -> None:
    write_resolved(load(), "out")
    check_recipe(load())  # the same run, and nothing to lose yet
    with pytest.raises(RecipeError, match="'out' holds no checkpoint to go on from; leave out"):
        check_recipe(load(), resume=True)
    other = load("trainer.seed=1", "estimator.prompt_mask_prob=0")
    choices = "continue it with --resume, start anew with --overwrite, or choose another folder"
    assert problems(other) == (
        "R.yaml: trainer.output_dir: 'out' holds a run with another estimator, trainer "
        f"(see out/{RESOLVED}); {choices}",
    )
    (here / "out" / "checkpoint-10").mkdir()
    assert problems(load()) == (
        f"R.yaml: trainer.output_dir: 'out' already holds checkpoint-10; {choices}",
    )
    with pytest.raises(RecipeError, match="'out' holds no checkpoint to go on from"):
        check_recipe(load(), resume=True)  # a half-written one does not count
    check_recipe(load(), overwrite=True)
    with pytest.raises(RecipeError, match="--overwrite would remove 'out/checkpoint-10'"):
        check_recipe(load("model={name: llada, path: out/checkpoint-10}"), overwrite=True)
    resume = "trainer.resume_from_checkpoint=out/checkpoint-10"
    assert problems(load(resume)) == (
        "R.yaml: trainer.resume_from_checkpoint: 'out/checkpoint-10' is no checkpoint of a trainer "
        "(it has no trainer_state.json); give a folder OUTPUT_DIR/checkpoint-N",
    )
    (here / "out" / "checkpoint-10" / "trainer_state.json").write_text("{}")
    check_recipe(load(resume))
    check_recipe(load(), resume=True)


def test_overwriting_leaves_nothing_that_could_be_taken_for_the_new_run(here: Path) -> None:
    write_resolved(load(), "out", overwrite=True)  # with nothing there
    for name in ("checkpoint-10", "completions", "mine"):
        (here / "out" / name).mkdir()
        (here / "out" / name / "file").touch()
    write_resolved(load(), "out")
    assert (here / "out/checkpoint-10/file").exists()
    write_resolved(load(), "out", overwrite=True)
    assert sorted(path.name for path in (here / "out").iterdir()) == ["mine", RESOLVED]


def test_a_resolved_recipe_is_a_recipe(here: Path, monkeypatch) -> None:
    first = load("trainer.learning_rate=2e-6")
    path = write_resolved(first, here / "out")
    document = parse(path.read_text())
    assert document["estimator"]["prompt_mask_prob"] == 0.15
    assert document["model"]["lora"]["dropout"] == 0.0  # a default, nested
    assert document["trainer"]["save_strategy"] == "no"
    assert "evaluation" not in document  # the recipe asks for none
    assert resolved(load("evaluation.every=5"))["evaluation"]["prompts"] == 1000
    assert document["provenance"]["torch"].startswith("2.")
    sections = resolved(first)
    monkeypatch.chdir(here.parent)  # the plug-in is found from anywhere
    again = load_recipe(path)
    assert resolved(again) == sections
    assert (again.estimator, again.task, again.sampler) == (
        first.estimator,
        first.task,
        first.sampler,
    )
    assert not list(path.parent.glob("*.part"))


def test_the_commit_is_that_of_these_sources_only(tmp_path: Path, monkeypatch) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=n", "-c", "user.email=e"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    source = tmp_path / "provenance.py"
    source.write_text("x = 1\n")
    monkeypatch.setattr(provenance, "__file__", str(source))
    (tmp_path / "theirs.py").touch()
    git("init", "-q")
    git("add", "theirs.py")
    git("commit", "-qm", "m")
    assert provenance._git_commit() is None  # not tracked: a wheel in somebody's repository
    git("add", "provenance.py")
    git("commit", "-qm", "m")
    commit = git("rev-parse", "HEAD")
    assert provenance._git_commit() == commit
    source.write_text("x = 2\n")
    assert provenance._git_commit() == f"{commit}+changes"
