"""mori on the installed PyTorch's tensors: its gathers, and FSDP2's training with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT
from launch import launch, written

pytestmark = pytest.mark.shows("libraries: mori")

pytest.importorskip("torch")

FOLDER = ROOT / "tests" / "python" / "frontends" / "mori"


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(("program", "said"), [("gather_cases.py", "all equal"), ("fsdp_cases.py", "equal losses")])
def test_two_nodes(program: str, said: str, ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORI_ENABLE_SDMA", "1")
    done = launch(
        "--torch", "real", "--nnodes", "2", "--nproc-per-node", str(ranks), "--topology", "mi355x_2x4", FOLDER / program
    )
    assert (done.status, done.out.splitlines()) == (0, [said] * (2 * ranks)), done.err


SWEEP = """
import os
import mori
import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world, device_id=torch.device("cuda", rank % 2))
torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
mori.shmem.shmem_torch_process_group_init("default")
for mib in map(int, os.environ["SIZES"].split()):
    n = mib << 18
    h = mori.ccl.HierAllGather(rank, world, 4 * n, 4 * n * world)
    x, out = torch.ones(n, device="cuda"), torch.empty(n * world, device="cuda")
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    dist.barrier()
    start.record()
    h(x, out, n)
    h.enqueue_param_contiguous(x, out, n, [n // 2, n // 2], [0, n // 2])
    end.record()
    torch.cuda.synchronize()
    if rank == 0:
        print(mib, start.elapsed_time(end))
    del h
"""


def test_a_run_without_data_takes_the_same_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORI_ENABLE_SDMA", "1")
    monkeypatch.setenv("MORI_SHMEM_HEAP_SIZE", "64G")
    program = written(tmp_path, SWEEP)
    arguments = ("--torch", "real", "--nnodes", "2", "--nproc-per-node", "2", "--topology", "mi355x_2x4", program)
    monkeypatch.setenv("SIZES", "1 9")
    whole, hollow = launch(*arguments), launch("--no-data", *arguments)
    assert (whole.status, hollow.status) == (0, 0), whole.err + hollow.err
    assert whole.out == hollow.out
    monkeypatch.setenv("SIZES", "512 4096")  # more than memory holds
    large = launch("--no-data", *arguments)
    assert large.status == 0, large.err
    times = {int(mib): float(ms) for mib, ms in map(str.split, large.out.splitlines())}
    assert times[4096] == pytest.approx(8 * times[512], rel=0.01)


@pytest.mark.parametrize("program", ["io_cases.py", "proxy_cases.py"])
def test_transfers_that_hosts_post(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORI_ENABLE_SDMA", "1")
    done = launch(
        "--torch", "real", "--nnodes", "2", "--nproc-per-node", "2", "--topology", "mi355x_2x4", "--check",
        FOLDER / program,
    )  # fmt: skip
    assert (done.status, done.out.splitlines()) == (0, ["all equal"] * 4), done.err


@pytest.mark.parametrize("nodes", [1, 2])
def test_graphs(nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORI_ENABLE_SDMA", "1")
    done = launch(
        "--torch", "real", "--nnodes", str(nodes), "--nproc-per-node", "2", "--topology", "mi355x_2x4", "--check",
        FOLDER / "graph_cases.py",
    )  # fmt: skip
    assert (done.status, done.out.splitlines()) == (0, ["all equal"] * 2 * nodes), done.err
