"""Runs that end early, by Ctrl-C or for want of space: plainly said, nothing saved is lost."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rl.checkpoints import last_whole_checkpoint

from .conftest import told

ROOT = Path(__file__).parents[2]


@pytest.mark.usefixtures("here")
def test_ctrl_c_needs_no_traceback(capsys) -> None:
    assert told(
        capsys, "train", "R.yaml", "rewards=[{name: r.py:interrupts, in_process: true}]", code=130
    ) == ("interrupted; what was saved is intact, and --resume goes on from the last checkpoint")


@pytest.mark.slow
def test_a_full_disk_is_said_plainly(here: Path) -> None:
    """No file may grow beyond 100 kB here: the model cannot be saved."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = subprocess.run(
        [sys.executable, "-m", "rl.train", "R.yaml", "trainer.max_steps=1"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "File too large (os error 27); what was saved before is intact" in done.stderr


@pytest.mark.slow
def test_ctrl_c_in_training_leaves_a_checkpoint_to_resume(here: Path) -> None:
    overrides = ("trainer.save_steps=1", "trainer.save_total_limit=2", "trainer.max_steps=100000")
    command = [sys.executable, "-m", "rl.train", "R.yaml", *overrides]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # if we are in background
    ) as run:
        try:
            patience = time.monotonic() + 60
            while not list(here.glob("out/checkpoint-*/trainer_state.json")):
                assert run.poll() is None
                assert time.monotonic() < patience
                time.sleep(0.1)
            run.send_signal(signal.SIGINT)
            _, said = run.communicate(timeout=15)
        finally:
            run.kill()
    assert run.returncode == 130, said
    assert "Traceback" not in said
    assert "interrupted" in said
    newest = last_whole_checkpoint(here / "out")  # a later one may be half written
    assert newest is not None
    done = int(newest.rpartition("-")[2])
    command[-1] = f"trainer.max_steps={done + 1}"
    subprocess.run([*command, "--resume"], env=environment, check=True, capture_output=True)
    assert (here / f"out/checkpoint-{done + 1}/trainer_state.json").exists()
