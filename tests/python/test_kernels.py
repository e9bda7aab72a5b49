"""Device programs in Python: what the language's functions mean, compared with NumPy, and what misuse becomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, same
from kernel_worlds import run, world_of

import torchemu
import torchemu as torch
import torchemu.language as tl
from torchemu.multiprocessing import ProcessRaisedException

WORLDS = [1, 2, 3, 4, 8, 16]


def of(array: np.ndarray) -> torch.Tensor:
    """A tensor of a rank's device."""
    return torch.from_numpy(array.copy()).to(f"ahbm:{torch.ahbm.current_device()}")


# -- tiles


def tile_result(function: Callable[..., Any], *arrays: np.ndarray, like: np.ndarray) -> np.ndarray:
    """What a kernel stores that applies the function to tiles of the arrays."""

    @torchemu.kernel
    def body(out: Any, *pointers: Any) -> None:
        tiles = [tl.load(p, a.shape) for p, a in zip(pointers, arrays, strict=True)]
        tl.store(out, function(*tiles))

    with world_of(1):
        out = of(np.zeros_like(like))
        body[1](out, *[of(a) for a in arrays])
        return out.numpy().copy()


def short(name: str, seed: int, shape: tuple[int, ...] = (37,)) -> np.ndarray:
    rng = np.random.default_rng(seed)
    kind = np.dtype(NUMPY[name])
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        return rng.integers(1, 50, shape).astype(kind)
    return (rng.standard_normal(shape) * 3).astype(np.float32).astype(kind)


BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda a, b: a + b, np.add),
    "sub": (lambda a, b: a - b, np.subtract),
    "mul": (lambda a, b: a * b, np.multiply),
    "maximum": (tl.maximum, np.maximum),
    "minimum": (tl.minimum, np.minimum),
}


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8"])
def test_arithmetic_of_tiles(op: str, name: str) -> None:
    """Shorter floats are calculated in float32 and rounded once."""
    tiles, ufunc = BINARY[op]
    a, b = short(name, 1), short(name, 2)
    wide = np.float32 if name in ("float16", "bfloat16") else a.dtype
    want = ufunc(a.astype(wide), b.astype(wide)).astype(a.dtype)
    assert same(tile_result(tiles, a, b, like=want), want)


UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "exp": (tl.exp, np.exp),
    "exp2": (tl.exp2, np.exp2),
    "log": (lambda t: tl.log(tl.absolute(t)), lambda x: np.log(np.abs(x))),
    "log2": (lambda t: tl.log2(tl.absolute(t)), lambda x: np.log2(np.abs(x))),
    "sqrt": (lambda t: tl.sqrt(t * t), lambda x: np.sqrt(x * x)),
    "rsqrt": (lambda t: tl.rsqrt(t * t + 1), lambda x: 1 / np.sqrt(x * x + 1)),
    "sin": (tl.sin, np.sin),
    "cos": (tl.cos, np.cos),
    "tanh": (tl.tanh, np.tanh),
    "sigmoid": (tl.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "negative": (lambda t: -t, np.negative),
    "scalar right": (lambda t: t * 2 - 0.5, lambda x: x * np.float32(2) - np.float32(0.5)),
    "scalar left": (lambda t: 1 / (2 + t * t), lambda x: np.float32(1) / (2 + x * x)),
    "where": (lambda t: tl.where(t > 0, t, 0.0), lambda x: np.where(x > 0, x, np.float32(0))),
}


@pytest.mark.parametrize("op", UNARY)
def test_functions_of_tiles(op: str) -> None:
    tiles, array = UNARY[op]
    x = short("float32", 3)
    want = array(x).astype(np.float32)
    assert same(tile_result(tiles, x, like=want), want)


def test_dtypes_meet_as_those_of_tensors_do() -> None:
    """Against the tensors themselves."""
    names = ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
    numbers = [True, 2, 2.5]
    seen = []

    @torchemu.kernel
    def meet(*pointers: Any) -> None:
        tiles = [tl.load(p, 1) for p in pointers]
        seen.extend([(a + b).dtype for a in tiles for b in [*tiles, *numbers]])

    with world_of(1):
        tensors = [torch.ones(1, dtype=name) for name in names]
        meet[1](*tensors)
        tensors[0].wait()
        assert seen == [(a + b).dtype for a in tensors for b in [*tensors, *numbers]]
    assert len(seen) == 8 * 11


def test_reductions_shapes_and_conversions() -> None:
    x = short("float32", 5, (6, 7))
    assert same(tile_result(lambda t: tl.sum(t, axis=1), x, like=x.sum(1)), x.sum(1))
    assert same(tile_result(lambda t: tl.max(t, axis=0), x, like=x.max(0)), x.max(0))
    assert same(tile_result(tl.min, x, like=x.min(keepdims=True).reshape(1)), x.min(keepdims=True).reshape(1))
    assert same(tile_result(lambda t: tl.trans(t), x, like=x.T.copy()), x.T.copy())
    assert same(tile_result(lambda t: t.reshape(42), x, like=x.reshape(42)), x.reshape(42))
    assert same(tile_result(lambda t: t.to(torch.float16), x, like=x.astype(np.float16)), x.astype(np.float16))
    want = (x - x.max(1, keepdims=True)).astype(np.float32)
    got = tile_result(lambda t: t - tl.max(t, axis=1).reshape(6, 1), x, like=want)
    assert same(got, want)
    i = np.arange(5, 16, dtype=np.int32)
    assert same(tile_result(lambda t: t * 0 + tl.arange(5, 16), i, like=i), i)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (4, 5, 6), (17, 3, 64)])
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_dot(m: int, n: int, k: int, name: str) -> None:
    """Small whole numbers: any order of additions is exact."""
    rng = np.random.default_rng(m)
    a = rng.integers(-4, 5, (m, k)).astype(name)
    b = rng.integers(-4, 5, (k, n)).astype(name)
    want = (a.astype(np.float64) @ b.astype(np.float64)).astype("float64" if name == "float64" else "float32")
    assert same(tile_result(tl.dot, a, b, like=want), want)
    assert same(tile_result(lambda x, y: tl.dot(x, y, tl.dot(x, y)), a, b, like=want), 2 * want)


def test_an_attention_like_program() -> None:
    """Loads, the matrix and the vector pipe, one after another without a flag: the interlock orders them."""
    q, k, v = (short("float32", s, (16, 16)) for s in (1, 2, 3))

    def softmax(x: np.ndarray) -> np.ndarray:
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def tiles(q: Any, k: Any, v: Any) -> Any:
        s = tl.dot(q, tl.trans(k))
        e = tl.exp(s - tl.max(s, axis=1).reshape(16, 1))
        return tl.dot(e / tl.sum(e, axis=1).reshape(16, 1), v)

    want = softmax(q @ k.T) @ v
    np.testing.assert_allclose(tile_result(tiles, q, k, v, like=want), want, rtol=1e-5, atol=1e-5)


# -- launches


@pytest.mark.parametrize("blocks", [1, 2, 5, 16])
def test_programs_of_a_grid(blocks: int) -> None:
    @torchemu.kernel
    def fill(out: Any, n: int) -> None:
        assert tl.num_programs() == blocks
        tl.store(out + tl.program_id() * n, tl.full(n, tl.program_id(), out.dtype))

    with world_of(1):
        out = torch.full((blocks * 8,), -1, dtype=torch.int32)
        fill[blocks](out, 8)
        assert out.tolist() == [i for i in range(blocks) for _ in range(8)]


def test_programs_of_a_grid_run_side_by_side() -> None:
    @torchemu.kernel
    def busy(x: Any, n: int) -> None:
        t = tl.load(x, n)
        for _ in range(20):
            t = t + t

    def time_of(blocks: int) -> int:
        with world_of(1):
            x = torch.zeros(4096)
            busy[blocks](x, 4096)
            x.wait()
            return _now()

    assert time_of(4) < 2 * time_of(1)


def _now() -> int:
    from torchemu import _waiting

    return _waiting.host_time()


def test_a_kernel_follows_what_is_on_its_stream() -> None:
    """And what follows it finds its results: kernels, collectives and operations take turns."""

    @torchemu.kernel
    def add_one(x: Any, n: int) -> None:
        tl.store(x, tl.load(x, n) + 1)

    def rank(r: int) -> None:
        torch.distributed.init_process_group()
        x = torch.full((64,), float(r))
        x.mul_(2)
        add_one[1](x, 64)
        torch.distributed.all_reduce(x)
        add_one[1](x, 64)
        x.mul_(3)
        add_one[1](x, 64)
        assert x.tolist() == [3 * (2 * 6 + 4 + 1) + 1] * 64

    run(4, rank)


def test_reading_on_the_host_waits_for_the_end() -> None:
    @torchemu.kernel
    def slow(x: Any, n: int) -> None:
        t = tl.load(x, n)
        for _ in range(100):
            t = t + 1
        tl.store(x, t)

    with world_of(1):
        x = torch.zeros(1024)
        before = _now()
        slow[1](x, 1024)
        issued = _now()
        assert x[3].item() == 100
        assert issued - before < 10_000_000 < _now() + 10_000_000 - issued
        assert _now() - issued > 100 * 1000  # a nanosecond for each addition at least


def test_views_and_offsets() -> None:
    @torchemu.kernel
    def copy(out: Any, x: Any, n: int) -> None:
        tl.store(out, tl.load(x, n))

    with world_of(1):
        x = torch.arange(100, dtype=torch.float32)
        out = torch.zeros(100)
        copy[1](out[50:60], x[7:17], 10)
        assert out.tolist() == [0.0] * 50 + list(range(7, 17)) + [0.0] * 40


@pytest.mark.parametrize("n", [0, 1, 7, 100_003])
def test_sizes_of_loads_and_stores(n: int) -> None:
    @torchemu.kernel
    def copy(out: Any, x: Any, n: int, step: int) -> None:
        for lo in range(0, n, step):
            m = min(step, n - lo)
            tl.store(out + lo, tl.load(x + lo, m))

    with world_of(1):
        x = torch.arange(n, dtype=torch.float32)
        out = torch.zeros(n)
        copy[1](out, x, n, 4096)
        assert out.tolist() == list(range(n))


# -- between ranks


@pytest.mark.parametrize("ranks", WORLDS)
@pytest.mark.parametrize("reorder", [None, 1, 2])
def test_a_ring_of_signals(ranks: int, reorder: int | None) -> None:
    @torchemu.kernel
    def shift(out: Any, x: Any, words: Any, n: int) -> None:
        following = (tl.rank() + 1) % tl.world_size()
        tl.put_signal(out.on(following), x, n, words.on(following))
        tl.wait(words, tl.GE, 1)

    def rank(r: int) -> None:
        out, words = tl.symmetric_empty(33), tl.symmetric_empty(1, dtype=torch.int64)
        shift[1](out, torch.full((33,), float(r)), words, 33)
        assert out.tolist() == [float((r - 1) % ranks)] * 33

    run(ranks, rank, reorder=reorder)


@pytest.mark.parametrize("ranks", [2, 4])
def test_atomics_and_queues(ranks: int) -> None:
    olds: list[int] = []

    @torchemu.kernel
    def count(words: Any, data: Any) -> None:
        olds.append(tl.atomic_add(words.on(0), 1))
        before, after = (tl.rank() - 1) % tl.world_size(), (tl.rank() + 1) % tl.world_size()
        for _ in range(3):
            tl.send(tl.queue("q", tl.rank(), after, 1, 4, data.dtype), data, 4)
            got = tl.recv(tl.queue("q", before, tl.rank(), 1, 4, data.dtype), data + 4, 8)
            assert got == 4
        tl.barrier()
        assert tl.fetch(words.on(0)) == tl.world_size()
        if tl.rank() == 0:
            assert tl.atomic_cas(words, tl.world_size(), 77) == tl.world_size()
            assert tl.atomic_exchange(words, 5) == 77

    def rank(r: int) -> None:
        words = tl.symmetric_empty(1, dtype=torch.int32)
        data = torch.full((12,), float(r))
        count[1](words, data)
        assert data.tolist()[4:8] == [float((r - 1) % ranks)] * 4

    run(ranks, rank, check=False)
    assert sorted(olds) == list(range(ranks))


def test_copies_gets_and_reducing_puts() -> None:
    @torchemu.kernel
    def body(total: Any, x: Any, near: Any, n: int) -> None:
        tl.put_reduce(total.on(0), x, n, "sum")
        tl.barrier()
        other = (tl.rank() + 1) % tl.world_size()
        tl.get(near, total.on(0), n)
        event = tl.copy_async(near + n, total.on(0), n)
        event.wait()
        tl.put_nbi(near + 2 * n, total.on(0) if tl.rank() == 0 else near, n)
        tl.quiet()
        assert other != tl.rank()

    def rank(r: int) -> None:
        total, near = tl.symmetric_empty(16), torch.zeros(48)
        body[1](total, torch.full((16,), float(r + 1)), near, 16)
        assert near.tolist() == [10.0] * 48

    run(4, rank)


def test_kernels_without_interlock_need_flags() -> None:
    @torchemu.kernel(interlock=False)
    def flags(out: Any, x: Any, n: int) -> None:
        t = tl.load(x, n)
        tl.set_flag("load", "vector")
        tl.wait_flag("load", "vector")
        doubled = t + t
        tl.set_flag("vector", "store", 3)
        tl.wait_flag("vector", "store", 3)
        tl.store(out, doubled)

    @torchemu.kernel(interlock=False)
    def without(out: Any, x: Any, n: int) -> None:
        t = tl.load(x, n)
        tl.store(out, t)
        tl.drain()

    with world_of(1):
        out, x = torch.zeros(64), torch.ones(64)
        flags[1](out, x, 64)
        assert out.tolist() == [2.0] * 64
        without[1](out, x, 64)
        with pytest.raises(torchemu.errors.RaceError, match=r"store by kernel \"without\".*test_kernels\.py:\d+"):
            out.tolist()


# -- misuse


def failure(program: Callable[[int], None], ranks: int = 1) -> str:
    """The text that a spawn fails with."""
    with pytest.raises(ProcessRaisedException) as caught:
        run(ranks, program)
    return str(caught.value)


@torchemu.kernel
def nothing(*args: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("grid", "error"),
    [(0, ValueError), (-1, ValueError), ("1", TypeError), (True, TypeError), ((1, 2), TypeError), (10_000, ValueError)],
)
def test_bad_grids(grid: Any, error: type[Exception]) -> None:
    with world_of(1), pytest.raises(error, match="grid"):
        nothing[grid]()


@pytest.mark.parametrize("argument", [object(), {"a": 1}, np.zeros(3), b"x"])
def test_bad_arguments(argument: Any) -> None:
    with world_of(1), pytest.raises(TypeError, match="argument args of kernel 'nothing' is of type"):
        nothing[1](argument)


def test_tensors_that_a_kernel_cannot_have() -> None:
    with world_of(2):
        with pytest.raises(ValueError, match="cpu"):
            nothing[1](torch.zeros(3, device="cpu"))
        with pytest.raises(ValueError, match="on ahbm:1"):
            nothing[1](torch.zeros(3, device=1))
        with pytest.raises(ValueError, match="not contiguous"):
            nothing[1](torch.zeros(3, 4).t())
        x = torch.zeros(3)
    with world_of(1), pytest.raises(RuntimeError, match="another World"):
        nothing[1](x)


def test_wrong_signatures() -> None:
    @torchemu.kernel
    def two(a: Any, b: int) -> None:
        pass

    with world_of(1):
        with pytest.raises(TypeError, match="missing a required argument"):
            two[1](torch.zeros(1))
        with pytest.raises(RuntimeError, match=r"launched with a grid: two\[1\]"):
            two(1, 2)
        with pytest.raises(ValueError, match="all_reduce, all_gather, reduce_scatter"):
            torchemu.kernel(collective="broadcast")
    with pytest.raises(RuntimeError, match="only inside of a kernel"):
        tl.rank()


BROKEN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "beyond a tensor": (lambda p: tl.load(p + 6, 8), r"ValueError: .* reach beyond .*8 after that"),
    "in no window": (lambda p: tl.load(p + (1 << 40), 1), "ValueError: .*is in no window"),
    "on no rank": (lambda p: p.on(1), "ValueError: rank 1 is not one of 0 to 0"),
    "wrong dtype": (lambda p: tl.store(p, tl.zeros(4, torch.float16)), "TypeError: a tile of torch.float16 cannot be"),
    "scratch overflow": (lambda p: tl.zeros(1 << 20), "MemoryError: a tile of 4194304 bytes .*of its 1048576 bytes 0"),
    "no word": (lambda p: tl.signal(p), "TypeError: word must be of int32 or int64, not torch.float32"),
    "no pointer": (lambda p: tl.load(7, 1), "TypeError: pointer must be a pointer, .*not int"),
    "negative": (lambda p: tl.load(p, -1), "ValueError: n must be 0 or more"),
    "shapes": (lambda p: tl.load(p, 2) + tl.load(p, 3), "ValueError: .*broadcast"),
    "truth": (lambda p: bool(tl.load(p, 2) > 1), "TypeError: what a tile has is known only when"),
    "host": (lambda p: torch.zeros(2).all().item() or tensor_wait(), "RuntimeError: a kernel cannot wait"),
    "raise": (lambda p: 1 // 0, "ZeroDivisionError"),
}


def tensor_wait() -> None:
    from torchemu import _waiting

    _waiting.reach(1)


@pytest.mark.parametrize("mistake", BROKEN)
def test_an_exception_in_a_kernel_names_it_and_its_line(mistake: str) -> None:
    operation, text = BROKEN[mistake]

    @torchemu.kernel
    def broken(p: Any) -> None:
        operation(p)

    with world_of(1):
        x = torch.zeros(8)
        broken[1](x)
        with pytest.raises(torchemu.errors.KernelError, match=rf"(?s)kernel 'broken' on rank 0 failed at .*{text}"):
            x.tolist()
        y = torch.ones(8)
        nothing[1](y)  # the device goes on
        assert y.tolist() == [1.0] * 8


def test_an_exception_on_one_rank_ends_the_others() -> None:
    @torchemu.kernel
    def one_fails(words: Any) -> None:
        if tl.rank() == 2:
            raise ValueError("not today")
        tl.wait(words, tl.GE, 1)

    def rank(r: int) -> None:
        words = tl.symmetric_empty(1, dtype=torch.int64)
        one_fails[1](words)
        words.tolist()

    text = failure(rank, 4)
    assert "Process 2" in text
    assert "not today" in text
    assert "kernel 'one_fails' on rank 2 failed at" in text


def test_a_deadlock_names_kernel_rank_address_values_and_line() -> None:
    @torchemu.kernel
    def stuck(words: Any) -> None:
        if tl.rank() == 1:
            tl.signal(words.on(0), 1)
        if tl.rank() == 0:
            tl.wait(words, tl.EQ, 3)

    def rank(r: int) -> None:
        words = tl.symmetric_empty(1, dtype=torch.int64)
        stuck[1](words)
        words.tolist()

    text = failure(rank, 2)
    assert "deadlock at simulated time" in text
    assert 'kernel "stuck" on rank 0 at test_kernels.py:' in text
    assert "to be EQ 3; it is 1" in text


def test_a_wait_for_equality_that_is_overshot_is_the_cause() -> None:
    @torchemu.kernel
    def overshot(words: Any) -> None:
        tl.signal(words.on(1 - tl.rank()), 2)
        tl.sync()
        tl.wait(words, tl.EQ, 1)

    def rank(r: int) -> None:
        words = tl.symmetric_empty(1, dtype=torch.int64)
        overshot[1](words)
        words.tolist()

    with pytest.raises(ProcessRaisedException, match="likely cause: EQ wait overshot"):
        run(2, rank, check=False)


def test_a_race_is_an_error_that_names_both_accesses() -> None:
    @torchemu.kernel
    def racy(out: Any, x: Any, words: Any, n: int) -> None:
        following = (tl.rank() + 1) % tl.world_size()
        tl.put_nbi(out.on(following), x, n)
        tl.store(x, tl.load(out, n))  # nobody says that it has come
        tl.drain()

    def rank(r: int) -> None:
        out, words = tl.symmetric_empty(33), tl.symmetric_empty(1, dtype=torch.int64)
        racy[1](out, torch.zeros(33), words, 33)
        out.tolist()

    text = failure(rank, 2)
    assert "RaceError" in text
    lines = racy.function.__code__.co_firstlineno
    assert f"test_kernels.py:{lines + 3}" in text
    assert f"test_kernels.py:{lines + 4}" in text
    assert "missing: no signal, barrier or event leads from" in text


def test_a_store_that_was_not_drained_before_its_signal() -> None:
    @torchemu.kernel
    def undrained(out: Any, words: Any, n: int, drain: bool) -> None:
        peer = 1 - tl.rank()
        tl.store(out.on(peer), tl.full(n, 1.0))
        if drain:
            tl.drain()
        tl.signal(words.on(peer), 1)
        tl.wait(words, tl.GE, 1)
        tl.load(out, n)

    def rank(drain: bool) -> Callable[[int], None]:
        def program(r: int) -> None:
            out, words = tl.symmetric_empty(1024), tl.symmetric_empty(1, dtype=torch.int64)
            undrained[1](out, words, 1024, drain)
            out.tolist()

        return program

    run(2, rank(True))
    with pytest.raises(ProcessRaisedException, match="drain the store pipe"):
        run(2, rank(False))


def test_kernels_that_hosts_order_do_not_race() -> None:
    """A barrier of the hosts, or a collective on the streams, between two kernels."""

    @torchemu.kernel
    def give(out: Any, x: Any, n: int) -> None:
        tl.put(out.on((tl.rank() + 1) % tl.world_size()), x, n)

    @torchemu.kernel
    def take(x: Any, out: Any, n: int) -> None:
        tl.store(x, tl.load(out, n))

    def rank(between: str) -> Callable[[int], None]:
        def program(r: int) -> None:
            torch.distributed.init_process_group()
            out, x = tl.symmetric_empty(64), torch.full((64,), float(r))
            give[1](out, x, 64)
            if between == "barrier":
                out.wait()
                torch.distributed.barrier()
            elif between == "collective":
                torch.distributed.all_reduce(torch.zeros(4))
            take[1](x, out, 64)
            assert x.tolist() == [float((r - 1) % 4)] * 64 or between == "nothing"

        return program

    run(4, rank("barrier"))
    run(4, rank("collective"))
    with pytest.raises(ProcessRaisedException, match="RaceError"):
        run(4, rank("nothing"))


def test_ranks_must_ask_for_the_same_symmetric_memory() -> None:
    def rank(r: int) -> None:
        tl.symmetric_empty(4 + r)

    text = failure(rank, 2)
    assert "MismatchError" in text
    assert "asks for float32[5]" in text
    assert "float32[4]" in text


def test_ctrl_c_in_a_kernel() -> None:
    @torchemu.kernel
    def interrupted(words: Any) -> None:
        if tl.rank() == 1:
            raise KeyboardInterrupt
        tl.wait(words, tl.GE, 1)

    def rank(r: int) -> None:
        words = tl.symmetric_empty(1, dtype=torch.int64)
        interrupted[1](words)
        words.tolist()

    with pytest.raises(KeyboardInterrupt):
        run(2, rank)
    run(2, lambda r: nothing[1](torch.zeros(1)))


def test_results_do_not_depend_on_the_run() -> None:
    """The same program, the same simulated times; with --reorder others, and the same results."""

    @torchemu.kernel
    def gather(out: Any, x: Any, words: Any, n: int) -> None:
        for peer in range(tl.world_size()):
            tl.put_signal_nbi(out.on(peer) + tl.rank() * n, x, n, words.on(peer))
        tl.wait(words, tl.GE, tl.world_size())

    def once(reorder: int | None) -> int:
        ends = []

        def rank(r: int) -> None:
            out, words = tl.symmetric_empty(4 * 8), tl.symmetric_empty(1, dtype=torch.int64)
            gather[1](out, torch.full((8,), float(r)), words, 8)
            assert out.tolist() == [float(i) for i in range(4) for _ in range(8)]
            ends.append(_now())

        run(4, rank, reorder=reorder)
        return max(ends)

    assert once(None) == once(None)
    times = {once(seed) for seed in range(6)}
    assert times == {once(seed) for seed in range(6)}
    assert len(times) > 1
