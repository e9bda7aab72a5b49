"""mori's all-gathers on several shapes of nodes, checked and with effects moved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from launch import launch, written
from spans import beside

pytestmark = pytest.mark.shows("libraries: mori")

FOLDER = Path(__file__).parent


@pytest.fixture(autouse=True)
def with_sdma(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORI_ENABLE_SDMA", "1")


def topology(folder: Path, nodes: int, ranks: int) -> Path:
    """A topology of nodes of so many ranks, with AMD's engines."""
    file = folder / "t.yaml"
    system = f"nodes: {{count: {nodes}}}, sips: {{count: {nodes * ranks}, connect: fully_connected}}"
    network = ", network: {nic: {bandwidth: 49.6, latency: 1500}}" if nodes > 1 else ""
    sdma, nic = "{packet: 2000, latency: 800, bandwidth: 60.9}", "{queues: 8, packet: 300, latency: 4000, ack: 1500}"
    file.write_text(f"name: test\nsystem: {{{system}{network}}}\nengines: {{sdma: {sdma}, nic: {nic}}}\n")
    return file


STRICT = ("--check", "--reorder", "5")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "flags"),
    [((1, 4), ()), ((2, 2), ("--check",)), ((2, 2), STRICT), ((2, 4), ()), ((3, 2), STRICT), ((4, 1), ())],
    ids=lambda x: "".join(map(str, x)),
)
def test_gathers_are_those_of_the_default(shape: tuple[int, int], flags: tuple[str, ...], tmp_path: Path) -> None:
    nodes, ranks = shape
    done = launch(
        "--nnodes", str(nodes), "--nproc-per-node", str(ranks), "--topology", topology(tmp_path, nodes, ranks),
        "--torch", "numpy", *flags, FOLDER / "gather_cases.py",
    )  # fmt: skip
    assert (done.status, done.err) == (0, ""), done.err
    assert done.out.splitlines() == ["all equal"] * (nodes * ranks)


@pytest.mark.slow
def test_nodes_of_one_node_are_joined_by_its_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_SIZE", "2")
    done = launch(
        "--nproc-per-node", "4", "--topology", topology(tmp_path, 1, 4), "--torch", "numpy", "--check",
        FOLDER / "gather_cases.py",
    )  # fmt: skip
    assert (done.status, done.err) == (0, ""), done.err


@pytest.mark.parametrize("flags", [(), ("--check",), STRICT], ids=" ".join)
def test_collectives_of_a_node_and_symmetric_memory(flags: tuple[str, ...], tmp_path: Path) -> None:
    done = launch(
        "--nproc-per-node", "4", "--topology", topology(tmp_path, 1, 4), "--torch", "numpy", *flags,
        FOLDER / "flat_cases.py",
    )  # fmt: skip
    assert (done.status, done.err) == (0, ""), done.err
    assert done.out.splitlines() == ["all equal"] * 4


@pytest.mark.parametrize(
    ("program", "flags", "intra"),
    [("io_cases.py", (), ""), ("io_cases.py", STRICT, ""), *(("proxy_cases.py", STRICT, sdma) for sdma in "01")],
)
def test_transfers_that_hosts_post(
    program: str, flags: tuple[str, ...], intra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MORI_HOSTPROXY_SDMA_INTRA", intra)
    done = launch(
        "--nnodes", "2", "--nproc-per-node", "2", "--topology", topology(tmp_path, 2, 2), "--torch", "numpy", *flags,
        FOLDER / program,
    )  # fmt: skip
    assert (done.status, done.err) == (0, ""), done.err
    assert done.out.splitlines() == ["all equal"] * 4


@pytest.mark.parametrize("ranks", [4, 8])
def test_calls_without_barriers_between_them_are_a_race(
    ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--nproc-per-node", str(ranks), "--topology", topology(tmp_path, 1, ranks), "--torch", "numpy")
    monkeypatch.setenv("SAFE", "1")
    assert launch(*arguments, "--check", FOLDER / "race_cases.py").status == 0
    monkeypatch.setenv("SAFE", "0")
    done = launch(*arguments, "--check", FOLDER / "race_cases.py")
    assert done.status != 0
    assert "window reused without a phase" in done.err
    assert "gather of node 0's block, push" in done.err


UNSAFE = {
    "a gather that does not wait for the ring": (
        "planted_cases.py", 2, {"PLANTED": "hasty"}, ("unordered read", "copy out of the ring")
    ),
    "a flag on another queue pair than its data": (
        "gather_cases.py", 2, {"MORI_HIER_DEEP_PIPE_QUIET": "0"}, ("RaceError", "ring step 0, send", "gather of node")
    ),
    "two calls under way with one slot": (
        "proxy_cases.py", 2, {"MORI_HOSTPROXY_ASYNC_RING": "1"}, ("RaceError", "HostProxyHierAllGather")
    ),
    "words that are cleared while the next call's signal is under way": (
        "planted_cases.py", 1, {"PLANTED": "words"}, ("clear a word only when no signal to it can be under way",)
    ),
}  # fmt: skip


@pytest.mark.parametrize("variant", UNSAFE)
def test_unsafe_variants_are_races(variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, nodes, environment, wanted = UNSAFE[variant]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = launch(
        "--nnodes", str(nodes), "--nproc-per-node", str(4 // nodes), "--torch", "numpy", "--check",
        "--topology", topology(tmp_path, nodes, 4 // nodes), FOLDER / program,
    )  # fmt: skip
    assert done.status != 0
    assert all(text in done.err for text in wanted), done.err


def test_sdma_without_the_switch_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MORI_ENABLE_SDMA")
    monkeypatch.setenv("SAFE", "1")
    done = launch(
        "--nproc-per-node", "2", "--topology", topology(tmp_path, 1, 2), "--torch", "numpy", FOLDER / "race_cases.py"
    )
    wanted = "IntraNodeSubGroupAllgatherSdma requires MORI_ENABLE_SDMA=1 in the process environment (got None)"
    assert done.status != 0 and wanted in done.err


def test_a_trace_has_lanes_of_engines_beside_products(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACE", str(tmp_path / "trace.json"))
    program = written(
        tmp_path,
        """
        import os
        import mori
        import torch
        import torch.distributed as dist
        from torch.profiler import ProfilerActivity, profile

        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world)
        torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
        mori.shmem.shmem_torch_process_group_init("default")
        n = 1 << 16
        gather = mori.ccl.HierAllGather(rank, world, 4 * n, 4 * n * world, slice_min_bytes=0)
        x, out = torch.ones(n, device="cuda"), torch.zeros(n * world, device="cuda")
        a, side = torch.ones(256, 256, device="cuda"), torch.cuda.Stream()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            gather(x, out, n, side)
            for _ in range(40):
                a = a @ a
            torch.cuda.synchronize()
        if rank == 0:
            seen.export_chrome_trace(os.environ["TRACE"])
        """,
    )
    done = launch(
        "--nnodes", "2", "--nproc-per-node", "2", "--topology", topology(tmp_path, 2, 2), "--torch", "numpy", program
    )
    assert done.status == 0, done.err
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    lanes = {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {"SDMA to rank 0", "SDMA to rank 1", "NIC to rank 2"} <= lanes
    spans = {
        name: [e for e in events if e["ph"] == "X" and e["name"].startswith(name)] for name in ("sdma", "nic", "matmul")
    }
    assert all(spans.values())
    assert any(beside(e, p) for e in spans["nic"] for p in spans["matmul"])
