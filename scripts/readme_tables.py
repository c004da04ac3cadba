"""The tables of README.md, docs/methods.md and docs/rewards.md, from the code that they list.

    python scripts/readme_tables.py            print them
    python scripts/readme_tables.py --write    put them where the files have markers

A marker is <!-- table: NAME --> before a table and <!-- end --> after it.
"""

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from estimators import ESTIMATORS, Estimator  # noqa: E402
from rewards.case_grading import columns_needed  # noqa: E402
from rl.methods import METHODS, Method  # noqa: E402
from rl.models import MODELS, ModelSpec  # noqa: E402
from rl.objectives import OBJECTIVES  # noqa: E402
from rl.pairs import exact_estimators  # noqa: E402
from rl.recipe_yaml import inline  # noqa: E402
from rl.reward_registry import known_rewards  # noqa: E402
from rl.rollout_schemes import ROLLOUTS  # noqa: E402
from rl.samplers import SAMPLERS, Sampler  # noqa: E402

FILES = tuple(ROOT / name for name in ("README.md", "docs/methods.md", "docs/rewards.md"))
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
LENGTH = 16  # of a completion written one token per step, to ask which estimator is exact for it


def estimators() -> str:
    return table(
        ("Estimator", "Estimates", "Level", "Forwards per completion", "Paper"),
        (
            (code(name), f"{kind(e)}: {e.scores}", e.level, e.cost, linked(e.paper))
            for name, e in ESTIMATORS.items()
        ),
    )


def kind(estimator: type[Estimator]) -> str:
    """An estimate that is exact under some settings only says which."""
    settings = next(iter(estimator.exact_settings), {})
    return (
        f"{estimator.estimates} with {code(inline(settings))}" if settings else estimator.estimates
    )


def samplers() -> str:
    return table(
        ("Sampler", "What a step commits", "Exact estimator", "Paper"),
        (
            (code(name), sampler.summary, exact(sampler(steps=LENGTH)), linked(sampler.paper))
            for name, sampler in SAMPLERS.items()
        ),
    )


def exact(sampler: Sampler) -> str:
    sections = exact_estimators(sampler, LENGTH)
    return " or ".join(code(inline(section)) for section in sections) or "none"


def objectives() -> str:
    return table(
        ("Objective", "Loss", "Paper"),
        ((code(name), o.summary, linked(o.paper)) for name, o in OBJECTIVES.items()),
    )


def rollouts() -> str:
    return table(
        ("Rollout scheme", "What it changes", "Paper"),
        ((code(name), r.changes, linked(r.paper)) for name, r in ROLLOUTS.items()),
    )


def models() -> str:
    return table(
        ("Model", "Checkpoints", "Native class", "Predicted by", "A token sees"),
        (
            (
                code(name),
                spec.checkpoints,
                code(spec.native.removesuffix("ForCausalLM").removesuffix("ForMaskedLM")),
                "the state before it" if spec.shift else "its own state",
                sight(spec),
            )
            for name, spec in MODELS.items()
        ),
    )


def sight(spec: ModelSpec) -> str:
    if spec.block_size is None:
        return "everything"
    return f"its block of {spec.block_size} and earlier ones"


def methods() -> str:
    return table(
        ("Method", "Published as", "Estimator", "Objective", "Sampler", "Paper"),
        (
            (
                code(name),
                method.title,
                code(method.estimator["name"]),
                code(method.objective["name"]) + via(method),
                code(method.sampler["name"]) if method.sampler else "none",
                linked(method.paper),
            )
            for name, method in METHODS.items()
        ),
    )


def via(method: Method) -> str:
    return f", rollout {code(method.rollout['name'])}" if method.rollout else ""


def notes() -> str:
    """What a reader of the paper must know of each preset."""
    parts: list[str] = []
    for name, method in METHODS.items():
        repository = method.repository
        source = (
            f"[{repository}](https://github.com/{repository})"
            if repository
            else "no code known to us"
        )
        source = f", {source}" if method.published else ""
        parts.append(f"### {name}\n\n{method.title}, {linked(method.paper)}{source}\n")
        parts += [f"- {note}" for note in method.notes]
        parts.append("")
    return "\n".join(parts)


def rewards() -> str:
    return graders(name for name in known_rewards() if not name.startswith("parity:"))


def parity() -> str:
    return graders(name for name in known_rewards() if name.startswith("parity:"))


def graders(names: Iterable[str]) -> str:
    known = known_rewards()
    return table(
        ("Reward", "Pays", "Columns", "Settings"),
        ((code(name), pays(known[name]), *takes(known[name])) for name in names),
    )


def pays(reward: Callable[..., object]) -> str:
    """The first sentence about it; of its module, too, where its own only says 1 or 0."""
    own, module = (sentence(inspect.getdoc(x) or "") for x in (reward, inspect.getmodule(reward)))
    if isinstance(reward, type):
        return module
    return f"{module} {own}" if re.fullmatch(r"1\.0 or 0\.0[^A-Z]*", own) else own


def sentence(text: str) -> str:
    first = " ".join(text.split("\n\n")[0].split())
    found = re.match(r".*?[.?!](?= [A-Z`]| [\w, ]+: |$)", first)
    whole = found[0] if found else first.rstrip(":;,") + "."
    return re.sub(r"([|<])", r"\\\1", whole)


def takes(reward: Callable[..., object]) -> tuple[str, str]:
    """(columns, settings), those that may be left out in brackets."""
    if isinstance(reward, type):
        return "", ", ".join(map(code, inspect.signature(reward).parameters))
    needs = columns_needed(reward)
    optional = [name for name in needs.accepted or () if name not in needs.required]
    columns = [*map(code, needs.required), *(f"({code(name)})" for name in optional)]
    return ", ".join(columns), ", ".join(map(code, needs.settings))


TABLES: dict[str, Callable[[], str]] = {
    "estimators": estimators,
    "samplers": samplers,
    "objectives": objectives,
    "rollouts": rollouts,
    "models": models,
    "methods": methods,
    "notes": notes,
    "rewards": rewards,
    "parity": parity,
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def code(text: object) -> str:
    return f"`{text}`"


def linked(paper: str) -> str:
    """Every arXiv id as a link."""
    return re.sub(r"arXiv:(\d{4}\.\d{5})", r"[\1](https://arxiv.org/abs/\1)", paper)


def filled(text: str) -> str:
    """A file's text with its tables made anew."""
    return MARKED.sub(lambda m: m[1] + TABLES[m[2]]() + m[3], text)


def main() -> None:
    parser = argparse.ArgumentParser(description="The tables of README.md and docs/")
    parser.add_argument("--write", action="store_true", help="put them into the files")
    if parser.parse_args().write:
        for path in FILES:
            path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
        return
    for name, make in TABLES.items():
        print(f"{name}\n\n{make()}")


if __name__ == "__main__":
    main()
