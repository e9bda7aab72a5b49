"""How runs end: the exit status, and what is printed when ranks fail."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from launch import launch, unmarked, written

ASSERTS = """
import torch, torch.distributed as dist
dist.init_process_group("nccl")
t = torch.full((2,), float(dist.get_rank()), device="cuda")
dist.all_reduce(t)
assert t.tolist() == [0, 0], (dist.get_rank(), t)
"""


def test_an_assertion_shows_the_tensors_of_its_rank(tmp_path: Path) -> None:
    outcome = launch("--nproc-per-node", "3", written(tmp_path, ASSERTS))
    assert outcome.err.count("AssertionError: (0, tensor([3., 3.], device='cuda:0'))\n") == 2, outcome.err


@pytest.mark.parametrize(
    ("leave", "code", "error"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(0)", 0, ""),
        ("sys.exit(3)", 3, "SystemExit: 3"),
        ("sys.exit(300)", 44, "SystemExit: 300"),
        ("sys.exit(-1)", 255, "SystemExit: -1"),
        ("sys.exit('a word')", 1, "SystemExit: a word"),
        ("os._exit(5)", 5, "os._exit(5)"),
        ("os._exit(0)", 0, ""),
        ("raise KeyError", 1, "KeyError"),
        ("raise KeyboardInterrupt", -2, "Signal 2 (SIGINT) received by PID 4194305"),
        ("os.abort()", -6, "Signal 6 (SIGABRT) received by PID 4194305"),
        ("os.kill(os.getpid(), 9)", -9, "Signal 9 (SIGKILL) received by PID 4194305"),
    ],
)
def test_exit_status(tmp_path: Path, leave: str, code: int, error: str) -> None:
    """torchrun's is 1, however a rank fails; its report has the rank's."""
    program = written(tmp_path, f"import os, sys\nif os.environ['RANK'] == '1': {leave}\n")
    outcome = launch(program)
    assert outcome.status == (1 if code else 0)
    if code:
        assert f"  rank      : 1 (local_rank: 1)\n  exitcode  : {code}\n" in outcome.err
        assert f"  error     : {error}\n" in outcome.err
        assert outcome.err.count(f"  place     : {program}:2 in <module>\n") == ("sys" in leave or "os" in leave)
    else:
        assert outcome.err == ""


def test_place_of_an_exit_is_the_programs(tmp_path: Path) -> None:
    """Where a module of Python exits it is the line that has called it."""
    text = "import argparse\n\ndef options():\n    argparse.ArgumentParser().parse_args(['--what'])\n\noptions()\n"
    program = written(tmp_path, text)
    err = launch("--nproc-per-node", "1", program).err
    assert f"  error     : SystemExit: 2\n  place     : {program}:4 in options\n" in err


def test_one_that_ends_early_is_missed_only_by_those_who_need_it(tmp_path: Path) -> None:
    text = """
        import sys
        import torch
        import torch.distributed as dist
        dist.init_process_group()
        if dist.get_rank() == 3:
            sys.exit(0)
        if {all_need_it}:
            dist.all_reduce(torch.ones(1))
    """
    assert launch(written(tmp_path, text.format(all_need_it=False))).status == 0
    outcome = launch(written(tmp_path, text.format(all_need_it=True)))
    assert outcome.status == 1 and "rank 3 ended without calling all_reduce #0 of group default" in outcome.err


FAILING = """
    import torch
    import torch.distributed as dist

    def fail(rank):
        raise ValueError(f"{rank} is odd\\nvery odd")

    dist.init_process_group()
    rank = dist.get_rank()
    if rank in (1, 3, 4):
        fail(rank % 2)
    dist.all_reduce(torch.ones(1))
"""

REPORT = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "{file}", line 11, in <module>
[rank1]:     fail(rank % 2)
[rank1]:   File "{file}", line 6, in fail
[rank1]:     raise ValueError(f"{{rank}} is odd\\nvery odd")
[rank1]: ValueError: 1 is odd
[rank1]: very odd
============================================================
{file} FAILED
------------------------------------------------------------
Root cause (first failure in simulated time):
  rank      : 1 (local_rank: 1)
  exitcode  : 1
  time      : {time} us
  error     : ValueError: 1 is odd
Other failures:
  rank 3: ValueError: 1 is odd
  rank 4: ValueError: 0 is odd
============================================================
"""


def test_report(tmp_path: Path) -> None:
    file = written(tmp_path, FAILING)
    outcome = launch("--nproc-per-node", "6", file)
    time = outcome.err.partition("time      : ")[2].partition(" us")[0]
    assert unmarked(outcome.err) == REPORT.format(file=file, time=time)
    assert (outcome.status, outcome.out) == (1, "") and float(time) >= 0


def test_report_of_an_exception_that_cannot_say_what_it_is(tmp_path: Path) -> None:
    mute = "class Mute(Exception):\n    def __str__(self): raise RuntimeError('no text')\n"
    outcome = launch("--nproc-per-node", "2", written(tmp_path, f"import os\n{mute}raise Mute\n"))
    assert outcome.status == 1
    assert "[rank0]: Mute: <exception str() failed>\n" in outcome.err.replace("__main__.", "")
    assert "  error     : Mute: <exception str() failed>\n" in outcome.err


def test_report_counts_ranks_that_fail_alike(tmp_path: Path) -> None:
    outcome = launch("--nproc-per-node", "9", "--nnodes", "2", written(tmp_path, "import os\nassert 0, 'no'"))
    assert "  rank      : 0 (local_rank: 0)" in outcome.err
    assert outcome.err.count("AssertionError") == 3 and "  ranks 1-17: AssertionError: no\n" in outcome.err


def test_report_limits_kinds_of_failures(tmp_path: Path) -> None:
    outcome = launch("--nproc-per-node", "20", written(tmp_path, "import os\nraise KeyError(os.environ['RANK'])"))
    assert "  rank 8: KeyError: '8'\n  … and 11 more kinds\n" in outcome.err


def test_mistakes_are_shown_where_the_program_makes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, "import torch.distributed as dist\ndist.init_process_group()\ndist.all_reduce(1)")
    err = unmarked(launch("--nproc-per-node", "1", file).err)
    assert err.splitlines()[:5] == [
        "[rank0]: Traceback (most recent call last):",
        f'[rank0]:   File "{file}", line 3, in <module>',
        "[rank0]:     dist.all_reduce(1)",
        "[rank0]: TypeError: Invalid function argument. Expected parameter `tensor` of type torch.Tensor",
        "[rank0]:              but got <class 'int'> instead.",
    ]
    monkeypatch.setenv("TORCHEMU_TRACEBACK", "full")
    assert "in all_reduce" in launch("--nproc-per-node", "1", file).err


def test_causes_are_shown(tmp_path: Path) -> None:
    text = """
        try:
            {}["a"]
        except KeyError as error:
            raise RuntimeError("outer") from error
    """
    err = launch("--nproc-per-node", "1", written(tmp_path, text)).err
    order = ["KeyError: 'a'", "The above exception was the direct cause", "RuntimeError: outer"]
    places = [err.index(part) for part in order]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["program.py", "other.py"])
def test_syntax_error(tmp_path: Path, name: str) -> None:
    written(tmp_path, "import other", "program.py")
    wrong = written(tmp_path, "x = 1\ndef f(:\n    pass\n", name)
    outcome = launch("--nproc-per-node", "2", tmp_path / "program.py")
    assert outcome.status == 1
    assert f'File "{wrong}", line 2' in outcome.err and "SyntaxError: invalid syntax" in outcome.err
    assert "importlib" not in outcome.err and "torchemu" not in outcome.err.replace(str(tmp_path), "")


def test_a_script_that_is_no_text(tmp_path: Path) -> None:
    script = tmp_path / "compiled.py"
    script.write_bytes(b"\0\1")
    outcome = launch("--nproc-per-node", "2", str(script))
    assert (outcome.status, outcome.err) == (
        1,
        f"SyntaxError: source code string cannot contain null bytes ({script})\n",
    )


def test_missing_program(tmp_path: Path) -> None:
    outcome = launch(tmp_path / "nothing.py")
    text = f"torchemu: can't open file {str(tmp_path / 'nothing.py')!r}: No such file or directory\n"
    assert (outcome.status, outcome.err) == (2, text)


def test_missing_module() -> None:
    outcome = launch("--nproc-per-node", "1", "-m", "no_such_module")
    assert outcome.status == 1
    assert outcome.err.startswith("[rank0]: ImportError: No module named no_such_module\n===")


def test_missing_part_of_torch(tmp_path: Path) -> None:
    outcome = launch(written(tmp_path, "import torch.nothing"))
    assert outcome.status == 1
    message = (
        "ModuleNotFoundError: torchemu's NumPy front end has no torch.nothing: "
        "run with --torch real (pip install torchemu[torch])"
    )
    assert f"[rank0]: {message}\n" in outcome.err
    assert f"  error     : {message}\n" in outcome.err
    assert launch(written(tmp_path, "try: import torch.nothing\nexcept ImportError: pass")).status == 0


def test_what_a_process_prints_and_answers(tmp_path: Path) -> None:
    text = """
        import sys
        import torch.distributed as dist
        dist.init_process_group()
        print("out", dist.get_rank())
        print("err", file=sys.stderr)
        sys.exit(4)
    """
    command = [sys.executable, "-c", "import sys; from torchemu.launch.cli import main; sys.exit(main())"]
    program = written(tmp_path, text)
    together = subprocess.run(
        [*command, "run", "--nproc-per-node", "2", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert together.returncode == 1
    assert together.stdout.splitlines()[:5] == ["out 0", "err", "out 1", "err", "=" * 60]


def to_another_thread(process: int) -> None:
    """Sends SIGINT to a thread that is not the main one, as the kernel may with what comes from a terminal."""
    threads = {int(entry.name) for entry in Path(f"/proc/{process}/task").iterdir()} - {process}
    assert ctypes.CDLL(None).tgkill(process, min(threads), int(signal.SIGINT)) == 0


def to_the_process(process: int) -> None:
    os.kill(process, signal.SIGINT)


@pytest.mark.slow
@pytest.mark.parametrize("send", [to_the_process, to_another_thread])
@pytest.mark.parametrize("busy", ["while True: pass", "time.sleep(60)"])
def test_interrupt(tmp_path: Path, busy: str, send: Callable[[int], None]) -> None:
    program = written(tmp_path, f"import time\ntry:\n    print('go', flush=True)\n    {busy}\nfinally: print('stop')")
    command = [sys.executable, "-c", "import sys; from torchemu.launch.cli import main; sys.exit(main())"]
    command += ["run", "--nproc-per-node", "1", program]  # of several, others would run while one sleeps
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None and run.stdout.readline() == "go\n"
        time.sleep(0.3)  # until the rank is out of print, within which it may hand over
        send(run.pid)
        out, err = run.communicate(timeout=60)
    assert (out, run.returncode) == ("stop\n", 130)
    place = rf" while rank 0 was at {program}:4 in <module>"
    nowhere = "?" if "sleep" in busy else ""  # the rank may be handing over just then, in order to sleep
    assert re.fullmatch(rf"interrupted({place}){nowhere}\n", err), err
