"""Are our models the families' own? Compare logits with those that their own code gave.

    python scripts/check_models.py --fixtures DIR --json OUT

DIR has, for each family, NAME.safetensors (small random weights in the family's own layout) and
NAME.expected.safetensors (`input_ids` and the `logits` of the family's own code). Each is read

    plain     as it is, and scored by the denoiser: its masks, its shift
    peft      with a new adapter, which changes nothing yet
    native    written by `rl.export --layout native` and read again
    hub       that one written by `rl.export --layout hub` and read again
    merged    with a trained adapter, written by `rl.export --merge` in both layouts and read again;
              compared with the adapter apart

The largest difference of any of them must be at most 1e-5.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rl.export import export
from rl.models import MODELS
from rl.models.denoiser import ModelDenoiser
from rl.models.loading import LoadedModel, load, save_native
from rl.models.lora import LoraSpec, apply_lora
from rl.models.source import ModelSource
from rl.models.tiny_checkpoint import make_tiny_checkpoint

LIMIT = 1e-5


def check_family(name: str, fixtures: Path, work: Path) -> dict[str, float]:
    """Largest difference of the logits on each way; `work` is an empty folder."""
    ids, expected = recorded(name, fixtures)
    hub = make_tiny_checkpoint(name, work / "hub")  # config.json and tokenizer
    shutil.copyfile(weights_file(name, fixtures), hub / "model.safetensors")
    found = {"plain": answers(read(name, hub), ids)}
    lora = LoraSpec(r=4, alpha=8, targets="full")
    adapted = read(name, hub, training=True)
    model = apply_lora(adapted.model, adapted.spec, lora)  # pyright: ignore[reportArgumentType]
    found["peft"] = answers(adapted, ids, model)
    again = hub
    for layout in ("native", "hub"):
        again = export(str(again), work / f"as_{layout}", layout=layout)
        found[layout] = answers(read(name, again), ids)
    worst = {way: _largest(logits - expected) for way, logits in found.items()}

    with torch.no_grad():
        for weight_name, weight in model.named_parameters():
            if "lora_B" in weight_name:
                weight.normal_(std=0.1, generator=torch.Generator().manual_seed(len(weight_name)))
    save_native(model, adapted.tokenizer, work / "adapter")
    apart = answers(read(name, work / "adapter"), ids)
    assert _largest(apart - expected) > 1e-3, "the adapter changes nothing"
    merged = [
        export(str(work / "adapter"), work / f"merged_{layout}", layout=layout, merge=True)
        for layout in ("native", "hub")
    ]
    worst["merged"] = max(_largest(answers(read(name, m), ids) - apart) for m in merged)
    return worst


def _largest(difference: Tensor) -> float:
    return float(difference.abs().max())


def weights_file(name: str, fixtures: Path) -> Path:
    return fixtures / f"{name.replace('_', '')}.safetensors"


def recorded(name: str, fixtures: Path) -> tuple[Tensor, Tensor]:
    """Ids [N, S] and logits [N, S, V] by the token that they predict."""
    stored = load_file(weights_file(name, fixtures).with_suffix(".expected.safetensors"))
    logits = stored["logits"]
    if MODELS[name].shift:
        logits = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
    return stored["input_ids"], logits


def read(name: str, folder: Path, *, training: bool = False) -> LoadedModel:
    return load(ModelSource(name=name, path=str(folder)), training=training)


def answers(loaded: LoadedModel, ids: Tensor, model: torch.nn.Module | None = None) -> Tensor:
    """The denoiser's logits [N, S, V], of ids that may not be written too."""
    denoiser = ModelDenoiser.of(loaded, model)
    denoiser.forbidden = ()
    every = torch.ones_like(ids, dtype=torch.bool)
    with denoiser.evaluating():
        (logits,) = denoiser(ids, every, torch.arange(ids.numel()), lambda x, _, row: (x[row],))
    return logits.view(*ids.shape, -1)


def main() -> None:
    about, _, more = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fixtures", type=Path, required=True, metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the differences there")
    args = parser.parse_args()
    here = [name for name in MODELS if weights_file(name, args.fixtures).is_file()]
    if not here:
        sys.exit(f"error: {args.fixtures} has no NAME.safetensors of {', '.join(MODELS)}")
    results: dict[str, dict[str, float]] = {}
    for name in here:
        with tempfile.TemporaryDirectory() as work:
            results[name] = check_family(name, args.fixtures, Path(work))
        ways = ", ".join(f"{way} {value:.1e}" for way, value in results[name].items())
        print(f"{name:10s} {max(results[name].values()):.1e}   ({ways})", flush=True)
    print(f"no recorded logits: {', '.join(name for name in MODELS if name not in here)}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    different = [name for name, worst in results.items() if not max(worst.values()) <= LIMIT]
    if different:
        sys.exit(f"error: more than {LIMIT:g} apart: {', '.join(different)}")


if __name__ == "__main__":
    main()
