"""Flags of torchrun's that mean something here: restarts, and files of what ranks print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from launch import launch, lines, written

from torchemu.launch import cli

RESTARTS = """
    import os, sys, time, torch, torch.distributed as dist
    dist.init_process_group()
    tries, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), dist.get_rank()
    print(f"rank {rank}, try {tries} of {os.environ['TORCHELASTIC_MAX_RESTARTS']}")
    print(f"error of {rank}", file=sys.stderr)
    dist.barrier()
    if rank == 1 and tries < 2:
        raise ValueError("too early")
"""


def files(folder: Path) -> dict[str, str]:
    return {str(f.relative_to(folder)): f.read_text() for f in sorted(folder.rglob("*")) if f.is_file()}


@pytest.mark.parametrize(("restarts", "status", "tries"), [(0, 1, 1), (1, 1, 2), (2, 0, 3), (5, 0, 3)])
def test_restarts(tmp_path: Path, restarts: int, status: int, tries: int) -> None:
    outcome = launch("--nproc-per-node=2", f"--max-restarts={restarts}", written(tmp_path, RESTARTS))
    assert outcome.status == status
    said = [f"rank {r}, try {t} of {restarts}" for t in range(tries) for r in range(2)]
    assert sorted(outcome.out.splitlines()) == sorted(said)
    assert re.findall(r"torchemu: restart (\d) of (\d)", outcome.err) == [
        (str(i), str(restarts)) for i in range(1, tries)
    ]
    assert outcome.err.count("FAILED") == (tries if status else tries - 1)


def test_a_killed_rank_is_there_again_after_a_restart(tmp_path: Path) -> None:
    script = """
        import os, time, torch, torch.distributed as dist
        from datetime import timedelta
        dist.init_process_group("gloo", timeout=timedelta(seconds=1))
        for step in range(4):
            time.sleep(0.001)
            x = torch.ones(1)
            dist.all_reduce(x)
        print(os.environ["TORCHELASTIC_RESTART_COUNT"], x.item())
        """
    faults = written(tmp_path, "faults: [{kill: 1, at: 2e6}]", "faults.yaml")
    outcome = launch("--nproc-per-node=3", "--virtual-clock", "--faults", faults, "--max-restarts=1",
                     written(tmp_path, script))  # fmt: skip
    assert (outcome.status, outcome.out) == (0, "1 3.0\n" * 3)


def test_files_of_all_that_ranks_print(tmp_path: Path) -> None:
    outcome = launch("--nproc-per-node=2", "--max-restarts=2", "--log-dir", tmp_path / "logs",
                     written(tmp_path, RESTARTS))  # fmt: skip
    assert outcome.out.count("rank 0, try") == 3 and outcome.err.count("error of 1") == 3
    found = files(tmp_path / "logs")
    assert list(found) == [
        f"attempt_{t}/{r}/{stream}.log" for t in range(3) for r in range(2) for stream in ("stderr", "stdout")
    ]
    assert found["attempt_2/1/stdout.log"] == "rank 1, try 2 of 2\n"
    assert found["attempt_0/1/stderr.log"].startswith("error of 1\nTraceback")
    assert found["attempt_0/1/stderr.log"].endswith("ValueError: too early\n")
    assert found["attempt_2/1/stderr.log"] == "error of 1\n"


@pytest.mark.parametrize(
    ("flags", "shown", "kept"),
    [
        (["-r", "3"], set(), {"0/stdout", "0/stderr", "1/stdout", "1/stderr"}),
        (["--redirects", "1"], {"err 0", "err 1"}, {"0/stdout", "1/stdout"}),
        (["-t", "2"], {"out 0", "out 1", "err 0", "err 1"}, {"0/stderr", "1/stderr"}),
        (["-r", "0:1", "--tee", "1:1"], {"err 0", "out 1", "err 1"}, {"0/stdout", "1/stdout"}),
        (["-r", "3", "--tee", "1:1"], {"out 1"}, {"0/stdout", "0/stderr", "1/stdout", "1/stderr"}),
        (["-r", "0"], {"out 0", "out 1", "err 0", "err 1"}, set()),
    ],
)
def test_streams(tmp_path: Path, flags: list[str], shown: set[str], kept: set[str]) -> None:
    script = "import os, sys\nr = os.environ['RANK']\nprint('out', r)\nprint('err', r, file=sys.stderr)\n"
    outcome = launch("--nproc-per-node=2", "--log-dir", tmp_path / "logs", *flags, written(tmp_path, script))
    assert outcome.status == 0
    assert {*outcome.out.splitlines(), *outcome.err.splitlines()} == shown
    found = files(tmp_path / "logs")
    assert set(found) == {f"attempt_0/{name}.log" for name in kept}
    for name, text in found.items():
        _, rank, stream = name.split("/")
        assert text == f"{stream[3:6]} {rank}\n"


def test_files_without_a_folder(tmp_path: Path) -> None:
    outcome = launch("--nproc-per-node=1", "-r", "3", written(tmp_path, "print('hello')"))
    folder = re.fullmatch(r"torchemu: what ranks print goes to (.*)\n", outcome.err)
    assert folder is not None and (Path(folder[1]) / "attempt_0/0/stdout.log").read_text() == "hello\n"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--node-rank", "1"], "--node-rank is not supported: one command runs all nodes"),
        (["--node_rank=1"], "is not supported: one command runs all nodes"),
        (["--max-restarts", "often"], "'often' is not a number of times"),
        (["-r", "4"], "'4' is neither a number, 0 to 3, nor a list"),
        (["-t", "0:x"], "'0:x' is neither"),
    ],
)
def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", *flags, str(written(tmp_path, "pass"))])
    assert ended.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--node_rank", "0", "--nnodes=1"], ["--node-rank=0"], ["--use-env"], ["--use_env"]])
def test_what_says_what_is_so_anyway(tmp_path: Path, flags: list[str]) -> None:
    program = written(tmp_path, "import os; print(os.environ['GROUP_RANK'], os.environ['LOCAL_RANK'])")
    assert lines(launch("--nproc-per-node=2", *flags, program)) == ["0 0", "0 1"]


def test_restarts_of_explored_schedules(tmp_path: Path) -> None:
    outcome = launch("--max-restarts=2", "--explore=3", written(tmp_path, "pass"))
    assert outcome.status == 1 and "--max-restarts does nothing with --explore" in outcome.err


@pytest.mark.parametrize(
    "own", ["--sched cosine", "--sched=step", "--log x --sig", "--re 4 --t 0.1 --no", "--schedule x --nproc 3 -- -m"]
)
def test_flags_of_the_script_may_begin_as_several_of_the_commands_do(tmp_path: Path, own: str) -> None:
    outcome = launch("--nproc-per-node=1", written(tmp_path, "import sys; print(sys.argv[1:])"), *own.split())
    assert (outcome.status, outcome.out) == (0, f"{own.split()}\n"), outcome.err
