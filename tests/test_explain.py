"""`--explain`: what a recipe does and costs, told without its model."""

from pathlib import Path

import pytest

import rl.train
from rl.costs import phases
from rl.recipe import Recipe, load_recipe

ROOT = Path(__file__).parents[1]
RECIPE = """\
model: {name: bert, path: nowhere/at-all}
task: free_sudoku4
rewards: [sudoku]
sampler: {steps: 4}
trainer:
  output_dir: out
  per_device_train_batch_size: 8
  num_generations: 4
  max_completion_length: 16
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("R.yaml").write_text(RECIPE)
    return tmp_path


def recipe(*overrides: str) -> Recipe:
    return load_recipe("R.yaml", overrides)


def costs(*overrides: str) -> dict[str, int]:
    return {phase.name: phase.forwards for phase in phases(recipe(*overrides))}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        # one view, twelve passes under fresh masks, KL to the reference
        (
            ["method=diffu_grpo"],
            {"rollout": 4, "old policy": 12, "reference": 12, "update": 12},
        ),
        # two pairs of views; the first of eight passes needs no old policy, but shares its storage
        (
            ["method=espo"],
            {"rollout": 4, "old policy": 32, "reference": 32, "replay": 32, "update": 32},
        ),
        # no ratio and no KL: neither old nor reference; linear, so nothing is replayed
        (
            ["method=wd1", "estimator={name: elbo, samples: 3}"],
            {"rollout": 4, "old policy": 0, "reference": 0, "update": 36},
        ),
        # an upper bound is not linear in the scores
        (
            ["method=spg"],
            {"rollout": 4, "old policy": 0, "reference": 0, "replay": 8, "update": 8},
        ),
        (
            ["method=spg", "trainer.backward=joint"],
            {"rollout": 4, "old policy": 0, "reference": 0, "update": 8},
        ),
        # on-policy: linear with a ratio too
        (
            ["method=bgpo"],
            {"rollout": 4, "old policy": 0, "reference": 0, "update": 16},
        ),
        # ... but not in the second pass
        (
            ["method=bgpo", "trainer.num_iterations=2"],
            {"rollout": 4, "old policy": 32, "reference": 0, "replay": 16, "update": 32},
        ),
        # one set of masks for both passes
        (
            ["method=bgpo", "trainer.num_iterations=2", "trainer.fresh_masks=false"],
            {"rollout": 4, "old policy": 16, "reference": 0, "replay": 16, "update": 32},
        ),
        # a rollout cut into two optimizer steps: the second is not on-policy
        (
            ["method=bgpo", "trainer.steps_per_generation=2"],
            {"rollout": 4, "old policy": 16, "reference": 0, "replay": 16, "update": 16},
        ),
        # weights from old and reference, although it has no ratio
        (
            ["method=dmpo"],
            {"rollout": 4, "old policy": 8, "reference": 8, "update": 8},
        ),
        # the mean weight of a step, from two views in the second pass
        (
            ["method=stable_drl"],
            {"rollout": 4, "old policy": 4, "reference": 0, "statistic": 2, "replay": 4,
             "update": 4},
        ),
        # each completion gives three texts
        (
            ["method=mdpo", "rollout.kept=3"],
            {"rollout": 4, "old policy": 0, "reference": 3, "update": 3},
        ),
        # no more segments than steps
        (
            ["method=d2_step_merge", "trainer.num_iterations=1", "objective.beta=0"],
            {"rollout": 4, "old policy": 0, "reference": 0, "update": 4},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_forward_passes(overrides: list[str], expected: dict[str, int]) -> None:
    assert costs(*overrides) == expected


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert rl.train.main(["--explain", *arguments]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 100
    return " ".join(said.split())


@pytest.mark.usefixtures("here")
def test_who_set_what(capsys) -> None:
    said = told(
        capsys, "R.yaml", "method=diffu_grpo", "objective.epsilon=0.1", "sampler.temperature=0.9"
    )
    assert "R.yaml: method diffu_grpo" in said
    assert "diffu-GRPO, of d1, arXiv:2504.12216, github.com/dllm-reasoning/d1" in said
    assert "the code's default is 0.3" in said
    assert "sampler name low_confidence method" in said
    assert "temperature 0.9 recipe, as the method steps 4 recipe" in said
    assert "epsilon 0.1 recipe; the method has 0.5" in said
    assert "num_generations 4 recipe; the method has 6 num_iterations 12 method" in said
    assert "output_dir" not in said
    assert not Path("out").exists()


@pytest.mark.usefixtures("here")
def test_what_is_estimated(capsys) -> None:
    said = told(capsys, "R.yaml", "method=espo")
    assert "elbo gives a lower bound of the log-probability of random-order decoding" in said
    assert "low_confidence decoding: 16 tokens in 4 steps at temperature 1.0." in said
    assert "a biased gradient. - Exact: estimator: {name: trajectory, segments: null, " in said
    said = told(capsys, "R.yaml", "method=agrpo")
    assert "at temperature 0.6, top_k 150, top_p 0.99." in said
    assert "In the mean, the estimate is their log-probability: its gradient is unbiased" in said
    said = told(capsys, "R.yaml", "method=just_grpo", "sampler.steps=16")
    assert "The estimate is their exact log-probability: its gradient is unbiased" in said
    said = told(capsys, "R.yaml", "method=d2_step_merge")
    assert "trajectory gives a surrogate for the log-probability of the rollout's own" in said
    said = told(capsys, "R.yaml", "method=mdpo", "rollout.kept=3")
    assert "- Rollouts: foreseen completions are graded" in said
    assert "unbiased" not in said


@pytest.mark.usefixtures("here")
def test_a_recipe_without_a_method(capsys) -> None:
    with Path("R.yaml").open("a") as file:
        file.write("estimator: elbo\nobjective: {name: clipped, beta: 0.1}\n")
    said = told(capsys, "R.yaml", "sampler.name=random")
    assert "R.yaml: no method, its sections are written out" in said
    assert "estimator name elbo recipe objective name clipped recipe beta 0.1 recipe" in said
    assert "total 6 1" in said


@pytest.mark.usefixtures("here")
def test_mistakes_are_told_as_before_training(capsys) -> None:
    for override, sentence in {
        "method=espoo": "unknown method 'espoo'; did you mean 'espo'?",
        "method=d2_any_order": "R.yaml: estimator: any_order needs an any-order-causal model",
        "method=mdpo": "R.yaml: rollout: kept is 8, but sampler.steps is 4; use at most 4",
    }.items():
        with pytest.raises(SystemExit) as ended:
            rl.train.main(["--explain", "R.yaml", override])
        assert ended.value.code == 2
        assert sentence in " ".join(capsys.readouterr().err.split())


def test_preference_pairs_have_no_rollout(here: Path, capsys) -> None:
    (here / "pairs.jsonl").write_text('{"prompt": "1", "chosen": "2", "rejected": "3"}\n')
    text = RECIPE.replace("task: free_sudoku4", "task: {name: preference_pairs, path: pairs.jsonl}")
    lines = [x for x in text.splitlines() if not x.startswith(("rewards", "sampler"))]
    Path("R.yaml").write_text("\n".join(["method: vrpo", *lines]).replace("ions: 4", "ions: 2"))
    said = told(capsys, "R.yaml")
    assert "completions and rewards come from the data set" in said
    assert "rollout completions are given 0 old policy not needed 0" in said
    assert costs() == {"rollout": 0, "old policy": 0, "reference": 8, "replay": 8, "update": 8}
