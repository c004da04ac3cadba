"""Forward passes that a recipe spends on each completion, without running anything.

Upper limits: equal masked copies are run once, such as the fully masked completion of a group.
"""

from dataclasses import dataclass

from estimators import Estimator
from rl.backward import choose_mode
from rl.grpo_config import DiffusionGRPOConfig
from rl.objectives import Objective
from rl.recipe import Recipe
from rl.rollout_schemes import RolloutScheme
from rl.samplers import Sampler

_USED = (
    "num_generations", "num_iterations", "per_device_train_batch_size",
    "gradient_accumulation_steps", "generation_batch_size", "steps_per_generation",
    "max_completion_length", "fresh_masks", "backward", "disable_dropout",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One kind of forward passes.

    forwards: of one completion, from its rollout to the last update that uses it.
    backward: whether each is followed by a backward pass.
    """

    name: str
    why: str
    forwards: int
    backward: bool = False


def training_shape(recipe: Recipe) -> DiffusionGRPOConfig:
    """The trainer's config, as far as it says how often a rollout is scored."""
    given = {key: recipe.trainer[key] for key in _USED if key in recipe.trainer}
    return DiffusionGRPOConfig(output_dir="unused", use_cpu=True, bf16=False, **given)


def phases(recipe: Recipe) -> list[Phase]:
    """Everything that runs the model for a completion, in order."""
    assert recipe.rollout is not None
    assert recipe.estimator is not None
    assert recipe.objective is not None
    costs = _Costs(
        config=training_shape(recipe),
        sampler=recipe.sampler if recipe.rollout.writes else None,
        scheme=recipe.rollout,
        estimator=recipe.estimator,
        objective=recipe.objective,
    )
    found = [costs.rollout(), costs.old(), costs.reference()]
    found += [phase for phase in (costs.statistic(), costs.replay()) if phase.forwards]
    return [*found, costs.update()]


@dataclass(frozen=True, kw_only=True)
class _Costs:
    config: DiffusionGRPOConfig
    sampler: Sampler | None
    scheme: RolloutScheme
    estimator: Estimator
    objective: Objective

    def rollout(self) -> Phase:
        if self.sampler is None:
            return Phase(name="rollout", why="completions are given", forwards=0)
        steps = self.sampler.steps
        return Phase(name="rollout", why=_count(steps, "denoising step"), forwards=steps)

    def old(self) -> Phase:
        later = self.objective.uses_old and self._on_policy < self.config.num_iterations
        needed = later or self.objective.reweighs or self.objective.has_statistic
        return self._stored("old policy", needed)

    def reference(self) -> Phase:
        return self._stored("reference", self.objective.uses_reference)

    def statistic(self) -> Phase:
        """Before an update, what the objective needs to know of the whole optimizer step."""
        passes = self.config.num_iterations - self._on_policy
        passes *= self.objective.has_statistic
        return self._passes("statistic", passes, ": the normaliser of a step")

    def replay(self) -> Phase:
        on, off = self._on_policy, self.config.num_iterations - self._on_policy
        passes = on * self._replays(True) + off * self._replays(False)
        return self._passes("replay", passes, ": values, so that gradients go view by view")

    def update(self) -> Phase:
        return self._passes("update", self.config.num_iterations, backward=True)

    def _stored(self, name: str, needed: bool) -> Phase:
        sets = self.config.plans_per_rollout
        if not needed:
            return Phase(name=name, why="not needed", forwards=0)
        why = f"{self._each} x {_count(sets, 'set')} of masks"
        return Phase(name=name, why=why, forwards=self._forwards * sets)

    def _passes(self, name: str, passes: int, comment: str = "", backward: bool = False) -> Phase:
        why = f"{self._each} x {_count(passes, 'pass')}{comment}"
        return Phase(name=name, why=why, forwards=self._forwards * passes, backward=backward)

    @property
    def _views(self) -> int:
        length = self.config.shape.length
        steps = length if self.sampler is None else self.sampler.steps
        return self.estimator.views(length=length, steps=steps)

    @property
    def _forwards(self) -> int:
        return self._views * self.scheme.rows_per_completion

    @property
    def _each(self) -> str:
        texts, views = self.scheme.rows_per_completion, _count(self._views, "view")
        return views if texts == 1 else f"{texts} texts x {views}"

    @property
    def _on_policy(self) -> int:
        """Passes in which every update directly follows its rollout."""
        if self.config.rollout_is_on_policy:
            return self.config.num_iterations
        return int(self.config.gradient_accumulation_steps >= self.config.shape.micro_batches)

    def _replays(self, on_policy: bool) -> bool:
        mode = choose_mode(
            self.config.backward,
            views=self._views,
            linear=self.estimator.linear and self.objective.linear(on_policy),
            dropout=not self.config.disable_dropout,
        )
        return mode == "replay"


def _count(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}{'es' if noun.endswith('s') else 's'}"
