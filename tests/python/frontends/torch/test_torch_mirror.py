"""Ranks that stand for others: the times of runs of every rank, and what is said where they do not do the same."""

import subprocess
import sys
from pathlib import Path

import pytest
from sampling import sampled

pytestmark = pytest.mark.shows("PyTorch: one rank for all that do the same")

pytest.importorskip("torch", reason="no PyTorch is installed here")

PROGRAMS = Path(__file__).with_name("timed.py")


def run(*args):
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    said = [line for line in done.stderr.splitlines() if line.startswith("torchemu: --mirror")]
    return done, said


ONE, STAGES, PLACES = 0, ["2 ranks run: send to rank"], ["8 ranks run: "]


@pytest.mark.parametrize(
    "program, ranks, steps",
    sampled([("fsdp", 8, ONE), ("ddp", 8, ONE), ("tp", 8, ONE), ("tp_fsdp", 16, ONE), ("fsdp", 16, None)], 5),
)
def test_times_are_those_of_every_rank(program, ranks, steps):
    """steps says in which steps more ranks had to run; None for whichever."""
    where = ("--nnodes", ranks // 8, "--nproc-per-node", 8, "--topology", "nodes2x8", PROGRAMS, program)
    whole, _ = run("--no-data", *where)
    mirrored, said = run("--mirror", *where)
    assert mirrored.returncode == 0, mirrored.stderr
    assert mirrored.stdout == whole.stdout and whole.stdout.count(" ps\n") == 3
    if steps is not None:
        assert len(said) == steps, said


@pytest.mark.slow
def test_stages_of_a_pipeline_run_by_one_rank_each():
    where = ("--nproc-per-node", 8, "--topology", "nodes2x8", PROGRAMS, "pipeline")
    whole, _ = run("--no-data", *where)
    mirrored, said = run("--mirror", *where)
    assert mirrored.stdout == whole.stdout and whole.stdout.count(" ps\n") == 3, mirrored.stderr
    assert len(said) == 1 and said[0].startswith("torchemu: --mirror: 2 ranks run: "), said


DIVERGING = {
    "more": "if rank == 7: dist.all_reduce(x, group=own)",
    "other": "dist.all_reduce(x if rank < 4 else x[:2].clone())",
    "kernel": "if rank > 3: x.add_(1)",
    "fewer": "if rank < 4: x.add_(1)",
}


@pytest.mark.parametrize("name", sampled(DIVERGING, 4))
def test_every_rank_runs_where_ranks_do_not_do_the_same(name, tmp_path):
    script = tmp_path / "diverges.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('nccl')\nrank = dist.get_rank()\ntorch.cuda.set_device(rank)\n"
        "own = dist.new_group([7])\nx = torch.ones(4, device='cuda')\n"
        f"{DIVERGING[name]}\ntorch.cuda.synchronize()\nprint(rank)\n"
    )
    done, said = run("--mirror", "--nproc-per-node", 8, script)
    assert len(said) == 1 and said[0].startswith("torchemu: --mirror: every rank runs: "), done.stderr
    if name == "other":  # which is wrong, and now told of the ranks that do it
        assert done.returncode == 1 and "disagree" in done.stderr
    else:
        assert done.returncode == 0 and sorted(done.stdout.split())[-8:] == list("01234567"), done.stderr


def test_flags_that_tell_ranks_apart_are_refused():
    done, _ = run("--mirror", "--explore", 2, "--nproc-per-node", 2, PROGRAMS, "ddp")
    assert done.returncode != 0 and "--explore tells ranks apart" in done.stderr
