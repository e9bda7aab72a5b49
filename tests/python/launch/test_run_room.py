"""Scripts that spawn more ranks than their fabric has SIPs."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import Outcome, launch, lines, written

SPAWNS = """
    import os
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp

    def work(rank, size, offset):
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "29500"
        dist.init_process_group("gloo", rank=rank, world_size=size)
        t = torch.full((3,), rank) + offset
        dist.all_reduce(t)
        print(rank, t.tolist(), torch.cuda.device_count())

    if __name__ == "__main__":
        offset = torch.arange(3)
        for size in {sizes}:
            mp.spawn(work, args=(size, offset), nprocs=size)
"""


def spawned(folder: Path, sizes: list[int], *flags: str) -> Outcome:
    return launch("--nproc-per-node", "1", *flags, written(folder, SPAWNS.format(sizes=sizes)))


@pytest.mark.parametrize("sizes", [[4], [5], [64], [2, 9, 3, 10]])
@pytest.mark.parametrize("preset", ["default", "sips2", "sips16"])
def test_a_preset_grows_to_what_is_spawned(tmp_path: Path, sizes: list[int], preset: str) -> None:
    smallest = {"default": 4, "sips2": 2, "sips16": 16}[preset]
    expected = []
    for i, size in enumerate(sizes):
        total = [size * (size - 1) // 2 + size * k for k in range(3)]
        expected += [f"{rank} {total} {max(smallest, *sizes[: i + 1])}" for rank in range(size)]
    assert lines(spawned(tmp_path, sizes, "--topology", preset)) == sorted(expected)


@pytest.mark.parametrize(
    "first_wait", ["queue.get()", "time.sleep(1)", "processes[0].join(timeout=9)", "queue.get(timeout=9)"]
)
def test_a_preset_grows_however_the_program_waits_first(tmp_path: Path, first_wait: str) -> None:
    text = """
        import time
        import torch
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def work(rank, size, queue):
            dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{29500 + size}", rank=rank, world_size=size)
            t = torch.full((3,), rank) + torch.arange(3)
            dist.all_reduce(t)
            if rank == 0:
                queue.put(size)
            print(rank, t.tolist())

        if __name__ == "__main__":
            for size in (2, 6):
                queue = mp.Queue()
                processes = [mp.Process(target=work, args=(rank, size, queue)) for rank in range(size)]
                for process in processes:
                    process.start()
                FIRST_WAIT
                for process in processes:
                    process.join()
        """
    expected = [f"{r} {[size * (size - 1) // 2 + size * k for k in range(3)]}" for size in (2, 6) for r in range(size)]
    program = written(tmp_path, text.replace("FIRST_WAIT", first_wait))
    assert lines(launch("--nproc-per-node", "1", program)) == sorted(expected)


def test_a_file_of_its_own_does_not(tmp_path: Path) -> None:
    fabric = written(tmp_path, "name: mine\nsystem: {sips: {count: 2}}\n", "fabric.yaml")
    outcome = spawned(tmp_path, [3], "--topology", str(fabric))
    assert outcome.status == 1
    assert 'ValueError: 3 processes do not fit topology "mine": it has 2 SIPs' in outcome.err


@pytest.mark.parametrize(
    ("flag", "file", "reason"),
    [
        ("--trace", None, 'topology "default" is being recorded'),
        ("--faults", "faults: [{slow_rank: 0, factor: 2}]", 'faults are set for topology "default"'),
    ],
)
def test_it_says_why_it_cannot_grow(tmp_path: Path, flag: str, file: str | None, reason: str) -> None:
    value = tmp_path / "traces" if file is None else written(tmp_path, file, "faults.yaml")
    outcome = spawned(tmp_path, [5], flag, str(value))
    assert outcome.status == 1
    assert f"it has 4 SIPs, and cannot get more, for {reason}; choose a --topology with at least 5" in outcome.err


@pytest.mark.parametrize(
    "spawns",
    [
        "import torch.multiprocessing as mp\nmp.spawn(work, nprocs=3)",
        "import torch\ntorch.multiprocessing.start_processes(work, nprocs=3)",
        "from torch.multiprocessing import spawn\ndef main():\n    spawn(work, nprocs=3)\nmain()",
        "from torch import multiprocessing as mp\nall = [mp.Process(target=work, args=(r,)) for r in range(3)]\n"
        "for p in all: p.start()\nfor p in all: p.join()",
        "import beside",
    ],
)
def test_a_script_that_spawns_its_ranks_is_started_once(tmp_path: Path, spawns: str) -> None:
    works = 'def work(rank):\n    print("rank", rank)\n\nif __name__ == "__main__":\n'
    if spawns == "import beside":
        written(
            tmp_path, "import torch.multiprocessing as mp\ndef main(work):\n    mp.spawn(work, nprocs=3)", "beside.py"
        )
        spawns = "import beside\nbeside.main(work)"
    program = written(tmp_path, works + "".join(f"    {line}\n" for line in spawns.splitlines()))
    assert lines(launch(program)) == [f"rank {r}" for r in range(3)]


def test_a_script_that_only_could_spawn_has_a_rank_for_each_sip(tmp_path: Path) -> None:
    program = written(tmp_path, 'import torch.multiprocessing as mp\nmp.set_start_method("spawn")\nprint("here")')
    assert lines(launch(program)) == ["here"] * 4
    assert lines(launch("--nproc-per-node", "2", program)) == ["here"] * 2


def test_more_ranks_than_any_fabric_has(tmp_path: Path) -> None:
    """The error is about what the user has said, and not about a file made of it."""
    outcome = launch("--nnodes", "2", "--nproc-per-node", "1000000", written(tmp_path, "pass"))
    assert outcome.status == 1
    assert outcome.err.startswith(
        "torchemu: topology default does not fit 2 nodes of 1000000 SIPs: system.sips.count: must be a whole number "
    )


def test_auto_says_what_it_did_not_try(tmp_path: Path) -> None:
    text = "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\ndist.all_reduce(torch.ones(256))"
    program = written(tmp_path, text)
    few = launch("--topology", "sips16", "--nproc-per-node", "16", program)
    assert (few.status, few.err) == (0, "")
    many = launch("--topology", "sips16", "--nproc-per-node", "256", program)
    assert many.status == 0
    (line,) = many.err.splitlines()
    assert line.startswith("torchemu: all_reduce among 256 ranks goes by ")
    assert "two_shot" in line.partition(":")[2].partition(" may be faster")[0]
