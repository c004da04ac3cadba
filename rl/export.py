"""Write a trained checkpoint in the layout that another program reads.

    python -m rl.export CHECKPOINT --out DIR --layout hub       # as its family publishes it
    python -m rl.export CHECKPOINT --out DIR --layout native    # as transformers reads it plainly
    python -m rl.export ADAPTER --out DIR --layout hub --merge  # a LoRA adapter, put into its base

CHECKPOINT is a folder or an id on the hub. `hub` has the key names and the config.json of the
family's own code (LLaDA's, Dream's, ...), which SGLang, vLLM and that code read; `native` is a
stock transformers checkpoint, causal again where nobody gives it a mask. `model.path` reads both.
Merging in 16 bits rounds; `--dtype float32` does not.
"""

import argparse
from pathlib import Path

from peft import PeftModel

from rl.console import fail, out
from rl.models.checkpoint import HUB_FIELDS, read_fields
from rl.models.hub_layout import save_hub
from rl.models.loading import LoadedModel, family_of, load, save_native
from rl.models.lora import adapter_base, is_adapter
from rl.models.source import DTYPES, ModelSource

LAYOUTS = ("hub", "native")


def export(
    checkpoint: str,
    folder: str | Path,
    *,
    layout: str,
    merge: bool = False,
    family: str | None = None,
    dtype: str | None = None,
) -> Path:
    """Raises ValueError for whatever a user can have got wrong. dtype: None keeps the weights'."""
    folder = Path(folder)
    if layout not in LAYOUTS:
        raise ValueError(f"--layout is {layout!r}; allowed: {', '.join(LAYOUTS)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not an empty folder; name a new one")
    if is_adapter(checkpoint) != merge:
        raise ValueError(
            f"{checkpoint} holds a LoRA adapter; add --merge to write its base with it"
            if not merge
            else f"--merge needs a LoRA adapter, and {checkpoint} has no adapter_config.json"
        )
    source = ModelSource(
        name=family or family_of(checkpoint), path=checkpoint, dtype=dtype or _dtype(checkpoint)
    )
    loaded = load(source, training=False)
    model = loaded.model.merge_and_unload() if isinstance(loaded.model, PeftModel) else loaded.model
    if layout == "native" or loaded.spec.hub_type is None:  # the family publishes the native one
        save_native(model, loaded.tokenizer, folder)
    else:
        save_hub(loaded.spec, model, loaded.tokenizer, _hub_fields(checkpoint, loaded), folder)
    return folder


def _dtype(checkpoint: str) -> str:
    """That of the weights, as config.json says it."""
    base, revision = adapter_base(checkpoint) if is_adapter(checkpoint) else (checkpoint, None)
    fields = read_fields(base, revision)
    said = str(fields.get("dtype") or fields.get("torch_dtype") or "float32")
    return said.removeprefix("torch.") if said.removeprefix("torch.") in DTYPES else "float32"


def _hub_fields(checkpoint: str, loaded: LoadedModel) -> dict[str, object]:
    fields = getattr(loaded.model.config, HUB_FIELDS, None)
    if fields is None:
        raise ValueError(
            f"{checkpoint}: nobody recorded the config.json of {loaded.spec.name}'s own layout "
            f"(config.json has no {HUB_FIELDS}); use --layout native"
        )
    own = {loaded.spec.config_mask_field: loaded.mask_id}
    if loaded.block_size is not None:
        own["block_size"] = loaded.block_size
    return fields | own


def main() -> None:
    about, _, usage = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m rl.export",
        description=about,
        epilog=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="folder or hub id")
    parser.add_argument("--out", required=True, metavar="DIR", help="new or empty")
    parser.add_argument("--layout", required=True, choices=LAYOUTS)
    parser.add_argument("--merge", action="store_true", help="put the adapter into its base")
    parser.add_argument("--family", help="where several families share the checkpoint's class")
    parser.add_argument("--dtype", choices=DTYPES, help="default: that of the checkpoint")
    args = parser.parse_args()
    try:
        written = export(
            args.checkpoint,
            args.out,
            layout=args.layout,
            merge=args.merge,
            family=args.family,
            dtype=args.dtype,
        )
    except (ValueError, OSError) as error:
        fail(error)
    out.print(f"{args.layout} layout: {written}", markup=False)


if __name__ == "__main__":
    main()
