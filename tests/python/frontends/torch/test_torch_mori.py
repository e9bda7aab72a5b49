"""mori on the installed PyTorch's tensors: its gathers, and FSDP2's training with them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from conftest import ROOT
from launch import launch, written
from spans import beside

pytestmark = pytest.mark.shows("libraries: mori")

pytest.importorskip("torch")

FOLDER = ROOT / "tests" / "python" / "frontends" / "mori"


@pytest.mark.slow
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


def test_pointers_become_tensors_by_the_array_interface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORI_ENABLE_SDMA", "1")
    program = written(
        tmp_path,
        """
        import os
        import mori
        import pytest
        import torch
        import torch.distributed as dist

        class Described:
            def __init__(self, address, shape, typestr="<f4", **more):
                what = {"shape": shape, "typestr": typestr, "data": (address, False), "version": 3}
                self.__cuda_array_interface__ = what | more

        rank = int(os.environ["RANK"])
        torch.cuda.set_device(rank)
        dist.init_process_group("cpu:gloo,cuda:nccl")
        torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
        mori.shmem.shmem_torch_process_group_init("default")

        ptr = mori.shmem.shmem_malloc(64)
        whole = torch.as_tensor(Described(ptr, (4, 4)), device="cuda")
        whole.copy_(torch.arange(16.0).reshape(4, 4))
        assert whole.device == torch.device("cuda", rank) and whole.data_ptr() == ptr
        column = torch.as_tensor(Described(ptr + 4, (4,), strides=(16,)))
        assert column.tolist() == [1, 5, 9, 13] and column.stride() == (4,)
        bits = torch.as_tensor(Described(ptr, (2,), "<i4"), device="cuda")
        assert bits.tolist() == [0, 0x3F800000]

        x = torch.arange(6, device="cuda").reshape(2, 3)
        shared = torch.as_tensor(Described(x.data_ptr(), (3, 2), "<i8", strides=(8, 24)), device="cuda")
        assert shared.equal(x.t())
        shared[0, 1] = 9
        assert x[1, 0] == 9
        copied = torch.tensor(Described(x.data_ptr(), (2, 3), "<i8"), dtype=torch.float64)
        copied.zero_()
        assert x[1, 0] == 9 and copied.device == x.device
        assert torch.as_tensor(Described(x.data_ptr(), (2, 3), "<i8"), device="cpu").tolist() == x.tolist()
        assert torch.as_tensor(Described(0, (0, 3)), device="cuda").shape == (0, 3)

        for bad, error, words in (
            (Described(4096, (2,)), RuntimeError, "not registered with any CUDA device"),
            (Described(ptr, (17,)), RuntimeError, "end behind the memory"),
            (Described(ptr + 2, (2,)), ValueError, "cannot begin at byte 2"),
            (Described(ptr, (2,), strides=(6,)), ValueError, "whole elements"),
            (Described(ptr, (2,), mask=1), ValueError, "masked"),
        ):
            with pytest.raises(error, match=words):
                torch.as_tensor(bad, device="cuda")
        mori.shmem.shmem_free(ptr)
        mori.shmem.shmem_finalize()
        """,
    )
    done = launch("--torch", "real", "--nproc-per-node", "2", "--topology", "mi355x_2x4", program)
    assert (done.status, done.err) == (0, ""), done.err


def test_engines_gather_beside_the_products_of_fsdp2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORI_ENABLE_SDMA", "1")
    bench = ROOT / "benches" / "mori_fsdp2.py"
    done = launch(
        "--torch", "real", "--no-data", "--nnodes", "2", "--nproc-per-node", "4", "--topology", "mi355x_2x4",
        "--trace", tmp_path / "run", bench,
    )  # fmt: skip
    assert done.status == 0, done.err
    events = json.loads(gzip.decompress((tmp_path / "run" / "rank0.json.gz").read_bytes()))["traceEvents"]
    kernels = [e for e in events if e["ph"] == "X" and e.get("cat") == "kernel"]
    products = [e for e in kernels if e["name"] == "mm"]
    # Two steps of 8 products forward, and of two each backward but for the first, whose input wants no gradient.
    assert len(products) == 2 * (8 + 15)
    assert not [e for e in kernels if "AllGather" in e["name"] and e["name"] != "HierAllGather"]
    for engine in ("sdma copy", "nic copy"):
        copies = [e for e in kernels if e["name"].startswith(engine)]
        hidden = [e for e in copies if any(beside(e, p) for p in products)]
        assert len(hidden) > len(copies) / 2, (engine, len(hidden), len(copies))
