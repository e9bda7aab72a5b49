"""Workers that a program launches itself: elastic_launch, torch.distributed.run and launch."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import launch, written

from torchemu.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torchemu.distributed.launcher.api import LaunchConfig, elastic_launch
from torchemu.distributed.run import (
    config_from_args,
    determine_local_world_size,
    parse_args,
    parse_min_max_nnodes,
)

CONFIG = """
    import os
    import torch
    import torch.distributed as dist
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    def config(workers, restarts=0):
        return LaunchConfig(1, 1, workers, run_id="seven", rdzv_endpoint="localhost:4567", max_restarts=restarts)
"""


def ran(folder: Path, text: str, *arguments: str) -> str:
    outcome = launch(*arguments, written(folder, CONFIG + text))
    assert (outcome.status, outcome.err) == (0, "")
    return outcome.out


@pytest.mark.parametrize("workers", [1, 3])
def test_what_workers_return_comes_back_by_rank(tmp_path: Path, workers: int) -> None:
    text = f"""
    def work(a, b):
        dist.init_process_group("gloo")
        t = torch.tensor([dist.get_rank() + 1.0])
        dist.all_reduce(t)
        names = ("LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "MASTER_PORT", "ROLE_NAME")
        return a + b, t.item(), [os.environ[name] for name in names]

    if __name__ == "__main__":
        print(elastic_launch(config({workers}), work)(1, 2))
    """
    total = workers * (workers + 1) / 2
    wanted = {r: (3, total, [str(r), str(workers), "seven", "4567", "default_role"]) for r in range(workers)}
    assert ran(tmp_path, text) == f"{wanted}\n"


def test_a_worker_that_fails(tmp_path: Path) -> None:
    text = """
    def work():
        if int(os.environ["RANK"]) == 1:
            raise ValueError("no data")

    if __name__ == "__main__":
        try:
            elastic_launch(config(3), work)()
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            print(error.name, sorted(error.failures), rank, failure.local_rank, failure.exitcode)
            print(str(error).count("ValueError: no data"), "work FAILED" in str(error))
    """
    assert ran(tmp_path, text) == "work [1] 1 1 1\n1 True\n"


def test_all_are_started_again_as_often_as_asked_for(tmp_path: Path) -> None:
    """The second attempt fails too, the third does not."""
    text = """
    def work():
        attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        if attempt < 2 and os.environ["RANK"] == "0":
            raise ValueError("not yet")
        return attempt, os.environ["TORCHELASTIC_MAX_RESTARTS"]

    if __name__ == "__main__":
        print(elastic_launch(config(2, 2), work)())
        try:
            elastic_launch(config(2, 1), work)()
        except ChildFailedError as error:
            print("failed", sorted(error.failures))
    """
    assert ran(tmp_path, text) == "{0: (2, '2'), 1: (2, '2')}\nfailed [0]\n"


def test_an_exit_status_is_the_failure_s(tmp_path: Path) -> None:
    text = """
    def work():
        if os.environ["RANK"] == "0":
            raise SystemExit(7)

    if __name__ == "__main__":
        try:
            elastic_launch(config(2), work)()
        except ChildFailedError as error:
            print(error.get_first_failure()[1].exitcode)
    """
    assert ran(tmp_path, text) == "7\n"


WORKER = "import os, sys\nprint('worker', os.environ['RANK'], os.environ['WORLD_SIZE'], sys.argv[1:], __name__)\n"


def test_main_runs_a_script(tmp_path: Path) -> None:
    worker = written(tmp_path, WORKER, "worker.py")
    text = f"""
    from torch.distributed.run import main

    if __name__ == "__main__":
        main(["--nproc-per-node", "2", "--standalone", {str(worker)!r}, "--lr", "3"])
    """
    out = ran(tmp_path, text, "--nproc-per-node", "1")
    assert sorted(out.splitlines()) == [f"worker {rank} 2 ['--lr', '3'] __main__" for rank in range(2)]


@pytest.mark.filterwarnings("ignore:The module torch.distributed.launch is deprecated:FutureWarning")
@pytest.mark.parametrize(("module", "extra"), [("run", ()), ("launch", ("--local-rank={}",))])
def test_launchers_run_as_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, extra: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, WORKER, "worker.py")
    outcome = launch("-m", f"torch.distributed.{module}", "--nproc-per-node", "2", "worker.py", "x")
    assert outcome.status == 0
    wanted = [[*(each.format(rank) for each in extra), "x"] for rank in range(2)]
    assert sorted(outcome.out.splitlines()) == [f"worker {r} 2 {args} __main__" for r, args in enumerate(wanted)]


def test_what_cannot_be_launched() -> None:
    def work() -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="min_nodes=2: a program that launches workers is on one node"):
        elastic_launch(LaunchConfig(2, 2, 1), work)()
    with pytest.raises(ValueError, match="wants an entrypoint"):
        elastic_launch(LaunchConfig(1, 1, 1), None)()
    with pytest.raises(ValueError, match="--no-python is not supported"):
        config_from_args(parse_args(["--no-python", "ls"]))


def test_another_program_than_pythons(tmp_path: Path) -> None:
    text = """
    if __name__ == "__main__":
        try:
            elastic_launch(config(1), "/bin/ls")("-l")
        except ChildFailedError as error:
            print("/bin/ls' is none" in str(error), error.name)
    """
    assert ran(tmp_path, text) == "True /bin/ls\n"


def test_arguments() -> None:
    assert [parse_min_max_nnodes(text) for text in ("2", "1:4")] == [(2, 2), (1, 4)]
    with pytest.raises(RuntimeError, match='nnodes=1:2:3 is not in "MIN:MAX" format'):
        parse_min_max_nnodes("1:2:3")
    with pytest.raises(ValueError, match="Unsupported nproc_per_node value: many"):
        determine_local_world_size("many")
    args = parse_args(["--nproc_per_node=4", "--rdzv-id", "job", "-m", "pack.train", "--flag"])
    config, _, arguments = config_from_args(args)
    assert (config.nproc_per_node, config.run_id, arguments) == (4, "job", ["-u", "-m", "pack.train", "--flag"])


def test_the_table_of_several_failures() -> None:
    early = ProcessFailure(0, 11, -9, "<N/A>", timestamp=2e-6)
    late = ProcessFailure(1, 12, 3, "<N/A>", "Traceback\nValueError: x", 5e-6)
    error = ChildFailedError("train.py", {1: late, 0: early})
    assert error.get_first_failure() == (0, early)
    assert early.message == "Signal 9 (SIGKILL) received by PID 11"
    width = len("  traceback : Signal 9 (SIGKILL) received by PID 11")
    assert str(error).splitlines() == [
        "",
        "=" * width,
        "train.py FAILED",
        "-" * width,
        "Failures:",
        "[0]:",
        "  time      : 5.000 us",
        "  rank      : 1 (local_rank: 1)",
        "  exitcode  : 3 (pid: 12)",
        "  error_file: <N/A>",
        "  traceback : Traceback",
        "  ValueError: x",
        "-" * width,
        "Root Cause (first observed failure):",
        "[1]:",
        "  time      : 2.000 us",
        "  rank      : 0 (local_rank: 0)",
        "  exitcode  : -9 (pid: 11)",
        "  error_file: <N/A>",
        f"  traceback : {early.message}",
        "=" * width,
    ]
