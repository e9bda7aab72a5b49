"""torch.cuda as scripts use it: the devices of a rank's node, their memory and what they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import Outcome, launch, lines, written

pytestmark = pytest.mark.shows("PyTorch: torch.cuda: devices and memory")

BEGIN = """
    import os
    import torch
    import torch.distributed as dist
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
"""


@pytest.mark.parametrize(("nodes", "per_node"), [(1, 4), (2, 8), (3, 2)])
@pytest.mark.parametrize("device", ["local", "f'cuda:{local}'", "torch.device('cuda', local)"])
def test_devices_are_those_of_the_node(tmp_path: Path, nodes: int, per_node: int, device: str) -> None:
    """LOCAL_RANK is the number of a rank's device, as with torchrun."""
    text = f"""
    torch.cuda.set_device({device})
    dist.init_process_group("nccl")
    here, there, said = torch.ones(2).cuda(), torch.ones(2, device="cuda"), torch.ones(2, device=f"cuda:{{local}}")
    for t in (here, there, said):
        dist.all_reduce(t)
        assert t.tolist() == [dist.get_world_size()] * 2
    assert here.device == there.device == said.device == torch.device("cuda", local)
    assert torch.cuda.current_stream().device == here.device
    assert torch.cuda.current_device() == local
    print(rank, torch.cuda.device_count())
    """
    flags = ["--nnodes", str(nodes), "--nproc-per-node", str(per_node)]
    assert lines(launch(*flags, written(tmp_path, BEGIN + text))) == sorted(
        f"{rank} {per_node}" for rank in range(nodes * per_node)
    )


def test_devices_that_are_not_there(tmp_path: Path) -> None:
    text = """
    for device, error in ((2, ValueError), ("cuda:2", ValueError), (-1, ValueError), ("cpu", RuntimeError)):
        try:
            torch.cuda.set_device(device)
        except error as caught:
            print(rank, caught)
    """
    out = lines(launch("--nnodes", "2", "--nproc-per-node", "2", written(tmp_path, BEGIN + text)))
    assert len(out) == 16
    assert all(f"{rank} cpu is the host, and not a simulated device" in out for rank in range(4))
    assert sum("has 2 SIPs (devices 0 to 1)" in line for line in out) == 12


def test_another_ranks_device_is_an_error(tmp_path: Path) -> None:
    text = """
    dist.init_process_group("nccl")
    dist.all_reduce(torch.ones(1, device="cuda:0"))
    """
    outcome = launch("--nnodes", "2", "--nproc-per-node", "2", written(tmp_path, BEGIN + text))
    assert "[rank1]: ValueError: `tensor` is on device 0, but rank 1 is on device 1; call" in outcome.err
    assert "rank 3: ValueError: `tensor` is on device 0, but rank 3 is on device 1; call" in outcome.err
    assert "rank 2" not in outcome.err.replace("ranks 2", "")


# -- memory


def blocks(nbytes: int) -> int:
    """Memory is given out in blocks of 512 bytes."""
    return (nbytes + 511) // 512 * 512


def test_memory_is_that_of_the_ranks_tensors(tmp_path: Path) -> None:
    text = """
    from torch.cuda import max_memory_allocated, memory_allocated
    torch.cuda.set_device(local)
    own = torch.zeros(100 + rank, 7, device="cuda")
    seen = [memory_allocated()]
    half = own[:50].view(-1)  # a view takes nothing
    seen.append(memory_allocated(local))
    other = own * 2
    seen.append(memory_allocated(f"cuda:{local}"))
    del own
    seen.append(memory_allocated())
    del half, other
    big = torch.empty(1 << 20, device=local)
    host = torch.zeros(1000), torch.zeros(1000, device="cpu")
    seen.append(memory_allocated())
    del big
    seen += [memory_allocated(), max_memory_allocated(), memory_allocated(1 - local)]
    torch.cuda.reset_peak_memory_stats()
    seen += [max_memory_allocated(), torch.cuda.memory_reserved()]
    free, total = torch.cuda.mem_get_info()
    assert free == total == torch.cuda.get_device_properties(local).total_memory == 16 * 24 * 2**30
    torch.cuda.empty_cache()
    print(rank, *seen)
    """
    for line in lines(launch("--nproc-per-node", "2", written(tmp_path, BEGIN + text))):
        rank, *seen = map(int, line.split())
        one, big = blocks((100 + rank) * 7 * 4), 4 << 20
        assert seen == [one, one, 2 * one, 2 * one, big, 0, big, 0, 0, 0]


def test_statistics(tmp_path: Path) -> None:
    text = """
    kept = [torch.ones(n, device="cuda") for n in (1, 128, 129)]
    kept.pop()
    stats = torch.cuda.memory_stats()
    print(*(stats[f"{name}.all.{which}"] for name in ("allocated_bytes", "reserved_bytes")
            for which in ("current", "peak", "allocated", "freed")), stats["allocation.all.current"])
    assert "| Peak usage         |       2.00 KiB |" in torch.cuda.memory_summary()
    """
    outcome = launch("--nproc-per-node", "1", written(tmp_path, BEGIN + text))
    assert lines(outcome) == ["1024 2048 2048 1024 1024 2048 2048 1024 2"]


def test_memory_runs_out(tmp_path: Path) -> None:
    """A rank may take what its device's cubes have, or a share; no memory of the host is taken before that is clear."""
    text = """
    def tried(make):
        try:
            return make()
        except torch.cuda.OutOfMemoryError as error:
            print(error)
    tried(lambda: torch.empty(2**40, device="cuda"))
    torch.cuda.set_per_process_memory_fraction(2.0**-8)
    t = torch.zeros(3 * 2**18, device="cuda")
    tried(lambda: torch.empty(2**18 + 1, device="cuda"))
    tried(lambda: t + 1)
    del t
    torch.empty(2**20, device="cuda")
    torch.cuda.set_per_process_memory_fraction(2.0**-9)
    tried(lambda: torch.empty(2**20, device="cuda"))
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
    """
    topology = written(
        tmp_path,
        "name: small\nsystem: {sips: {count: 1}}\nsip: {cube_mesh: {w: 1, h: 1}}\ncube: {hbm: {capacity_gib: 1}}\n",
        "t.yaml",
    )
    flags = ["--nproc-per-node", "1", "--topology", str(topology)]
    outcome = launch(*flags, written(tmp_path, BEGIN + text))
    assert (outcome.status, outcome.err) == (0, "")
    for line, amounts in zip(
        outcome.out.splitlines(),
        (("4.00 TiB", "1.00 GiB"), ("1.00 MiB", "1.00 MiB"), ("3.00 MiB", "1.00 MiB"), ("4.00 MiB", "2.00 MiB")),
        strict=True,
    ):
        tried, free = amounts
        text = (
            f"CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of 1.00 GiB of which {free} is"
        )
        assert line.startswith(text)


@pytest.mark.parametrize(("fraction", "error"), [("1", TypeError), ("-0.1", ValueError), ("1.5", ValueError)])
def test_wrong_fractions(tmp_path: Path, fraction: str, error: type[Exception]) -> None:
    outcome = launch(written(tmp_path, f"import torch\ntorch.cuda.set_per_process_memory_fraction({fraction})"))
    assert f"[rank0]: {error.__name__}: Invalid " in outcome.err


# -- what programs ask for


def test_what_devices_are(tmp_path: Path) -> None:
    text = """
    import torch.version
    assert torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.is_bf16_supported()
    assert torch.version.cuda and torch.version.hip is None
    assert torch.__version__ >= "2.1" and torch.__version__ >= (2, 11) and torch.__version__ < "2.12.0a0"
    assert torch.__version__.split("+")[0] == "2.11.0"
    properties = torch.cuda.get_device_properties("cuda")
    assert (properties.major, properties.minor) == torch.cuda.get_device_capability() >= (8, 0)
    print(properties.name, properties.multi_processor_count, torch.cuda.get_device_name(1))
    torch.cuda.init(), torch.cuda.ipc_collect(), torch.cuda.manual_seed_all(3)
    assert torch.cuda.can_device_access_peer(0, 1) and not torch.cuda.can_device_access_peer(1, 1)
    """
    outcome = launch("--nproc-per-node", "1", "--topology", "sips2", written(tmp_path, BEGIN + text))
    (line,) = lines(outcome)
    name = line.partition(")")[0] + ")"
    pes = line.removeprefix(name).split()[0]
    assert name.startswith("AHBM SIP (sips2") and line == f"{name} {pes} {name}" and int(pes) > 0


def test_current_device_for_a_while(tmp_path: Path) -> None:
    text = """
    with torch.cuda.device(1):
        inner = torch.ones(1, device="cuda")
        with torch.cuda.device(None), torch.cuda.device(-1):
            assert torch.cuda.current_device() == 1
        with torch.cuda.device("cuda:0"):
            assert torch.cuda.current_device() == 0
        assert torch.cuda.current_device() == 1
    assert torch.cuda.current_device() == 0 and inner.device.index == 1
    with torch.cuda.device_of(inner):
        assert torch.cuda.current_device() == 1
    with torch.cuda.device_of(torch.ones(1, device="cpu")):
        assert torch.cuda.current_device() == 0
    """
    assert launch("--nproc-per-node", "1", written(tmp_path, BEGIN + text)) == Outcome(0, "", "")


def test_memory_in_traces(tmp_path: Path) -> None:
    """A counter has what is in use, from the moment at which the program has it."""
    text = """
    import json
    torch.cuda.set_device(local)
    with torch.profiler.profile() as prof:
        a = torch.zeros(1000 * (rank + 1), device="cuda")
        b = a + 1
        del a, b
        c = torch.zeros(1, device="cuda")
    prof.export_chrome_trace(f"t{rank}.json")
    with open(f"t{rank}.json") as file:
        events = json.load(file)["traceEvents"]
    print(rank, *(e["args"]["bytes"] for e in events if e["ph"] == "C" and e["name"] == "memory allocated"))
    """
    program = written(tmp_path, BEGIN + "    os.chdir(os.path.dirname(os.path.abspath(__file__)))\n" + text)
    sizes = [blocks(4000 * (r + 1)) for r in range(2)]
    assert lines(launch("--nproc-per-node", "2", program)) == [f"{r} {n} {2 * n} 0 512" for r, n in enumerate(sizes)]


def test_all_of_torch_distributed_on_several_nodes(tmp_path: Path) -> None:
    """Functions that make tensors themselves make them on the rank's own device, whatever its number."""
    text = """
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    size = dist.get_world_size()
    dist.barrier()
    dist.barrier(device_ids=[local])
    everything = [None] * size
    dist.all_gather_object(everything, rank)
    assert everything == list(range(size))
    told = [rank]
    dist.broadcast_object_list(told, src=size - 1)
    assert told == [size - 1]
    mine = [None]
    dist.scatter_object_list(mine, [f"for {r}" for r in range(size)] if rank == 1 else None, src=1)
    assert mine == [f"for {rank}"]
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(rank, gathered)
    assert rank or gathered == everything
    if rank == 0:
        dist.send_object_list([{"a": 1}], dst=size - 1)
    if rank == size - 1:
        dist.recv_object_list(told, src=0)
        assert told == [{"a": 1}]
    t = torch.full((2,), rank, device="cuda")
    request = dist.isend(t, (rank + 1) % size)
    other = torch.empty_like(t)
    assert dist.recv(other, (rank - 1) % size) == (rank - 1) % size
    request.wait()
    assert other.tolist() == [(rank - 1) % size] * 2 and other.device == torch.device("cuda", local)
    node = dist.new_group(list(range(rank - local, rank - local + 2)), use_local_synchronization=True)
    dist.all_reduce(t, group=node)
    assert t.tolist() == [2 * (rank - local) + 1] * 2
    with dist._coalescing_manager(device=t.device):
        for part in (t, other):
            dist.all_reduce(part)
    torch.save(t, f"t{rank}.pt")
    assert torch.load(f"t{rank}.pt", map_location=f"cuda:{local}").device == t.device
    stream = torch.cuda.Stream(local)
    stream.wait_stream(torch.cuda.current_stream(local))
    torch.cuda.synchronize(local)
    """
    program = written(tmp_path, BEGIN + "    os.chdir(os.path.dirname(os.path.abspath(__file__)))\n" + text)
    assert launch("--nnodes", "3", "--nproc-per-node", "2", program) == Outcome(0, "", "")
