"""Compares all-gathers over two nodes of four GPUs with what the mori project has published (pull request 441).

    python benches/mori_allgather.py [--predict]

It prints, for each size of a shard, the predicted and the published bandwidth of the hierarchical all-gather and of
RCCL, in GB/s (world · bytes of a shard / time): of MI355X, and of MI300X beside the two closed forms; then what the
parts of the algorithm are worth, and the time of 40 products beside an all-gather. With --predict it prints the same
bandwidths of two nodes of eight GPUs, of which none is published. No data is moved.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import torchemu as torch
from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.calls import Call
from torchemu.bridge.handles import Handle
from torchemu.bridge.ints import Ints
from torchemu.c10d import groups
from torchemu.frontends.mori import _state
from torchemu.frontends.mori._launch import Hollow
from torchemu.frontends.mori.face import ccl, shmem

MIB = 1 << 20
GROUP = 4
"""GPUs of a node on the machines that were measured."""
FOLDER = Path(__file__).parent / "fidelity"


def on_each(topology: str, body: Callable[[int], Any], group: int = GROUP) -> Any:
    """Returns what rank 0 of two nodes of so many gives."""
    found: list[Any] = []

    def program(rank: int) -> None:
        torch.distributed.init_process_group("nccl", rank=rank, world_size=2 * group)
        groups.register_by_name("default", torch.distributed.group.WORLD)
        shmem.shmem_torch_process_group_init("default")
        _state.omit_data()
        value = body(rank)
        if rank == 0:
            found.append(value)
        shmem.shmem_finalize()

    os.environ.update(MORI_ENABLE_SDMA="1", MORI_SHMEM_HEAP_SIZE="128G")
    with runtime.opened(topology):
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500")
        torch.multiprocessing.spawn(program, nprocs=2 * group)
    return found[0]


def milliseconds(work: Callable[[], Any]) -> float:
    """Returns the least time of three calls on the current stream, all ranks together."""
    times = []
    for _ in range(3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        torch.distributed.barrier()
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return min(times)


def gather(rank: int, nbytes: int, group: int = GROUP, **options: Any) -> Callable[[], Any]:
    """Returns a hierarchical all-gather of shards of so many bytes."""
    world = 2 * group
    handle = ccl.HierAllGather(rank, world, nbytes, nbytes * world, ranks_per_node=group, **options)
    shard, whole = Hollow(nbytes), Hollow(nbytes * world)
    return lambda: handle(shard, whole, nbytes // 4)


def sweep(topology: str, sizes: list[int], group: int = GROUP) -> list[float]:
    """Returns the milliseconds of hierarchical all-gathers of so many MiB."""
    return on_each(topology, lambda rank: [milliseconds(gather(rank, size * MIB, group)) for size in sizes], group)


def rows(name: str) -> list[dict[str, str]]:
    """Returns a table of measurements."""
    with (FOLDER / name).open() as file:
        return list(csv.DictReader(file))


def rccl(topology: str, sizes: list[int], group: int = GROUP) -> list[float]:
    """Returns the milliseconds of the default all-gather of so many MiB."""
    return on_each(topology, lambda _: [milliseconds(default(size * MIB, 2 * group)) for size in sizes], group)


def default(nbytes: int, world: int = 2 * GROUP) -> Callable[[], Any]:
    """Returns the default all-gather of shards of so many bytes, of memory without them."""
    call, float32 = Call.of("all_gather_into_tensor", "all_gather"), go.DTypeNumber("float32")
    whole, shard = ((0, float32, -1, n // 4) for n in (nbytes * world, nbytes))
    group, context = torch.distributed.group.WORLD.handle, runtime.current()
    tensors = Ints((*whole, *shard))
    return lambda: Handle(go.IssueRegions(group, context.stream, 0, False, call.number, tensors, 1, 1))


def beside(work: Callable[[], Any]) -> float:
    """Returns the milliseconds of 40 bf16 products of 4096 cubed on one stream, and work on another."""
    compute, context = torch.cuda.Stream(), runtime.current()
    world, size = context.world.handle, ("bfloat16", 4096, 4096, 4096)
    nbytes, ops = go.MatMulBytes(world, *size), go.MatMulOps(world, *size)

    def both() -> None:
        with torch.cuda.stream(compute):
            for _ in range(40):
                go.LaunchKernel(context.stream, "mm", nbytes, ops, "bfloat16")
        work()
        torch.cuda.current_stream().wait_stream(compute)

    return milliseconds(both)


def closed_forms(world: int, link: float) -> tuple[float, float]:
    """Returns the GB/s of two nodes: the gathers after the ring, and one of them beside it."""
    return world / (1 / 49.6 + 2 / link), world / (max(1 / 49.6, 1 / link) + 1 / link)


def print_prediction(gpu: str, topology: str, link: float) -> None:
    """Prints the bandwidths of two nodes of eight GPUs."""
    group, sizes = 8, [4, 8, 16, 32, 64, 128, 256, 512]
    serial, fused = closed_forms(2 * group, link)
    print(f"\n{gpu}, two nodes of {group}, GB/s; closed forms: serial {serial:.0f}, fused {fused:.0f}")
    print("  MiB |   hier    rccl")
    for size, *ms in zip(sizes, sweep(topology, sizes, group), rccl(topology, sizes, group), strict=True):
        print(f"{size:5} | {' '.join(f'{2 * group * size * MIB / t / 1e6:7.1f}' for t in ms)}")


def print_sweep(gpu: str, topology: str, link: float) -> None:
    """Prints the bandwidths of a machine."""
    table = [row for row in rows("mi300_hier_allgather_2x4.csv") if row["gpu"] == gpu]
    sizes = [int(row["mib_per_rank"]) for row in table]
    serial, fused = closed_forms(2 * GROUP, link)
    print(f"\n{gpu}, GB/s; closed forms: serial {serial:.0f}, fused {fused:.0f}")
    print("  MiB |   hier published   error |   rccl published   error")
    errors: dict[str, list[float]] = {"hier": [], "rccl": []}
    for row, size, hier, base in zip(table, sizes, sweep(topology, sizes), rccl(topology, sizes), strict=True):
        cells = []
        for name, ms in (("hier", hier), ("rccl", base)):
            predicted, published = 2 * GROUP * size * MIB / ms / 1e6, float(row[f"{name}_gbps"])
            error = predicted / published - 1
            errors[name] += [abs(error)] if size >= 8 else []
            cells.append(f"{predicted:6.1f} {published:9.1f} {error:+7.1%}")
        print(f"{size:5} | {' | '.join(cells)}")
    print(f"mean error from 8 MiB on: hier {mean(errors['hier']):.1%}, rccl {mean(errors['rccl']):.1%}")


def print_parts() -> None:
    """Prints what the parts of the algorithm are worth on MI355X, at 64 MiB a rank."""
    steps = {
        "not sliced": ({"slice_inter": False}, "1", 8.65), "sliced": ({"slice_direct": False}, "0", 4.83),
        "and direct": ({}, "0", 3.77), "and fused": ({}, "1", 2.67),
    }  # fmt: skip
    print("\nMI355X, 64 MiB a rank, ms\n            | predicted published   error")
    for name, (options, fuse, published) in steps.items():
        os.environ["MORI_HIER_FUSE_LOCAL"] = fuse
        ms = on_each("mi355x_2x4", lambda rank, o=options: milliseconds(gather(rank, 64 * MIB, **o)))
        print(f"{name:11} | {ms:9.2f} {published:9.2f} {ms / published - 1:+7.1%}")
    os.environ["MORI_HIER_FUSE_LOCAL"] = "1"


def print_overlap() -> None:
    """Prints the time of 40 products beside an all-gather on MI355X."""
    table = rows("mi355x_gemm_overlap_2x4.csv")
    sizes = [int(row["mib_per_rank"]) for row in table]
    hier = on_each("mi355x_2x4", lambda rank: [beside(gather(rank, size * MIB)) for size in sizes])
    base = on_each("mi355x_2x4", lambda rank: [beside(default(size * MIB)) for size in sizes])
    print("\nMI355X, 40 products beside an all-gather, ms\n  MiB |   hier published   error |   rccl published   error")
    errors = []
    for row, size, *predicted in zip(table, sizes, hier, base, strict=True):
        published = float(row["hier_total_ms"]), float(row["rccl_total_ms"])
        off = [p / q - 1 for p, q in zip(predicted, published, strict=True)]
        errors += map(abs, off)
        cells = [f"{p:6.2f} {q:9.2f} {e:+7.1%}" for p, q, e in zip(predicted, published, off, strict=True)]
        print(f"{size:5} | {' | '.join(cells)}")
    print(f"mean error {mean(errors):.1%}, largest {max(errors):.1%}")


def main() -> None:
    if sys.argv[1:] == ["--predict"]:
        print_prediction("MI355X", "mi355x_2x8", 60.9)
        print_prediction("MI300X", "mi300x_2x8", 48.0)
        return
    print_sweep("MI355X", "mi355x_2x4", 60.9)
    print_sweep("MI300X", "mi300x_2x4", 48.0)
    print_parts()
    print_overlap()


if __name__ == "__main__":
    main()
