"""Collectives that run as kernels: ccl.yaml names them, and they give the bits of the built-in algorithms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, ROOT, YamlFile, same
from kernel_worlds import world_of

import torchemu
import torchemu as torch
from torchemu import runtime
from torchemu.multiprocessing import ProcessRaisedException

dist = torch.distributed

SHIPPED = ROOT / "python" / "torchemu" / "language" / "kernels"
ALL_REDUCES = {"ring": "ring.py:all_reduce", "one_shot": "shots.py:one_shot", "two_shot": "shots.py:two_shot"}
WORLDS = [1, 2, 3, 4, 8, 16]


def named(kernel: str, collective: str = "all_reduce") -> str:
    """A ccl.yaml that makes a shipped kernel run a collective."""
    choice = "defaults: {algorithm: mine}" if collective == "all_reduce" else f"collectives: {{{collective}: mine}}"
    return f"{choice}\nalgorithms:\n  mine: {{kernel: {SHIPPED}/{kernel}}}\n"


def results(ranks: int, ccl: str, program: Callable[[int], np.ndarray], **options: Any) -> tuple[list[np.ndarray], Any]:
    """Returns what the ranks' programs return, and the log's last line."""
    found: list[Any] = [None] * ranks

    def rank(r: int) -> None:
        dist.init_process_group()
        found[r] = program(r).copy()

    with world_of(ranks, ccl, **options) as world:
        torch.multiprocessing.spawn(rank, nprocs=ranks)
        log = world.collectives()
    return found, log[-1]


def data(ranks: int, n: int, name: str, seed: int) -> np.ndarray:
    """Elements whose sums round: their order shows."""
    rng = np.random.default_rng(seed)
    if name.startswith("int"):
        return rng.integers(-1000, 1000, (ranks, n)).astype(name)
    return (rng.standard_normal((ranks, n)) * 10.0 ** rng.integers(-3, 4, (ranks, n))).astype(NUMPY[name])


def all_reduce(x: np.ndarray, op: str = "sum") -> Callable[[int], np.ndarray]:
    def program(rank: int) -> np.ndarray:
        t = torch.from_numpy(x[rank].copy())
        t = t.to(f"ahbm:{rank}")
        dist.all_reduce(t, op=getattr(dist.ReduceOp, op.upper()))
        return t.numpy()

    return program


@pytest.mark.parametrize("ranks", WORLDS)
@pytest.mark.parametrize("kernel", ALL_REDUCES)
def test_all_reduce_has_the_bits_of_the_schedule(ranks: int, kernel: str) -> None:
    for n in (1, ranks + 1, 1000):
        x = data(ranks, n, "float32", 100 * ranks + n)
        got, line = results(ranks, named(ALL_REDUCES[kernel]), all_reduce(x))
        want, _ = results(ranks, f"defaults: {{algorithm: {kernel}}}\n", all_reduce(x))
        assert line["algorithm"] == "mine"
        for r in range(ranks):
            assert same(got[r], want[r]), (n, r)


@pytest.mark.parametrize("op", ["sum", "avg", "max", "product"])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "int32", "float64"])
def test_ops_and_dtypes(op: str, name: str) -> None:
    x = data(4, 77, name, len(op))
    for kernel, place in ALL_REDUCES.items():
        got, _ = results(4, named(place), all_reduce(x, op))
        want, _ = results(4, f"defaults: {{algorithm: {kernel}}}\n", all_reduce(x, op))
        for r in range(4):
            assert same(got[r], want[r]), kernel


def test_the_order_of_additions_is_that_of_the_algorithm() -> None:
    """An oracle that knows neither kernels nor schedules: a share starts behind its owner and goes round the ring."""
    ranks, n = 4, 8
    x = data(ranks, n, "float32", 3)
    want = np.empty(n, np.float32)
    for share in range(ranks):
        part = slice(share * 2, share * 2 + 2)
        total = x[(share + 1) % ranks, part]
        for step in range(2, ranks + 1):
            total = x[(share + step) % ranks, part] + total
        want[part] = total
    got, _ = results(ranks, named("ring.py:all_reduce"), all_reduce(x))
    assert all(same(g, want) for g in got)
    got, _ = results(ranks, named("shots.py:two_shot"), all_reduce(x))
    assert all(same(g, ((x[0] + x[1]) + x[2]) + x[3]) for g in got)


@pytest.mark.parametrize("op", ["sum", "avg"])
@pytest.mark.parametrize("kernel", ALL_REDUCES)
def test_complex_numbers_have_the_bits_of_the_schedule(kernel: str, op: str) -> None:
    x = data(4, 2 * 77, "float32", len(op)).view(np.complex64)
    got, _ = results(4, named(ALL_REDUCES[kernel]), all_reduce(x, op))
    want, _ = results(4, f"defaults: {{algorithm: {kernel}}}\n", all_reduce(x, op))
    assert all(same(g, w) for g, w in zip(got, want, strict=True))


@pytest.mark.parametrize("ranks", WORLDS)
def test_all_gather_and_reduce_scatter(ranks: int) -> None:
    n = 5
    x = data(ranks, ranks * n, "float32", ranks)

    def gather(rank: int) -> np.ndarray:
        out = torch.zeros(ranks * n)
        dist.all_gather_into_tensor(out, torch.from_numpy(x[rank, :n].copy()).to(f"ahbm:{rank}"))
        return out.numpy()

    def scatter(rank: int) -> np.ndarray:
        out = torch.zeros(n)
        dist.reduce_scatter_tensor(out, torch.from_numpy(x[rank].copy()).to(f"ahbm:{rank}"))
        return out.numpy()

    got, line = results(ranks, named("ring.py:all_gather", "all_gather"), gather)
    assert line["algorithm"] == "mine"
    assert all(same(g, x[:, :n].reshape(-1)) for g in got)
    got, line = results(ranks, named("ring.py:reduce_scatter", "reduce_scatter"), scatter)
    assert line["algorithm"] == "mine"
    want, _ = results(ranks, "defaults: {algorithm: ring}\n", scatter)
    assert all(same(g, w) for g, w in zip(got, want, strict=True))


@pytest.mark.parametrize("kernel", ALL_REDUCES)
@pytest.mark.parametrize("seed", range(3))
def test_reordered_deliveries_change_no_bit(kernel: str, seed: int) -> None:
    x = data(4, 100, "float32", 8)
    plain, _ = results(4, named(ALL_REDUCES[kernel]), all_reduce(x))
    moved, _ = results(4, named(ALL_REDUCES[kernel]), all_reduce(x), reorder=seed)
    assert all(same(a, b) for a, b in zip(plain, moved, strict=True))


@pytest.mark.parametrize("kernel", ALL_REDUCES)
def test_many_calls_of_several_sizes_and_groups(kernel: str) -> None:
    """Workspaces and words are used again; a group's are its own."""

    def program(rank: int) -> np.ndarray:
        pair = [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
        sums = []
        for n in (3, 50, 3, 0, 7):
            t = torch.full((n,), float(rank))
            dist.all_reduce(t)
            u = torch.full((n,), float(rank))
            dist.all_reduce(u, group=pair)
            sums += t.tolist() + u.tolist()
        return np.array(sums)

    got, _ = results(4, named(ALL_REDUCES[kernel]), program)
    for rank, sums in enumerate(got):
        pair = 2.0 if rank % 2 == 0 else 4.0
        assert sums.tolist() == [v for n in (3, 50, 3, 0, 7) for v in [6.0] * n + [pair] * n]


def test_views_asynchronous_calls_and_what_follows() -> None:
    def program(rank: int) -> np.ndarray:
        x = torch.zeros(6, 4)
        x.fill_(rank)
        work = dist.all_reduce(x.t(), async_op=True)
        work.wait()
        x.add_(1)
        dist.all_reduce(x[1:3])
        return x.numpy()

    got, _ = results(3, named("ring.py:all_reduce"), program)
    want = np.full((6, 4), 4, np.float32)
    want[1:3] = 12
    assert all(same(g, want) for g in got)


TRANSFERS = 3
"""Transfers within a PE's memory in a step of a ring, at most: two loads and a store."""


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("n", [1 << 10, 1 << 16])
def test_time_is_the_schedules_and_the_stated_overhead(ranks: int, n: int) -> None:
    """Beside its messages, which are the Schedule's, a ring takes a sync, the acknowledgement at its end, and in each
    step three transfers within a PE's memory."""
    x = np.ones((ranks, n), np.float32)

    def time(ccl: str) -> float:
        _, line = results(ranks, ccl, all_reduce(x), check=False)
        return line["end"] - line["start"]

    least, got = time("defaults: {algorithm: ring}\n"), time(named("ring.py:all_reduce"))
    steps = 2 * (ranks - 1)
    local, signal = transfer(ranks, n // ranks * 4)
    assert least <= got <= least + steps * TRANSFERS * local + 3 * signal + 2 * local


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("n", [1 << 10, 1 << 16])
@pytest.mark.parametrize("kernel", ["one_shot", "two_shot"])
def test_time_of_shots(kernel: str, ranks: int, n: int) -> None:
    """A shot loads what it reduces, of every rank, and stores the result: transfers within a PE's memory, of the whole
    vector or of a share. It takes a sync and the acknowledgement at its end too."""
    x = np.ones((ranks, n), np.float32)

    def time(ccl: str) -> float:
        _, line = results(ranks, ccl, all_reduce(x), check=False)
        return line["end"] - line["start"]

    least, got = time(f"defaults: {{algorithm: {kernel}}}\n"), time(named(ALL_REDUCES[kernel]))
    local, signal = transfer(ranks, (n if kernel == "one_shot" else n // ranks) * 4)
    assert least <= got <= least + (ranks + 1) * local + 3 * signal


def transfer(ranks: int, nbytes: int) -> tuple[int, int]:
    """How long a transfer within a PE's memory and a signal to the next rank take, measured with a kernel each."""
    import torchemu.language as tl

    found: dict[str, int] = {}

    @torchemu.kernel
    def measure(x: Any, word: Any, n: int) -> None:
        start = tl.clock()
        tl.load(x, n)
        tl.drain()
        found["local"] = tl.clock() - start
        start = tl.clock()
        tl.signal(word.on(tl.world_size() - 1))
        tl.quiet()
        found["signal"] = tl.clock() - start

    def rank(r: int) -> None:
        word = tl.symmetric_empty(1, dtype=torch.int64)
        measure[1](torch.zeros(nbytes // 4), word, nbytes // 4)
        word.wait()

    with world_of(ranks):
        torch.multiprocessing.spawn(rank, nprocs=ranks)
    return found["local"], found["signal"]


# -- what goes wrong

WRONG = """
import torchemu
import torchemu.language as tl

@torchemu.kernel(collective="all_reduce")
def fails(out, source, n, op):
    if tl.rank() == 1:
        raise ValueError("not today")
    tl.sync()

@torchemu.kernel(collective="all_reduce")
def hangs(out, source, n, op):
    if tl.rank() == 0:
        tl.wait(tl.workspace("w", 1, torchemu.int64), tl.GE, 1)

@torchemu.kernel(collective="all_reduce")
def races(out, source, n, op):
    tl.put_nbi(out.on((tl.rank() + 1) % tl.world_size()), source, n)
    tl.store(out, tl.load(source, n))

@torchemu.kernel(collective="all_reduce")
def fails_first(out, source, n, op):
    words = tl.workspace("words", 1, torchemu.int64)
    for peer in range(tl.world_size()):
        tl.signal(words.on(peer))
    if n == 1 and tl.rank() == 1:
        raise ValueError("the first time")
    tl.wait(words, tl.EQ, tl.world_size() * tl.call_number())
    tl.store(out, tl.full(n, 5.0))

@torchemu.kernel
def alone(out, n):
    pass

@torchemu.kernel(collective="all_gather")
def gathers(out, source, n, op):
    pass

def plain(out, source, n, op):
    pass
"""


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A file of kernels with a mistake each."""
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    return file


def own(file: Path, function: str) -> str:
    return f"defaults: {{algorithm: mine}}\nalgorithms:\n  mine: {{kernel: {file}:{function}}}\n"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("fails", r"(?s)kernel 'fails' on rank 1 failed at .*wrong\.py:8: ValueError: not today"),
        (
            "hangs",
            r"(?s)all_reduce of 8 float32.*whose kernel \"mine\" on rank 0 at wrong\.py:14 waits for .* GE 1",
        ),
        ("races", r"(?s)RaceError: .*put_nbi by kernel \"mine\".*wrong\.py:18.*store by kernel \"mine\".*wrong\.py:19"),
    ],
)
def test_mistakes_in_a_collective(wrong: Path, function: str, text: str) -> None:
    x = data(2, 8, "float32", 1)
    with pytest.raises(ProcessRaisedException, match=text):
        results(2, own(wrong, function), all_reduce(x))


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("missing.py:f", r"\.yaml:3: kernel 'mine' of the ccl config: there is no file .*missing.py"),
        ("wrong.py:nothing", "wrong.py has no function nothing"),
        (
            "wrong.py:plain",
            r"plain of .*wrong.py is no collective: it needs @torchemu.kernel\(collective='all_reduce'\)",
        ),
        (
            "wrong.py:alone",
            r"alone of .*wrong.py is no collective: it needs @torchemu.kernel\(collective='all_reduce'\)",
        ),
        ("wrong.py:gathers", "is a kernel for all_gather, not for all_reduce"),
        ("wrong.py", r"algorithms.mine.kernel: must be a Python file and a function in it, such as"),
        ("broken.py:f", r"broken.py cannot be loaded: SyntaxError: .*\(broken.py, line 1\)"),
        ("raises.py:f", r"\.yaml:3: kernel .*raises.py:2 cannot be loaded: ZeroDivisionError"),
    ],
)
def test_mistakes_in_the_config(wrong: Path, place: str, text: str, yaml_file: YamlFile) -> None:
    """The path is relative to the file."""
    (wrong.parent / "broken.py").write_text("def f(:\n")
    (wrong.parent / "raises.py").write_text("x = 1\nx / 0\n")
    file = yaml_file(f"defaults: {{algorithm: mine}}\nalgorithms:\n  mine: {{kernel: {place}}}\n")
    with pytest.raises(ValueError, match=text), runtime.opened("default", file):
        pass


def test_a_kernel_needs_a_name_of_its_own(wrong: Path, yaml_file: YamlFile) -> None:
    file = yaml_file("algorithms:\n  ring: {kernel: wrong.py:fails}\n")
    with pytest.raises(ValueError, match="ring is a built-in algorithm: call the kernel something else"):
        torch.World("default", file)
    file = yaml_file("defaults: {algorithm: mina}\nalgorithms:\n  mine: {kernel: wrong.py:fails}\n")
    with pytest.raises(ValueError, match=r'defaults\.algorithm: must be .*mine; not "mina"; did you mean mine'):
        torch.World("default", file)


def test_blocks_of_different_sizes_are_refused() -> None:
    def program(rank: int) -> np.ndarray:
        out = [torch.zeros(1), torch.zeros(2)]
        dist.all_gather(out, torch.zeros(rank + 1))
        return out[0].numpy()

    with pytest.raises(ProcessRaisedException, match='blocks differ in size, which kernel "mine"'):
        results(2, named("ring.py:all_gather", "all_gather"), program)


def test_a_bench_shows_kernels_beside_the_built_in_algorithms(capsys: pytest.CaptureFixture[str]) -> None:
    from torchemu.launch.cli import main

    configs = [f"--ccl={ROOT / 'benches' / 'kernels' / name}.yaml" for name in ("builtin_ring", "ring", "two_shot")]
    assert main(["bench", str(ROOT / "benches" / "ccl_allreduce.py"), *configs, "--check"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "  all_reduce  " in line]
    assert [words[1:3] for words in lines] == [
        ["all_reduce", name] for name in ("ring", "kernel_ring", "kernel_two_shot") for _ in range(3)
    ]
    assert [words[4] for words in lines] == ["64", "8192", "2097152"] * 3


def test_shards_of_a_single_worker_are_no_ranks() -> None:
    with world_of(2, "defaults: {algorithm: mine, world_size: 4}\n" + named("ring.py:all_reduce").partition("\n")[2]):
        dist.init_process_group()
        t = torch.zeros(1, 4, dp=torch.DPPolicy(pe="column_wise", num_cubes=1, num_pes=4))
        with pytest.raises(ValueError, match=r'kernel "mine" of ccl\.yaml runs on ranks, not on the shards'):
            dist.all_reduce(t)
            t.numpy()


def test_a_collective_works_again_after_it_has_failed(wrong: Path) -> None:
    def program(rank: int) -> np.ndarray:
        with pytest.raises(torchemu.errors.KernelError, match="the first time"):
            t = torch.zeros(1)
            dist.all_reduce(t)
            t.numpy()
        t = torch.zeros(3)
        dist.all_reduce(t)
        return t.numpy()

    got, _ = results(3, own(wrong, "fails_first"), program, check=False)
    assert [g.tolist() for g in got] == [[5.0] * 3] * 3
