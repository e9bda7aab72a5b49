"""Programs print where nothing can be printed: nobody reads it, as before ``| head``, or a file cannot be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from launch import written

from torchemu.launch import cli

ROOT = Path(__file__).parents[3]

NOISY = """
    import torch.distributed as dist
    dist.init_process_group("gloo")
    for i in range(20_000):
        try:
            print(i)
        except Exception:
            print("an exception that a program handles")
    dist.barrier()
"""

BENCH = """
    def run(torch):
        for i in range(20_000):
            print(i)
"""

OWN_PIPE = """
    import os
    reader, writer = os.pipe()
    os.close(reader)
    os.write(writer, b"x")
"""


def unread(*command: str | Path) -> tuple[int, str]:
    """The exit status and errors of a command of whose output one byte is read."""
    with subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=0
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        errors = process.stderr.read()
        return process.wait(timeout=60), errors


@pytest.mark.parametrize("flags", [[], ["--prefix"], ["--virtual-clock", "--trace", "out"]])
def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    script = written(tmp_path, NOISY, "noisy.py")
    assert unread("-m", "torchemu", "run", "--nproc-per-node", "3", *flags, script) == (141, "")


def test_a_bench(tmp_path: Path) -> None:
    assert unread("-m", "torchemu", "bench", written(tmp_path, BENCH, "noisy_bench.py")) == (141, "")


@pytest.mark.parametrize("bench", ["ccl_bandwidth.py", "tp_mlp.py"])
def test_benches_that_are_programs(bench: str) -> None:
    flags = ["-b", "1K", "-e", "4M", "-g", "2"] if bench == "ccl_bandwidth.py" else ["--tp", "1", "2", "--hidden", "32"]
    assert unread(ROOT / "benches" / bench, *flags) == (141, "")


def test_a_pipe_of_the_programs_own_is_its_own_business(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "1", written(tmp_path, OWN_PIPE, "own.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "BrokenPipeError: [Errno 32] Broken pipe" in done.stderr


def test_errors_name_the_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = written(tmp_path, "pass\n")
    for trace in ("none/out", "none/t.json", "none/t.et"):
        assert cli.main(["run", "--nproc-per-node", "1", "--trace", str(tmp_path / trace), str(script)]) == 1
        said = f"torchemu: the trace cannot be written to {tmp_path / trace}: No such file or directory\n"
        assert capsys.readouterr().err == said
    assert cli.main(["run", "--nproc-per-node", "1", "--trace", str(tmp_path / "out"), str(script)]) == 0
    assert cli.main(["report", str(tmp_path / "out"), "--html", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"torchemu: the page cannot be written to {tmp_path}: Is a directory\n"
    with pytest.raises(SystemExit):
        cli.main(["report", str(tmp_path / "out"), "--top", "-1"])
    assert "argument --top: '-1' is not a number of collectives" in capsys.readouterr().err
