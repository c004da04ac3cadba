"""Start a recipe with `accelerate launch` on two CPU processes, as a user would."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
ACCELERATE = ROOT / "recipes" / "accelerate"

STRATEGIES = {
    "cpu": "MULTI_CPU",
    "ddp": "MULTI_CPU",
    "zero2": "DEEPSPEED ZeRO-2",
    "zero3": "DEEPSPEED ZeRO-3",
}


def on_cpu(strategy: str, folder: Path, processes: int = 2) -> Path:
    """The shipped configuration, moved to the CPU.

    `accelerate launch --cpu --num_processes 2` would start one process without a word, and
    default ZeRO-3 keeps every parameter of a tiny model whole; so both are set in the file.
    """
    config = yaml.safe_load((ACCELERATE / f"{strategy}.yaml").read_text())
    config |= {"use_cpu": True, "num_processes": processes, "mixed_precision": "no"}
    if strategy == "zero3":
        partitioned = str(Path(__file__).parents[1] / "zero3_partitioned.json")
        config["deepspeed_config"] = {
            "deepspeed_config_file": partitioned, "zero3_init_flag": False,
            "deepspeed_multinode_launcher": "standard",
        }  # fmt: skip
        del config["mixed_precision"]
    path = folder / f"{strategy}_{processes}_on_cpu.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def launch(
    strategy: str, folder: Path, recipe: Path, *overrides: str, processes: int = 2
) -> list[dict[str, Any]]:
    """Train two processes under a strategy; returns the log history of its steps."""
    output = folder / f"out_{strategy}_{processes}"
    arguments = ["--config_file", str(on_cpu(strategy, folder, processes))]
    done = run(arguments, str(recipe), f"trainer.output_dir={output}", *overrides)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    summary = json.loads((output / "summary.json").read_text())
    assert summary["strategy"] == {"processes": processes, "kind": STRATEGIES[strategy]}
    history = json.loads((output / "log_history.json").read_text())
    return [entry for entry in history if "grad_norm" in entry]


def run(
    arguments: list[str], *own: str, module: str = "rl.train", timeout: float = 900
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "DS_ACCELERATOR": "cpu",
        "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip
    command = [
        sys.executable, "-m", "accelerate.commands.launch", *arguments,
        "-m", module, *own,
    ]  # fmt: skip
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout
    )
