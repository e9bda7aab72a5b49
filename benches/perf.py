"""How fast the simulator is, beside its targets and its rivals: ``make perf``.

Rows measured in Go run ``go test -bench``; the others are Python programs as users write them. Each figure is the
median of several runs. NumPy's copy is the limit that memory sets; gloo, with one process a rank, runs where PyTorch
is installed (``pip install torch``), in the same minute on the same machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
MEGABYTE = 1 << 20


# -- programs, each run in a fresh process of its own


def fresh_process() -> None:
    """The first all_reduce of a process: 8 ranks."""
    import torchemu as torch

    with torch.open_world("sips8"):
        torch.distributed.init_process_group(backend="ahbm")
        torch.multiprocessing.spawn(_reduce_once, args=(torch,), nprocs=8)


def _reduce_once(rank: int, torch) -> None:
    t = torch.full((1024,), float(rank))
    torch.distributed.all_reduce(t)
    assert t.numpy()[0] == 28


def small_calls(calls: int = 2000) -> None:
    """Milliseconds a call of all_reduce, 8 ranks × 4 KB float32, each followed by a wait."""
    import torchemu as torch

    def worker(rank: int) -> None:
        t = torch.zeros(1024)
        for i in range(calls + 100):
            if i == 100 and rank == 0:
                worker.start = time.perf_counter()
            torch.distributed.all_reduce(t)
            t.wait()

    with torch.open_world("sips8"):
        torch.distributed.init_process_group(backend="ahbm")
        torch.multiprocessing.spawn(worker, nprocs=8)
        print((time.perf_counter() - worker.start) / calls * 1e3)


def large_calls(dtype: str, held: str = "") -> None:
    """Milliseconds of one all_reduce, 8 ranks × 16 MB, with new data each time. Ranks share the memory of the result
    until they write to it; where NumPy holds their tensors each rank's own memory is written."""
    import torchemu as torch

    times: list[float] = []
    started: list[float] = []
    ended: list[float] = []

    def worker(rank: int) -> None:
        elements = 16 * MEGABYTE // torch.dtypes.parse(dtype).itemsize
        values = torch.from_numpy(np.full(elements, rank % 3, torch.dtypes.parse(dtype).numpy))
        t, token = torch.zeros(elements, dtype=dtype), torch.zeros(1)
        if held:
            t.numpy()
        for _ in range(12):
            t.copy_(values)
            torch.distributed.all_reduce(token)
            token.wait()  # all have filled their tensors
            started.append(time.perf_counter())
            torch.distributed.all_reduce(t)
            t.wait()
            ended.append(time.perf_counter())
            if len(ended) == 8:
                times.append(max(ended) - min(started))
                started.clear()
                ended.clear()
            torch.distributed.all_reduce(token)
            token.wait()  # all have ended, so nobody's next values are copied meanwhile

    with torch.open_world("sips8"):
        torch.distributed.init_process_group(backend="ahbm")
        torch.multiprocessing.spawn(worker, nprocs=8)
    print(statistics.median(times[2:]) * 1e3)


def refilled_calls(ranks: int = 1024) -> None:
    """Seconds of the processor and page faults of an all_reduce of a MiB on each rank, filled anew each time."""
    import torchemu as torch

    side = int(ranks**0.5)
    marks: list[resource.struct_rusage] = []

    def worker(rank: int) -> None:
        t = torch.empty(MEGABYTE // 4)
        for _ in range(4):
            t.fill_(rank % 3)
            torch.distributed.all_reduce(t)
            t.wait()
            if rank == 0:
                marks.append(resource.getrusage(resource.RUSAGE_SELF))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "torus.yaml"
        file.write_text(f"system: {{sips: {{count: {ranks}, connect: torus2d, w: {side}, h: {side}}}}}\n")
        with torch.open_world(str(file)):
            torch.distributed.init_process_group(backend="ahbm")
            torch.multiprocessing.spawn(worker, nprocs=ranks)
    first, last, calls = marks[0], marks[-1], len(marks) - 1
    seconds = last.ru_utime + last.ru_stime - first.ru_utime - first.ru_stime
    print(seconds / calls, (last.ru_minflt - first.ru_minflt) / calls)


def many_ranks(ranks: int = 4096) -> None:
    """Seconds and MiB: 4096 Python workers, ten small all_reduces each."""
    import torchemu as torch

    side = int(ranks**0.5)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "torus.yaml"
        file.write_text(f"system: {{sips: {{count: {ranks}, connect: torus2d, w: {side}, h: {side}}}}}\n")
        start = time.perf_counter()
        with torch.open_world(str(file)):
            torch.distributed.init_process_group(backend="ahbm")
            torch.multiprocessing.spawn(_ten_reductions, args=(torch, ranks), nprocs=ranks)
    print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _ten_reductions(rank: int, torch, ranks: int) -> None:
    for _ in range(10):
        t = torch.ones(4)
        torch.distributed.all_reduce(t)
        assert t.numpy()[0] == ranks


def mixed_collectives(ranks: int = 64, calls: int = 1000) -> None:
    """Seconds of a spawn: collectives of all kinds in turn, of 1 to 65,536 elements."""
    import torchemu as torch

    side = 1 << (int(ranks).bit_length() // 2)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "torus.yaml"
        grid = f"connect: torus2d, w: {int(ranks) // side}, h: {side}"
        file.write_text(f"system: {{sips: {{count: {ranks}, {grid}}}}}\n")
        start = time.perf_counter()
        with torch.open_world(str(file)):
            torch.distributed.init_process_group(backend="ahbm")
            torch.multiprocessing.spawn(_mixed, args=(torch, int(calls)), nprocs=int(ranks))
    print(time.perf_counter() - start)


def _mixed(rank: int, torch, calls: int) -> None:
    """Each kind of collective in turn, and of each every size in turn. Lists of tensors, of which each rank has one for
    every rank, only among up to 64 ranks."""
    dist = torch.distributed
    world = dist.get_world_size()
    whole = {n: torch.ones(n) for n in (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)}
    part = {n: torch.ones(n // world) for n in whole if n % world == 0}
    other = {n: torch.ones(n) for n in part}

    def blocks(n: int, wanted: bool = True) -> list | None:
        return list(whole[n].split(n // world)) if wanted else None

    whole_kinds = [
        lambda n, root: dist.all_reduce(whole[n], dist.ReduceOp.MAX),
        lambda n, root: dist.broadcast(whole[n], root),
        lambda n, root: dist.reduce(whole[n], root, dist.ReduceOp.MAX),
    ]
    part_kinds = [
        lambda n, root: dist.all_gather_into_tensor(whole[n], part[n]),
        lambda n, root: dist.reduce_scatter_tensor(part[n], whole[n], dist.ReduceOp.MAX),
        lambda n, root: dist.all_to_all_single(other[n], whole[n]),
        lambda n, root: dist.gather(part[n], blocks(n, rank == root), root),
        lambda n, root: dist.scatter(part[n], blocks(n, rank == root), root),
    ]
    list_kinds = [
        lambda n, root: dist.all_gather(blocks(n), part[n]),
        lambda n, root: dist.reduce_scatter(part[n], blocks(n), dist.ReduceOp.MAX),
    ]
    kinds = [(kind, list(whole)) for kind in whole_kinds]
    kinds += [(kind, list(part)) for kind in part_kinds + (list_kinds if world <= 64 else [])]
    for call in range(calls):
        kind, sizes = kinds[call % len(kinds)]
        kind(sizes[call // len(kinds) % len(sizes)], call % world)
    assert whole[65536].numpy()[-1] == 1


def kernel_calls(check: str = "", calls: int = 9) -> None:
    """Milliseconds of a two-shot all_reduce as a kernel in Python, 16 ranks × 1 MiB float32."""
    import torchemu
    import torchemu.language as tl
    from torchemu import multiprocessing as mp
    from torchemu import runtime
    from torchemu.kernels.shots import two_shot

    n, times = MEGABYTE // 4, []

    def worker(rank: int) -> None:
        out, x = tl.symmetric_empty(n), tl.symmetric_empty(n)
        x.fill_(rank)
        for _ in range(calls):
            if rank == 0:
                times.append(time.perf_counter())
            two_shot[1](out, x, n, "sum")
            out.wait()
        assert out.numpy()[-1] == 120

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sips16.yaml"
        file.write_text("system: {sips: {count: 16}}\n")
        with torchemu.open_world(file) as world:
            world.strictness = runtime.Strictness(check=bool(check))
            mp.spawn(worker, nprocs=16)
    print(statistics.median(b - a for a, b in itertools.pairwise(times[1:])) * 1e3)


def numpy_copy() -> None:
    """Milliseconds of the memory traffic that no implementation avoids: 8 × 16 MB read, 16 MB written."""
    sources = [np.ones(16 * MEGABYTE // 4, np.float32) for _ in range(8)]
    target = np.empty_like(sources[0])
    times = []
    for _ in range(12):
        start = time.perf_counter()
        for source in sources:
            np.copyto(target, source)
        times.append(time.perf_counter() - start)
    print(statistics.median(times[2:]) * 1e3)


GLOO = """
import os, sys, time, statistics
import torch, torch.distributed as dist, torch.multiprocessing as mp

def worker(rank, elements, calls):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=8)
    t, times = torch.ones(elements), []
    for _ in range(calls):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(t)
        times.append(time.perf_counter() - start)
    if rank == 0:
        print(statistics.median(times[2:]) * 1e3)

if __name__ == "__main__":
    mp.spawn(worker, args=(int(sys.argv[1]), int(sys.argv[2])), nprocs=8)
"""


# -- measuring them


def in_process(program: str, *args: str) -> list[float]:
    """The figures that one of the programs above prints, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--program", program, *args], check=True, capture_output=True, text=True
    )
    return [float(word) for word in done.stdout.split()]


def seconds_of_process(program: str) -> float:
    """The duration of a whole process."""
    start = time.perf_counter()
    in_process(program)
    return time.perf_counter() - start


def gloo(elements: int, calls: int) -> float | None:
    """Milliseconds of gloo's all_reduce on 8 processes, or None without PyTorch."""
    if importlib.util.find_spec("torch") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "gloo.py"
        script.write_text(GLOO)
        done = subprocess.run(
            [sys.executable, str(script), str(elements), str(calls)], check=True, capture_output=True, text=True
        )
    return float(done.stdout.split()[0])


def median(measure: Callable[[], float], runs: int = 5) -> float:
    """The median of several runs."""
    return statistics.median(measure() for _ in range(runs))


def go_benchmarks(package: str, pattern: str) -> dict[str, dict[str, float]]:
    """The medians of Go benchmarks: benchmark → unit → figure."""
    done = subprocess.run(
        ["go", "test", "-run", "^$", "-bench", pattern, "-count", "5", f"./{package}"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, dict[str, list[float]]] = {}
    for line in done.stdout.splitlines():
        name, *words = line.split()
        if name.startswith("Benchmark"):
            units = found.setdefault(re.sub(r"-\d+$", "", name), {})
            for value, unit in zip(words[1::2], words[2::2], strict=False):
                units.setdefault(unit, []).append(float(value))
    return {name: {u: statistics.median(v) for u, v in units.items()} for name, units in found.items()}


# -- the table


def rows() -> Iterator[tuple[str, float, str, float | None, bool]]:
    """Yields what was measured, the figure, its unit, the target and whether more is better."""
    yield "first all_reduce of a process, 8 ranks", median(lambda: seconds_of_process("fresh_process")), "s", 1, False
    yield "all_reduce 8 × 4 KB f32, a call", median(lambda: in_process("small_calls")[0]), "ms", 0.05, False
    f32 = median(lambda: in_process("large_calls", "float32")[0])
    copy = median(lambda: in_process("numpy_copy")[0])
    yield "all_reduce 8 × 16 MB f32", f32, "ms", None, False
    yield "  times NumPy's copy of the same bytes", f32 / copy, "×", 1.5, False
    in_place = median(lambda: in_process("large_calls", "float32", "held")[0])
    yield "  into memory that NumPy holds", in_place, "ms", None, False
    f16 = median(lambda: in_process("large_calls", "float16")[0])
    yield "all_reduce 8 × 16 MB f16, times that of f32", f16 / f32, "×", 1.5, False
    yield "  NumPy copying the same bytes", copy, "ms", None, False
    for what, elements, calls in (("8 × 4 KB", 1024, 30), ("8 × 16 MB", 4 * MEGABYTE, 12)):
        rival = gloo(elements, calls)
        if rival is not None:
            yield f"  gloo, all_reduce {what} f32", rival, "ms", None, False
    ring = go_benchmarks("ccl", "AllReduce(Timing)?$/1024")
    yield "ring 1024 × 1 MiB, timing only", ring["BenchmarkAllReduceTiming/1024×1024KiB"]["ms"] / 1e3, "s", 0.05, False
    yield "ring 1024 × 1 MiB, with data", ring["BenchmarkAllReduce/1024×1024KiB"]["ms"] / 1e3, "s", 0.25, False
    seconds, mebibytes = map(statistics.median, zip(*(in_process("many_ranks") for _ in range(3)), strict=True))
    yield "4096 Python ranks, ten all_reduces", seconds, "s", 3, False
    yield "  its peak memory", mebibytes, "MiB", 512, False
    seconds, faults = map(statistics.median, zip(*(in_process("refilled_calls") for _ in range(3)), strict=True))
    yield "1024 ranks × 1 MiB filled anew, a call", seconds, "s", None, False
    yield "  its page faults", faults, "", None, False
    for ranks, calls, target in (("64", "1000", 2), ("1024", "20", 5)):
        seconds = median(lambda r=ranks, c=calls: in_process("mixed_collectives", r, c)[0], 3)
        yield f"{ranks} Python ranks, {calls} mixed collectives", seconds, "s", target, False
    python, checked = (median(lambda c=c: in_process("kernel_calls", c)[0], 3) for c in ("", "check"))
    yield "two_shot kernel in Python, 16 × 1 MiB", python, "ms", 1000, False
    yield "  checked, times that", checked / python, "×", 3, False
    kernels = go_benchmarks("ccl/prim/kernels", "16/two_shot")
    for size, target in (("1048576", 50), ("1024", None)):
        plain, checked = (kernels[f"Benchmark16/two_shot/bytes={size}/check={c}"]["ns/op"] for c in ("false", "true"))
        yield f"two_shot kernel in Go, 16 × {size} bytes", plain / 1e6, "ms", target, False
        yield "  checked, times that", checked / plain, "×", 3, False
    engine = go_benchmarks("torchemu/sim", "Engine(Random1000|EqualTimes)$")
    for name, target in (("Random1000", 15), ("EqualTimes", 150)):
        yield f"engine, {name}", engine[f"BenchmarkEngine{name}"]["events/s"] / 1e6, "M events/s", target, True


def main() -> None:
    """Prints the table, line by line as it is measured."""
    print(f"{'':46}{'measured':>10}{'target':>10}")
    for what, figure, unit, target, more_is_better in rows():
        line = f"{what:46}{figure:10.3f}"
        if target is not None:
            met = figure >= target if more_is_better else figure <= target
            line += f"{'≥' if more_is_better else '≤':>6} {target:<6g}{unit:12}{'met' if met else 'MISSED'}"
        else:
            line += f"{'':13}{unit}"
        print(line, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", help=argparse.SUPPRESS)
    parser.add_argument("args", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        globals()[options.program](*options.args)
    else:
        main()
