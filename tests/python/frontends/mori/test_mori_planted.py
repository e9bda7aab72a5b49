"""Calls of mori in progress: right programs are clean, and uses before the wait are reported by their lines."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from launch import launch
from planted import marks

pytestmark = pytest.mark.shows("libraries: mori")

TORCHES = ["numpy", *(["real"] if find_spec("torch") else [])]

BEGIN = """
import os
import mori
import torch
import torch.distributed as dist
from mori.io import BackendType, EngineDesc, IOEngine, IOEngineConfig, MemoryDesc, RdmaBackendConfig
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world)
torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
mori.shmem.shmem_torch_process_group_init("default")
n = 1000
x, out = torch.full((n,), float(rank), device="cuda"), torch.zeros(n * world, device="cuda")
def exchanged(packed):
    found = [None] * world
    dist.all_gather_object(found, packed)
    return found
"""

PROGRAMS = {
    "gather in two steps": """
gather = mori.ccl.AllgatherSdma(rank, world, 4 * n, 4 * n * world)
for step in range(3):
    gather.start_async(x, out, n)  #! output before the wait, input before the wait
    beside = torch.ones(n, device="cuda") * 2
    y = x + 1  # reading the input is right
    z = out + 1  #+ output before the wait  #! output before the wait
    x.fill_(step)  #+ input before the wait  #! input before the wait
    gather.wait_async()
    x.fill_(step)
    z = out + 1
print(z.sum())
""",
    "all to all in two steps, synchronized": """
exchange = mori.ccl.All2allSdma(rank, world, 4 * n * world, 4 * n * world)
x = torch.full((n * world,), float(rank), device="cuda")
exchange.start_async(x, out, n)  #! only synchronized
torch.cuda.synchronize()
exchange.wait_async()  #- only synchronized
z = out + 1  #! only synchronized
print(z.sum())
""",
    "sum in two steps": """
reduce = mori.ccl.AllreduceSdma(rank, world, 1 << 16, 1 << 16, dtype=torch.float32)
total = torch.zeros(n, device="cuda")
reduce.start_async(x, total, n)  #! no wait
reduce.wait_async()  #- no wait
z = total * 2  #! no wait
print(z.sum())
""",
    "peers' parts, gathered by copies on a side stream": """
own, s, cur = mori.shmem.mori_shmem_create_tensor((n,), torch.float32), torch.cuda.Stream(), torch.cuda.current_stream()
peers = [mori.shmem.symm_mori_shmem_tensor(own, p) for p in range(world)]
for step in range(3):
    own.fill_(10 * step + rank)  #! no barrier, no event, no second barrier
    mori.shmem.shmem_barrier_on_stream()  #- no barrier
    s.wait_stream(cur)  #- no event
    with torch.cuda.stream(s):
        for p in range(world): out[p * n : (p + 1) * n].copy_(peers[p])  #! *
    cur.wait_stream(s)  #- not joined
    found = (out * 1).tolist()[::n]  #! not joined
    mori.shmem.shmem_barrier_on_stream()  #- no second barrier
    assert found == [10 * step + p for p in range(world)], found
""",
    "rounds of transfers": """
engine = IOEngine(key=f"engine {rank}", config=IOEngineConfig(host="127.0.0.1", port=8080))
engine.create_backend(BackendType.RDMA, RdmaBackendConfig())
box, following = torch.zeros(n, device="cuda"), (rank + 1) % world
engines = exchanged(engine.get_engine_desc().pack())
local, home = engine.register_torch_tensor(x), engine.register_torch_tensor(box)
targets = exchanged(home.pack())
engine.register_remote_engine(EngineDesc.unpack(engines[following]))
writes = engine.create_session(local, MemoryDesc.unpack(targets[following]))
for step in range(3):
    x.fill_(step)  #! still computed
    torch.cuda.synchronize()  #- still computed
    sent = writes.write(0, 0, 4 * n, engine.allocate_transfer_uid())  #! *
    engine.wait_all([sent], 60000)
    dist.barrier()  #- read early
    y = box + 1  #! read early, written early
    torch.cuda.synchronize()
    dist.barrier()  #- written early
engine.deregister_memory(home)
box.zero_()
print(y.sum())
""",
    "transfers of hosts": """
engine = IOEngine(key=f"engine {rank}", config=IOEngineConfig(host="127.0.0.1", port=8080))
engine.create_backend(BackendType.RDMA, RdmaBackendConfig())
target = torch.zeros(2 * n, device="cuda")
engines, following = exchanged(engine.get_engine_desc().pack()), (rank + 1) % world
local, home = engine.register_torch_tensor(x), engine.register_torch_tensor(target)
sources, targets = exchanged(local.pack()), exchanged(home.pack())
engine.register_remote_engine(EngineDesc.unpack(engines[following]))
writes = engine.create_session(local, MemoryDesc.unpack(targets[following]))
reads = engine.create_session(home, MemoryDesc.unpack(sources[following]))
sent = writes.write(0, 0, 4 * n, engine.allocate_transfer_uid())  #! source before the wait
got = reads.read(4 * n, 0, 4 * n, engine.allocate_transfer_uid())  #! destination before the wait
x.add_(1)  #+ source before the wait  #! source before the wait
z = target[n:] + 1  #+ destination before the wait  #! destination before the wait
engine.wait_all([sent, got], 60000)
dist.barrier()
z = target + 1
x.add_(1)
print(z.sum())
""",
    "transfers to slots of all": """
engine = IOEngine(key=f"engine {rank}", config=IOEngineConfig(host="127.0.0.1", port=8080))
engine.create_backend(BackendType.RDMA, RdmaBackendConfig(qp_per_transfer=2))
box = torch.zeros(world * n, device="cuda")
engines = exchanged(engine.get_engine_desc().pack())
local, home = engine.register_torch_tensor(x), engine.register_torch_tensor(box)
targets, sent = exchanged(home.pack()), []
torch.cuda.synchronize()
dist.barrier()
for pe in range(world):
    if pe == rank: continue
    engine.register_remote_engine(EngineDesc.unpack(engines[pe]))
    writes = engine.create_session(local, MemoryDesc.unpack(targets[pe]))
    at = 4 * n * rank
    at = 4 * n * rank - 64 * (rank > 0)  #+ slots overlap
    sent.append(writes.write(0, at, 4 * n, engine.allocate_transfer_uid()))  #! slots overlap, read early
engine.wait_all(sent, 60000)
dist.barrier()  #- read early
y = box + 1  #! read early
torch.cuda.synchronize()
dist.barrier()
print(y.sum())
""",
}

RUNS = [(torch, name) for torch in TORCHES for name in PROGRAMS]


@pytest.fixture(autouse=True)
def with_sdma(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORI_ENABLE_SDMA", "1")


def run(folder: Path, text: str, *flags: str) -> tuple[int, str]:
    """Runs a program on four ranks of a node, and returns its exit status and what it says."""
    file = folder / "program.py"
    file.write_text(text)
    done = launch("--nproc-per-node", "4", "--topology", "mi355x_2x4", *flags, file)
    return done.status, done.out + done.err


@pytest.mark.parametrize(("torch", "name"), RUNS)
def test_calls_that_are_waited_for_are_clean(torch: str, name: str, tmp_path: Path) -> None:
    text = marks.planted(BEGIN + PROGRAMS[name])
    for flags in ((), ("--check",), ("--check", "--reorder", "5")):
        status, said = run(tmp_path, text, "--torch", torch, *flags)
        assert status == 0 and "Warning" not in said, (flags, said)


@pytest.mark.parametrize(
    ("torch", "name", "defect"), [(torch, name, d) for torch, name in RUNS for d in marks.defects(PROGRAMS[name])]
)
def test_uses_before_the_wait_are_reported(torch: str, name: str, defect: str, tmp_path: Path) -> None:
    text = BEGIN + PROGRAMS[name]
    status, said = run(tmp_path, marks.planted(text, defect), "--torch", torch, "--check")
    wanted, found = marks.named(text, defect), marks.reports(said)
    assert status and found and found[0] and all(lines <= wanted for lines in found), (wanted, found, said)


FREED = """
own = mori.shmem.mori_shmem_create_tensor((n,), torch.float32)
own.fill_(rank)
gather = mori.ccl.AllgatherSdma(rank, world, 4 * n, 4 * n * world)
gather(own, out, n)
torch.cuda.synchronize()
mori.shmem.mori_shmem_free_tensor(own)
try:
    gather(own, out, n)
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("torch", TORCHES)
def test_freed_memory_is_refused(torch: str, tmp_path: Path) -> None:
    status, said = run(tmp_path, BEGIN + FREED, "--torch", torch)
    line = (BEGIN + FREED).splitlines().index("mori.shmem.mori_shmem_free_tensor(own)") + 1
    assert status == 0 and len(said.splitlines()) == 4, said
    for pe in range(4):
        begin = f"argument input of kernel 'AllgatherSdma' is symmetric memory that rank {pe} has freed at "
        assert any(text.startswith(begin) and f"program.py:{line} " in text for text in said.splitlines()), said


KINDS = """
reduce = mori.ccl.AllreduceSdma(rank, world, 1 << 16, 1 << 16)
whole = torch.full((n,), rank, dtype=torch.int32, device="cuda")
total = torch.zeros(n, dtype=torch.int32, device="cuda")
reduce(whole, total, n)
assert total.tolist() == [world * (world - 1) // 2] * n
try:
    reduce(x, out, n)
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("torch", TORCHES)
def test_sums_of_other_elements_are_refused(torch: str, tmp_path: Path) -> None:
    status, said = run(tmp_path, BEGIN + KINDS, "--torch", torch, "--check")
    text = "input has elements of float32, and AllreduceSdma of PE {} takes bits for uint32: make the handle with "
    wanted = [f"{text.format(pe)}dtype=torch.float32" for pe in range(4)]
    assert status == 0 and sorted(said.splitlines()) == wanted, said


UNEQUAL = {
    "AllgatherSdma": "mori.ccl.AllgatherSdma(rank, world, 4 * n, 4 * n * world)",
    "HierAllGather": "mori.ccl.HierAllGather(rank, world, 4 * n, 4 * n * world, slice_min_bytes=0)",
    "IntraNodeSubGroupAllgatherSdma": "mori.ccl.IntraNodeSubGroupAllgatherSdma(rank, world, 4 * n * world)",
}

CALLS = """
gather(x, out, n)
gather(x, out, n - (rank == 2))
torch.cuda.synchronize()
"""


@pytest.mark.parametrize("torch", TORCHES)
@pytest.mark.parametrize("kind", UNEQUAL)
def test_counts_that_differ_are_a_mismatch(torch: str, kind: str, tmp_path: Path) -> None:
    text = BEGIN + f"gather = {UNEQUAL[kind]}" + CALLS
    status, said = run(tmp_path, text, "--torch", torch)
    line = text.splitlines().index("gather(x, out, n - (rank == 2))") + 1
    begin = f"MismatchError: {kind}, call 2 of the handle: PE "
    assert status and begin in said and said.count("3996 bytes at ") and f"program.py:{line} " in said, said


DEREGISTERED = PROGRAMS["transfers of hosts"].replace("source before the wait", "deregistered early")
DEREGISTERED = DEREGISTERED.replace("x.add_(1)  #+", "engine.deregister_memory(local)  #+")


@pytest.mark.parametrize("torch", TORCHES)
def test_memory_is_deregistered_after_the_wait(torch: str, tmp_path: Path) -> None:
    text = BEGIN + DEREGISTERED
    status, said = run(tmp_path, marks.planted(text, "deregistered early"), "--torch", torch, "--check")
    wanted, found = marks.named(text, "deregistered early"), marks.reports(said)
    assert status and found and found[0] and all(lines <= wanted for lines in found), (wanted, found, said)
