"""How the command line talks."""

import logging

import pytest

from rl import console


def test_a_mistake_goes_to_stderr_without_a_traceback(capsys, monkeypatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    with pytest.raises(SystemExit) as stopped:
        console.fail(ValueError("recipes/a.yaml: steps: expected [bold] " + "x" * 300))
    assert stopped.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "error: recipes/a.yaml: steps: expected [bold] " + "x" * 300 + "\n"


def test_only_the_first_process_of_a_machine_speaks(capsys, monkeypatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(SystemExit) as stopped:
        console.fail("wrong")
    assert stopped.value.code == 2
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("rank", "level"), [("0", logging.INFO), ("3", logging.WARNING)])
def test_the_packages_log_to_stderr(capsys, monkeypatch, rank: str, level: int) -> None:
    monkeypatch.setenv("LOCAL_RANK", rank)
    loggers = [logging.getLogger(name) for name in ("rl", "rewards", "estimators")]
    for logger in loggers:
        for attribute in ("level", "handlers", "propagate"):
            monkeypatch.setattr(logger, attribute, getattr(logger, attribute))
    console.log_to_console()
    assert {logger.level for logger in loggers} == {level}
    logging.getLogger("rl.trainer").warning("careful")
    said = capsys.readouterr()
    assert said.out == ""
    assert "careful" in said.err
