"""all_reduce over the simulated fabric, checked element by element.

Run it with ``python benches/ccl_allreduce.py``, or with another fabric or algorithm by
``torchemu bench benches/ccl_allreduce.py --topology sips8 --ccl my_ccl.yaml``.
"""

from __future__ import annotations

import numpy as np

from torchemu import DPPolicy

ELEMENTS = (32, 4096, 1 << 20)  # of a rank's tensor, in float16


def contribution(rank: int, elements: int) -> np.ndarray:
    """Returns what a rank adds: 0 to 7 in turn, from its number on. Any order of additions gives the exact sum."""
    return np.resize((np.arange(8) + rank) % 8, (1, elements)).astype(np.float16)


def expected(world_size: int, elements: int) -> np.ndarray:
    """The sum of all contributions."""
    first = sum(contribution(r, 8).astype(np.float64) for r in range(world_size))
    return np.resize(first, (1, elements)).astype(np.float16)


def check(result: np.ndarray, want: np.ndarray) -> None:
    """Raises AssertionError unless every element is the sum."""
    np.testing.assert_array_equal(result, want)


def rank_per_sip(rank: int, world_size: int, torch) -> None:
    """A rank's part where every SIP is a rank."""
    torch.ahbm.set_device(rank)
    for elements in ELEMENTS:
        t = torch.zeros((1, elements), dtype=torch.float16, name=f"rank {rank}")
        t.copy_(torch.from_numpy(contribution(rank, elements)))
        torch.distributed.all_reduce(t)
        check(t.numpy(), expected(world_size, elements))
        if rank == 0:
            print(f"  all_reduce of {elements} float16 on {world_size} ranks: OK")


def shard_per_pe(world_size: int, torch) -> None:
    """The whole program where one worker's tensor is sharded over the PEs of a SIP."""
    pes = int(torch.spec["cube"]["pe_layout"]["pe_per_corner"]) * len(torch.spec["cube"]["pe_layout"]["corners"])
    cubes = -(-world_size // pes)
    if cubes > 1 and world_size % pes:
        raise ValueError(f"{world_size} shards do not fill {cubes} cubes of {pes} PEs evenly")
    dp = DPPolicy(
        cube="column_wise" if cubes > 1 else "replicate",
        pe="column_wise",
        num_cubes=cubes,
        num_pes=min(world_size, pes),
    )
    for elements in ELEMENTS:
        t = torch.zeros((1, world_size * elements), dtype=torch.float16, dp=dp, name="shards")
        parts = [contribution(r, elements) for r in range(world_size)]
        t.copy_(torch.from_numpy(np.concatenate(parts, axis=1)))
        torch.distributed.all_reduce(t)
        want = expected(world_size, elements)
        for shard in np.split(t.numpy(), world_size, axis=1):
            check(shard, want)
        print(f"  all_reduce of {elements} float16 on {world_size} PEs: OK")


def run(torch) -> None:
    """Runs the bench, for ``torchemu bench``."""
    torch.distributed.init_process_group(backend="ahbm")
    world_size = torch.distributed.get_world_size()
    if world_size == torch.spec["system"]["sips"]["count"]:
        torch.multiprocessing.spawn(rank_per_sip, args=(world_size, torch), nprocs=world_size)
    else:
        shard_per_pe(world_size, torch)


if __name__ == "__main__":
    import sys

    from torchemu.launch.cli import main

    sys.exit(main(["bench", __file__, *sys.argv[1:]]))
