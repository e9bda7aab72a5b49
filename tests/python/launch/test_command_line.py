"""The torchemu command: help, and errors that name what was probably meant."""

from __future__ import annotations

from typing import Any

import pytest

from torchemu import runtime
from torchemu.launch import commands, failures


def _ended(argv: list[str]) -> int | None:
    try:
        return commands.status(argv)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("rnu x.py", "did you mean run?"),
        ("topolgy show default", "did you mean topology?"),
        ("topology shwo", "did you mean show?"),
        ("help brench", "did you mean bench?"),
        ("run --nproc-per-nde 3 x.py", "did you mean --nproc-per-node?"),
        ("run --tracee=t.json x.py", "did you mean --trace"),
        ("run --sched fifo x.py", "did you mean --schedule"),
        ("run --schedule rando x.py", "did you mean random?"),
        ("bench --toplogy sips2 x.py", "did you mean --topology?"),
    ],
)
def test_misspelt_words_are_answered(argv: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended(argv.split()) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("argv", ["run --quite-another-flag x.py", "zzzz"])
def test_words_that_are_like_no_other_get_no_suggestion(argv: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended(argv.split()) == 2
    err = capsys.readouterr().err
    assert "did you mean" not in err
    assert argv.split()[-2 if "run" in argv else -1] in err


def test_flags_of_a_script_are_its_own(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody looks at what follows SCRIPT: the file is missing, and that is all."""
    assert _ended(["run", f"{tmp_path}/none.py", "--nproc-per-nde", "3"]) == 2
    assert "No such file" in (err := capsys.readouterr().err) and "did you mean" not in err


@pytest.mark.parametrize("command", ["run", "bench", "report", "topology", "algorithms", "calibrate"])
def test_help_of_a_command_is_its_own(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended(["help", command]) == 0
    told = capsys.readouterr().out
    assert _ended([command, "--help"]) == 0
    assert told == capsys.readouterr().out
    assert told.startswith(f"usage: torchemu {command}")


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended(["help"]) == 0
    told = capsys.readouterr().out
    assert all(f"\n    {command} " in told for command in ("run", "bench", "report", "help"))


def test_what_torchemu_calls_itself_is_no_place() -> None:
    """Ctrl-C may come while torchemu is in Python's own library, with no frame of the program around."""
    variables: dict[str, Any] = {}
    code = "import pathlib\ndef ours():\n    pathlib.PurePath(0)\n"
    exec(compile(code, f"{runtime.PACKAGE}nowhere.py", "exec"), variables)
    with pytest.raises(TypeError) as raised:
        variables["ours"]()
    trace = raised.value.__traceback__
    assert trace is not None and trace.tb_next is not None and trace.tb_next.tb_next is not None
    assert failures.place(raised.value.with_traceback(trace.tb_next)) == ""
