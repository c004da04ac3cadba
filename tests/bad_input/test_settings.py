"""What a user can get wrong: one sentence with the value, what is allowed and the fix; exit code 2.

Through the command lines, so that an exception nobody thought of fails the test.
"""

from pathlib import Path

import pytest

import rl.train

from .conftest import MAIN, told

CHOICES = "continue it with --resume, start anew with --overwrite, or choose another folder"


OVERRIDES = {
    "trainer.learning_rat=1": "command line: trainer.learning_rat: unknown key; did you mean "
    "'learning_rate'? It is none of the",
    "task=free_sudoko4": "command line: task: unknown task 'free_sudoko4'; did you mean "
    "'free_sudoku4'? Known:",
    "rewards=[{name: sudoku, weigt: 2}]": "command line: rewards.0.weigt: unknown key; did you "
    "mean 'weight'? Known:",
    "rewards=[{name: sudoku, weight: .nan}]": "command line: rewards.0.weight: is nan; use a "
    "finite number",
    "foo": "command line: foo: an override is key.sub=value, as in trainer.learning_rate=1e-6",
    "trainer.temperature=1": "command line: trainer.temperature: cannot be set here: it belongs to "
    "the sampler: set it in the `sampler:` section",
    "trainer.beta=0.1": "command line: trainer.beta: cannot be set here: it belongs to the "
    "objective: set it in the `objective:` section",
    "trainer.eval_strategy=steps": "command line: trainer.eval_strategy: cannot be set here: "
    "held-out accuracy is measured by the `evaluation:` section, as evaluation.every says",
    "model.path=out/model": "R.yaml: model.path: there is no 'out/model' (looked in HERE)",
    "task={name: gsm8k, path: nope.jsonl}": "R.yaml: task: task 'gsm8k': there is nothing at "
    "'nope.jsonl'. A folder with",
    "rewards=[nope.py:f]": "command line: rewards.0: no file 'nope.py'; looked for",
    "sampler.steps=3 sampler.block_length=8": "R.yaml: sampler: steps 3 do not fit 2 blocks of 8 "
    "tokens; use a multiple of 2 from 2 to 16",
    "sampler.temperature=0": "R.yaml: sampler.temperature: 0 writes the same completion "
    "num_generations times, and nothing can be compared; use a positive number",
    "evaluation.steps=[32]": "evaluation.steps: steps 32 do not fit 1 blocks of 16 tokens; use a "
    "multiple of 1 from 1 to 16",
    "trainer.num_generations=3": "R.yaml: trainer.num_generations: 8 completions a rollout "
    "(per_device_train_batch_size 8 x 1 process x gradient_accumulation_steps 1) are not whole "
    "groups of 3; num_generations may be 2, 4, 8 here, or make the product a multiple of 3",
    "trainer.max_completion_length=0": "R.yaml: trainer.max_completion_length: 0; use at least 1",
    "trainer.max_completion_length=null": "R.yaml: trainer.max_completion_length: null; use at "
    "least 1",
    "trainer.per_device_train_batch_size=0": "R.yaml: trainer.per_device_train_batch_size: 0; use "
    "at least 1",
    "trainer.gradient_accumulation_steps=0": "R.yaml: trainer.gradient_accumulation_steps: 0; use "
    "at least 1",
    "trainer.num_iterations=0": "R.yaml: trainer.num_iterations: 0; use at least 1",
    "trainer.learning_rate=-1": "R.yaml: trainer.learning_rate: -1.0; use at least 0",
    "trainer.max_steps=0": "R.yaml: trainer.max_steps: 0; use a number of optimizer steps, or -1",
    "trainer.gradient_accumulation_steps=3 trainer.steps_per_generation=2": "trainer: an optimizer "
    "step takes gradient_accumulation_steps 3 micro-batches, but a rollout gives "
    "steps_per_generation 2 x num_iterations 1; make that a multiple",
    "trainer.resume_from_checkpoint=tiny": "R.yaml: trainer.resume_from_checkpoint: 'tiny' is no "
    "checkpoint of a trainer (it has no trainer_state.json); give a folder OUTPUT_DIR/checkpoint-N",
    "trainer.report_to=foo": "trainer: foo is not supported, only",
    "trainer.output_dir=R.yaml": "R.yaml: trainer.output_dir: nothing can be written to 'R.yaml' "
    "(File exists); name a folder that you may make and write to",
    "trainer.output_dir=/proc/nope": "R.yaml: trainer.output_dir: nothing can be written to "
    "'/proc/nope' (No such file or directory)",
    "task.train_size=1": "the task has 1 training prompts, but one rollout takes 2; use more "
    "prompts or a smaller generation batch",
    "task.train_size=0": "the task has 0 training prompts, but one rollout takes 2; use more",
    "trainer.max_completion_length=600": "the longest prompt has 18 tokens and "
    "max_completion_length is 600, but the model has 256 positions; lower "
    "trainer.max_completion_length",
    "model.lora={r: 4, alpha: 8, targets: [q_proj]}": "model.lora.targets: 'q_proj' matches no "
    "linear module of RobertaPreLayerNormForMaskedLM (roberta_prelayernorm). Its linear modules "
    "end in: decoder, dense, key, query, value.",
    "rewards=[r.py:short]": "reward short returned 1 values for 2 completions; it must return one "
    "float or None for each",
    "rewards=[r.py:raises]": "a trial call on 2 prompts of the task failed: reward raises raised "
    "KeyError: 'foo'",
    "rewards=[r.py:nan]": "a trial call on 2 prompts of the task failed: reward nan returned nan",
    "rewards=[r.py:text]": "reward text returned 'good' for a completion; each value must be a "
    "float or None",
    "rewards=[r.py:leaves]": "reward leaves raised SystemExit: 3",
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("overrides", OVERRIDES)
def test_a_mistake_in_one_setting(overrides: str, capsys) -> None:
    """One sentence each; `a.b=1 c.d=2` are two overrides."""
    arguments = overrides.split(" ") if overrides.count("=") > 1 else [overrides]
    arguments = arguments if "{" not in overrides else [overrides]
    said = told(capsys, "train", "R.yaml", *arguments)
    assert OVERRIDES[overrides] in said
    assert "\n" not in said


@pytest.mark.usefixtures("here")
def test_groups_are_counted_over_all_processes(capsys, monkeypatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert (
        "16 completions a rollout (per_device_train_batch_size 8 x 2 processes x "
        "gradient_accumulation_steps 1) are not whole groups of 3"
    ) in told(capsys, "train", "R.yaml", "trainer.num_generations=3")


FILES = {
    "": "F.yaml: a recipe is a mapping of sections (model:, task:, ...)",
    "- a\n": "F.yaml: a recipe is a mapping of sections (model:, task:, ...)",
    "model: {name: bert\ntask: [\n": "F.yaml: line 2, column 5: expected ',' or '}', but got ':'",
    "model: bert\nmodel: llada\n": "F.yaml: line 2, column 1: the key 'model' is given twice",
    "\xff": "F.yaml: not a text file in UTF-8 (invalid start byte)",
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", MAIN)
@pytest.mark.parametrize("text", FILES)
def test_a_file_that_is_no_recipe(command: str, text: str, capsys) -> None:
    Path("F.yaml").write_bytes(text.encode("latin-1"))
    assert told(capsys, command, "F.yaml") == FILES[text]


@pytest.mark.usefixtures("here")
def test_a_recipe_that_is_not_there_or_for_another_command(capsys) -> None:
    missing = "nope.yaml: no such recipe. There are: R.yaml, S.yaml."
    assert told(capsys, "train", "nope.yaml") == missing
    assert told(capsys, "train", "S.yaml") == (
        "S.yaml is a recipe of kind sft: python -m rl.sft S.yaml"
    )
    assert told(capsys, "sft", "R.yaml") == (
        "R.yaml is a recipe of kind grpo: python -m rl.train R.yaml"
    )
    assert told(capsys, "train").startswith("which recipe? For example: python -m rl.train")


def test_names_are_listed(capsys) -> None:
    kinds = "methods, estimators, objectives, samplers, rollouts, models, tasks, rewards"
    for kind in kinds.split(", "):
        assert rl.train.main(["--list", kind]) == 0
        assert capsys.readouterr().out.split()
    assert told(capsys, "train", "--list") == f"which list? Known: {kinds}."
    assert told(capsys, "train", "--list", "reward") == (
        f"unknown list 'reward'; did you mean 'rewards'? Known: {kinds}."
    )


@pytest.mark.usefixtures("here")
def test_an_output_folder_that_holds_something_else(capsys) -> None:
    Path("out").mkdir()
    record = Path("out/resolved_recipe.yaml")
    record.write_text("kind: sft\n")
    said = told(capsys, "train", "R.yaml")
    assert said.startswith("R.yaml: trainer.output_dir: 'out' holds a run with another kind, ")
    assert said.endswith(CHOICES)
    record.write_text("{nope: [")
    assert told(capsys, "train", "R.yaml").endswith(
        f"so it does not say which run is there; {CHOICES}"
    )
    assert told(capsys, "train", "R.yaml", "--resume", "trainer.seed=1") == (
        "R.yaml: trainer.output_dir: 'out' holds no checkpoint to go on from; leave out --resume"
    )


@pytest.mark.usefixtures("here")
def test_supervised_training_and_evaluation_check_the_same_way(capsys) -> None:
    assert told(capsys, "sft", "S.yaml", "trainer.per_device_train_batch_size=0") == (
        "S.yaml: trainer.per_device_train_batch_size: 0; use at least 1"
    )
    assert "its completion has 16 tokens, more than sft.pad_to = 4" in told(
        capsys, "sft", "S.yaml", "sft.pad_to=4"
    )
    assert "there is no '/nope'" in told(capsys, "evaluate", "R.yaml", "model.path=/nope")
    out = ("--out", "e")
    assert told(capsys, "evaluate", "R.yaml", "evaluation.steps=[32]", *out) == (
        "evaluation.steps: steps 32 do not fit 1 blocks of 16 tokens; use a multiple of 1 from 1 "
        "to 16"
    )
    said = told(capsys, "evaluate", "R.yaml", *out, "trainer.max_completion_length=600")
    assert said == (
        "the longest prompt to evaluate has 18 tokens and a completion 600, but the model has 256 "
        "positions; make completions shorter (trainer.max_completion_length, or sft.pad_to)"
    )
    assert "nothing can be written to 'R.yaml'" in told(
        capsys, "evaluate", "R.yaml", "--out", "R.yaml"
    )
