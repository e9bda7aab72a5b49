"""Programs print where nothing can be printed: nobody reads it, as before ``| head``, or a file cannot be written."""

from __future__ import annotations

import os
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


def printing(*command: str, shell: str = "", **environment: str) -> tuple[int, str, str]:
    """The exit status, output and errors of a torchemu command, with other redirections and environment variables."""
    line = f'exec "$0" -m torchemu "$@" {shell}'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, *command],
        env={**os.environ, **environment}, capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


COMMANDS = [
    ["algorithms"],
    ["topology", "show", "sips8"],
    ["schema", "ccl"],
    ["bandwidth", "all_reduce", "-b", "1K", "-e", "1K"],
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk(command: list[str]) -> None:
    full = (1, "", "torchemu: standard output: No space left on device\n")
    assert printing(*command, shell="> /dev/full") == full


@pytest.mark.parametrize("command", COMMANDS[:2])
def test_no_standard_output(command: list[str]) -> None:
    assert printing(*command, shell=">&-") == (0, "", "")


def test_a_run_without_standard_output(tmp_path: Path) -> None:
    script = written(tmp_path, "print('nobody reads this')\n")
    assert printing("run", "--nproc-per-node", "2", str(script), shell=">&-") == (0, "", "")


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_a_stream_of_the_programs_own_only_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Python takes a stream that does not say whether it is closed for open, as it ends."""
    text = """
        import sys
        class Told:
            def __init__(self, stream): self.stream = stream
            def write(self, text): self.stream.write(text.upper())
            def flush(self): pass
        sys.stdout = Told(sys.stdout)
        print("said")
    """
    program = str(written(tmp_path, text))
    assert cli.main(["run", "--torch", "numpy", "--nproc-per-node", "1", program]) == 0
    own = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert capsys.readouterr().out == own.stdout == "SAID\n"


def test_characters_that_the_locale_does_not_have() -> None:
    status, _, errors = printing("topology", "show", "sips2", **ASCII)
    said = (
        "torchemu: standard output: its encoding, ascii, has no '\\u2500\\u2500\\u2500'; PYTHONUTF8=1 makes it UTF-8\n"
    )
    assert (status, errors) == (1, said)


def test_files_are_utf_8_in_any_locale(tmp_path: Path) -> None:
    script, out = written(tmp_path, "import torch\n"), str(tmp_path / "out")
    assert printing("run", "--nproc-per-node", "2", "--trace", out, str(script), **ASCII)[0] == 0
    assert printing("report", out, **{**ASCII, "PYTHONIOENCODING": "utf-8"})[0] == 0
    assert "µ" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_log_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = written(tmp_path, "pass\n", "script.py")
    assert cli.main(["run", "--nproc-per-node", "1", "--log-dir", str(script), str(script)]) == 1
    assert capsys.readouterr().err == f"torchemu: --log-dir {script}: the folder cannot be made: File exists\n"


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
