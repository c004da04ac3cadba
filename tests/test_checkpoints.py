"""A half-written checkpoint is passed over."""

from pathlib import Path

from rl.checkpoints import last_whole_checkpoint


def test_the_newest_whole_checkpoint_is_taken(tmp_path: Path) -> None:
    assert last_whole_checkpoint(tmp_path) is None
    for step, state in ((9, "{}"), (10, "{}"), (11, '{"global_step":'), (12, None)):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        if state is not None:
            (folder / "trainer_state.json").write_text(state)
    (tmp_path / "checkpoint-old").mkdir()
    assert last_whole_checkpoint(tmp_path) == str(tmp_path / "checkpoint-10")
