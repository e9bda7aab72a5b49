"""Workers that a program launches itself, by elastic_launch and torch.distributed.run, are ranks."""

import subprocess
import sys
from pathlib import Path

import pytest
from sampling import sampled

CONFIG = """
import os
import sys
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

def config(workers, restarts=0, **more):
    return LaunchConfig(1, 1, workers, run_id="seven", rdzv_backend="c10d", rdzv_endpoint="localhost:0",
                        max_restarts=restarts, monitor_interval=0.1, **more)
"""


def ran(folder, text, *before):
    script = folder / "launches.py"
    script.write_text(CONFIG + text)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", *before, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


RESULTS = """
def work(a, b):
    dist.init_process_group("gloo")
    total = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(total)
    dist.destroy_process_group()
    names = ("LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "ROLE_NAME", "TORCHELASTIC_MAX_RESTARTS")
    return a + b, total.item(), [os.environ[name] for name in names]

if __name__ == "__main__":
    for workers in (1, 3, 2):
        print(elastic_launch(config(workers, start_method="METHOD"), work)(1, 2))
"""


@pytest.mark.parametrize("method", sampled(["spawn", "fork"], 2))
def test_what_workers_return_comes_back_by_rank(tmp_path, method):
    wanted = [
        {rank: (3, n * (n + 1) / 2, [str(rank), str(n), "seven", "default_role", "0"]) for rank in range(n)}
        for n in (1, 3, 2)
    ]
    assert ran(tmp_path, RESULTS.replace("METHOD", method)) == "".join(f"{each}\n" for each in wanted)


FAILING = """
def work(good):
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if attempt < good and os.environ["RANK"] == "1":
        raise ValueError("no data") if good < 9 else SystemExit(7)
    return attempt

if __name__ == "__main__":
    print(elastic_launch(config(3, 2), work)(2))
    for good in (2, 9):
        try:
            elastic_launch(config(3, 1), work)(good)
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            print(error.name, sorted(error.failures), rank, failure.local_rank, failure.exitcode)
            print(str(error).count("ValueError: no data"), "work FAILED" in str(error), "in work" in str(error))
"""


@pytest.mark.slow
def test_all_are_started_again_as_often_as_asked_for(tmp_path):
    lines = ran(tmp_path, FAILING).splitlines()
    assert lines == [
        "{0: 2, 1: 2, 2: 2}", "work [1] 1 1 1", "1 True True", "work [1] 1 1 7", "0 True True",
    ]  # fmt: skip


WORKER = """
import os, sys, torch.distributed as dist
dist.init_process_group("gloo")
print("worker", os.environ["RANK"], dist.get_world_size(), sys.argv[1:], __name__)
sys.exit(0)
"""
COMMAND = """
from torch.distributed.run import main

if __name__ == "__main__":
    main(["--nproc-per-node", "2", "--standalone", WORKER, "--lr", "${local_rank}"])
    print(elastic_launch(config(2), sys.executable)("-u", WORKER, "3"))
    try:
        elastic_launch(config(1), "/bin/ls")("-l")
    except ChildFailedError as error:
        print("/bin/ls' is none" in str(error), error.name)
"""


def test_commands_run_a_script(tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)
    lines = ran(tmp_path, COMMAND.replace("WORKER", repr(str(worker)))).splitlines()
    assert sorted(lines[:2]) == [f"worker {rank} 2 ['--lr', '{rank}'] __main__" for rank in range(2)]
    assert sorted(lines[2:4]) == [f"worker {rank} 2 ['3'] __main__" for rank in range(2)]
    assert lines[4:] == ["{0: None, 1: None}", "True /bin/ls"]


TORCHRUN = """
import sys
from torch.distributed.run import main
if __name__ == "__main__":
    sys.exit(main())
"""  # as pip installs it


@pytest.mark.slow
@pytest.mark.parametrize("is_module", [True, False])
def test_torchrun_is_a_program_that_launches(tmp_path, is_module):
    worker, script = tmp_path / "worker.py", tmp_path / "torchrun"
    worker.write_text(WORKER)
    script.write_text(TORCHRUN)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real"]
    command += ["-m", "torch.distributed.run"] if is_module else [str(script)]
    done = subprocess.run(
        [*command, "--nproc-per-node=3", str(worker), "x"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"worker {rank} 3 ['x'] __main__" for rank in range(3)]


def test_what_cannot_be_launched(tmp_path):
    text = """
if __name__ == "__main__":
    for made in (LaunchConfig(2, 2, 1, run_id="x"), len), (config(1), None):
        try:
            elastic_launch(*made)([])
        except ValueError as error:
            print(error)
"""
    first, second = ran(tmp_path, text).splitlines()
    assert first.startswith("min_nodes=2: a program that launches workers is on one node")
    assert second == "launch_agent wants an entrypoint: a function, or a command"


OLDER = """
import argparse, torch, torch.distributed as dist
parser = argparse.ArgumentParser()
parser.add_argument("--local-rank", "--local_rank", type=int)
rank = parser.parse_args().local_rank
dist.init_process_group("nccl")
total = torch.ones(1, device=f"cuda:{rank}") * (rank + 1)
dist.all_reduce(total)
print(rank, total.item(), flush=True)
"""


def test_a_shells_script_starts_the_older_launcher(tmp_path: Path) -> None:
    (tmp_path / "older.py").write_text(OLDER)
    (tmp_path / "start.sh").write_text("python -W ignore -m torch.distributed.launch --nproc_per_node=$1 older.py\n")
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "start.sh", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["0 3.0", "1 3.0"]), done.stderr


UNGUARDED = """
import runpy, sys
print("once", flush=True)
sys.argv = ["torchrun", "--nproc_per_node", "2", "older.py"]
runpy.run_module("torch.distributed.run", run_name="__main__")
"""


def test_workers_of_torchrun_in_a_program_do_not_load_it(tmp_path: Path) -> None:
    asked = "int(__import__('os').environ['LOCAL_RANK'])"
    (tmp_path / "older.py").write_text(OLDER.replace("parser.parse_args().local_rank", asked))
    (tmp_path / "program.py").write_text(UNGUARDED)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "1", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["0 3.0", "1 3.0", "once"]), done.stderr
