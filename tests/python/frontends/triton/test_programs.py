"""Kernels on one rank against NumPy: memory, grids, masks, threads, loops that park."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_worlds import run, world_of

import torchemu as torch
import torchemu.frontends.triton.face as triton
import torchemu.frontends.triton.face.language as tl
from torchemu.frontends.triton.face import Autotuner
from torchemu.frontends.triton_dist.face import language as dl
from torchemu.frontends.triton_dist.face.language.extra import language_extra as extra

pytestmark = pytest.mark.shows("libraries: Triton")

RANDOM = np.random.default_rng(3)


def tensor(array: np.ndarray) -> Any:
    """A tensor on the rank's device."""
    return torch.as_tensor(np.ascontiguousarray(array))


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask, other=0.0), mask=mask)


@pytest.mark.parametrize("n", [1, 31, 128, 1000, 4097])
def test_masks(n: int) -> None:
    a, b = (RANDOM.standard_normal(n).astype(np.float32) for _ in range(2))
    with world_of(1):
        out = torch.zeros(n)
        add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](tensor(a), tensor(b), out, n, BLOCK=128)
        assert (out.numpy() == a + b).all()


def test_no_program_for_an_empty_grid() -> None:
    with world_of(1):
        out = torch.zeros(4)
        add[(0,)](out, out, out, 4, BLOCK=4)
        assert out.tolist() == [0] * 4


@triton.jit
def product(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        left = k * BK + inner
        x = tl.load(
            a + rows[:, None] * sam + left[None, :] * sak, mask=(rows[:, None] < M) & (left[None, :] < K), other=0.0
        )
        y = tl.load(
            b + left[:, None] * sbk + columns[None, :] * sbn,
            mask=(left[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        total = tl.dot(x, y, total)
    tl.store(
        c + rows[:, None] * scm + columns[None, :] * scn,
        total.to(c.dtype.element_ty),
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_blocks_with_strides(transposed: bool) -> None:
    m, n, k = 70, 50, 90
    a = RANDOM.integers(-4, 5, (m, k)).astype(np.float16)
    b = RANDOM.integers(-4, 5, (k, n)).astype(np.float16)
    with world_of(1):
        x = tensor(a)
        y = tensor(b.T).t() if transposed else tensor(b)
        c = torch.zeros(m, n)
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 16))
        product[grid](x, y, c, m, n, k, *x.stride(), *y.stride(), *c.stride(), BM=32, BN=16, BK=32)
        assert (c.numpy() == a.astype(np.float32) @ b.astype(np.float32)).all()


@triton.jit
def by_descriptors(a, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(a, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    target = tl.make_tensor_descriptor(out, [N, M], [M, 1], [BN, BM])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([j, i], tl.trans(source.load([i, j])) * 2)


@triton.jit
def by_block_pointers(a, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    p = tl.make_block_ptr(a, (M, N), (N, 1), (tl.program_id(0) * BM, 0), (BM, BN), (1, 0))
    q = tl.make_block_ptr(out, (N, M), (M, 1), (0, tl.program_id(0) * BM), (BN, BM), (1, 0))
    for _ in range(tl.cdiv(N, BN)):
        tl.store(q, tl.trans(tl.load(p, boundary_check=(0, 1), padding_option="zero")) * 2, boundary_check=(0, 1))
        p = tl.advance(p, (0, BN))
        q = tl.advance(q, (BN, 0))


def test_descriptors_and_block_pointers() -> None:
    a = RANDOM.standard_normal((24, 40)).astype(np.float32)
    with world_of(1):
        out = torch.zeros(40, 24)
        by_descriptors[2, 3](tensor(a), out, 24, 40, 16, 16)
        assert (out.numpy() == 2 * a.T).all()
        out.fill_(0)
        by_block_pointers[(2,)](tensor(a), out, 24, 40, 16, 16)
        assert (out.numpy() == 2 * a.T).all()


@triton.jit
def places(out, X: tl.constexpr, Y: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(out + (z * Y + y) * X + x, x + 100 * y + 10000 * z + 1000000 * tl.num_programs(axis=2))


def test_grids_have_three_dimensions_and_run_in_waves() -> None:
    """More programs than the device holds at a time."""
    with world_of(1):
        out = torch.zeros(12 * 9 * 6, dtype=torch.int32)
        places[12, 9, 6](out, 12, 9, num_warps=32)
        z, y, x = np.meshgrid(range(6), range(9), range(12), indexing="ij")
        assert (out.numpy() == (x + 100 * y + 10000 * z + 6000000).ravel()).all()


@triton.jit
def locked(word, total, n):
    while tl.atomic_cas(word, 0, 1, sem="acquire", scope="gpu") == 1:
        pass
    tl.debug_barrier()
    tl.store(total, tl.load(total) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(word, 0, sem="release", scope="gpu")


def test_spin_locks_park() -> None:
    with world_of(1):
        word, total = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        locked[(40,)](word, total, 7)
        assert (total.item(), word.item()) == (40, 0)


@triton.jit
def met(word, data, out, n, G: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(data + pid, pid * 3)
    tl.debug_barrier()
    tl.atomic_add(word, 1, sem="acq_rel", scope="gpu")
    while tl.load(word, volatile=True) < n:
        pass
    tl.debug_barrier()
    tl.store(out + pid, tl.load(data + (pid + 1) % G))


def test_programs_of_a_grid_meet() -> None:
    with world_of(1):
        word, data, out = (torch.zeros(64, dtype=torch.int32) for _ in range(3))
        met[(64,)](word, data, out, 64, 64, launch_cooperative_grid=True)
        assert out.tolist() == [(p + 1) % 64 * 3 for p in range(64)]


@triton.jit
def atomics(p, out, sums):
    i = tl.arange(0, 64)
    old = tl.atomic_add(p + i % 8, i, mask=i < 40)
    tl.store(out + i, old, mask=i < 40)
    tl.atomic_max(sums + i % 2, i)
    tl.atomic_min(sums + 2 + i * 0, -i)
    tl.atomic_xor(sums + 3 + i * 0, i)


def test_atomic_operations_of_blocks() -> None:
    with world_of(1):
        p, out, sums = (torch.zeros(n, dtype=torch.int32) for n in (8, 64, 4))
        atomics[(1,)](p, out, sums)
        want, seen = np.zeros(8, int), []
        for i in range(40):
            seen.append(want[i % 8])
            want[i % 8] += i
        assert p.tolist() == want.tolist() and out.tolist()[:40] == seen
        assert sums.tolist() == [62, 63, -63, int(np.bitwise_xor.reduce(np.arange(64)))]


@triton.jit
def twice(x, EXTRA: tl.constexpr = 0):
    return x * 2 + EXTRA, x


@triton.jit
def threads(out, lost, n):
    t = extra.tid(0)
    size = extra.ntid(0)
    value = -1
    if t % 2 == 0:
        value = t * 10
    elif t < 5 or t > 60:
        value = t + 1000
    if not (t == 3):
        value += 1
    for i in range(t, n, size):
        extra.st(out + i, value + i)
    count = 0
    left = t
    while left > 0:
        left = left - 3
        count += 1
    extra.st(lost + t, count if t < 20 else -count)


def test_conditions_that_differ_between_threads() -> None:
    with world_of(1):
        out, lost = torch.zeros(300, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
        threads[(1,)](out, lost, 300, num_warps=2)
        found, counted = out.tolist(), lost.tolist()

    def value(t: int) -> int:
        v = t * 10 if t % 2 == 0 else t + 1000 if t < 5 or t > 60 else -1
        return v + (t != 3)

    assert found == [value(i % 64) + i for i in range(300)]
    assert counted == [(t + 2) // 3 if t < 20 else -((t + 2) // 3) for t in range(64)]


@triton.jit
def exchanged(out):
    t = extra.tid(0)
    up = extra.__shfl_up_sync_i32(0xFFFFFFFF, t, 1)
    ballot = extra.__ballot_sync(0xFFFFFFFF, t % 3 == 0)
    extra.st(out + t, up)
    extra.st(out + 64 + t, ballot)


def test_threads_exchange_in_warps() -> None:
    with world_of(1):
        out = torch.zeros(128, dtype=torch.int32)
        exchanged[(1,)](out, num_warps=2)
        want = [t - 1 if t % 32 else t for t in range(64)]
        assert out.tolist()[:64] == want
        bits = [sum(1 << i for i in range(32) if (w * 32 + i) % 3 == 0) for w in range(2)]
        assert out.numpy()[64:].view(np.uint32).tolist() == [bits[0]] * 32 + [bits[1]] * 32


@triton.jit
def regions(x, out, N: tl.constexpr):
    block = tl.load(x + tl.arange(0, N))
    with dl.simt_exec_region() as (tid, nthreads):
        for i in range(tid, N, nthreads):
            v = dl.extract(block, [i])
            block = dl.insert(block, v * v, [i])
    tl.store(out + tl.arange(0, N), block)


def test_elements_of_blocks_by_threads() -> None:
    with world_of(1):
        x = torch.arange(256, dtype=torch.float32)
        out = torch.zeros(256)
        regions[(1,)](x, out, 256, num_warps=2)
        assert out.tolist() == [i * i for i in range(256)]


@triton.jit
def meaning(out, ONE, BLOCK: tl.constexpr, FLAG: tl.constexpr, NOTHING):
    a = -7
    b = a // 2  # towards zero: a is a value
    c: tl.constexpr = -7 // 2  # Python's
    if FLAG and NOTHING is None and ONE == 1:
        d = 5 if BLOCK > 4 else tl.undefined
    else:
        d = tl.undefined_too
    e, f = twice(b, EXTRA=c)
    tl.static_assert(BLOCK == 8, "eight")
    tl.device_assert(a < 0, "negative")
    assert d == 5, "five"
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.where(i == 0, b, tl.where(i == 1, c, tl.where(i == 2, d, tl.where(i == 3, e, f)))))


def test_constants_and_values() -> None:
    with world_of(1):
        out = torch.zeros(8, dtype=torch.int32)
        meaning[(1,)](out, 1, 8, True, None)
        assert out.tolist() == [-3, -4, 5, -10, -3, -3, -3, -3]


@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128})], key=["n"])
@triton.heuristics({"EVEN": lambda a: a["n"] % a["BLOCK"] == 0})
@triton.jit
def tuned(out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, BLOCK + (1000 if EVEN else 0), mask=i < n)


def test_the_first_configuration_runs() -> None:
    with world_of(1):
        out = torch.zeros(128, dtype=torch.int32)
        tuned[lambda meta: (triton.cdiv(128, meta["BLOCK"]),)](out, 128)
        assert set(out.tolist()) == {1064}
        with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
            tuned[(1,)](out, 128, BLOCK=64)


@triton.jit
def busy(x, n):
    i = tl.arange(0, 1024)
    for _ in range(n):
        tl.store(x + i, tl.load(x + i) + 1)


def test_times_grow_with_the_work() -> None:
    with world_of(1, check=False):
        x = torch.zeros(1024)
        short, long = (triton.testing.do_bench(lambda n=n: busy[(1,)](x, n)) for n in (10, 1000))
        assert 0 < short < long


@triton.jit
def folded(x, sums, firsts, C: tl.constexpr):
    i = tl.arange(0, 8)[:, None] * C + tl.arange(0, C)[None, :]
    block = tl.load(x + i)
    tl.store(sums + tl.arange(0, 8), tl.reduce(block, 1, smaller))
    tl.store(firsts + i, tl.associative_scan(block, 1, smaller))


@triton.jit
def smaller(a, b):
    return tl.minimum(a, b)


def test_functions_of_the_kernel_reduce_and_scan() -> None:
    a = RANDOM.standard_normal((8, 16)).astype(np.float32)
    with world_of(1):
        sums, firsts = torch.zeros(8), torch.zeros(8, 16)
        folded[(1,)](tensor(a), sums, firsts, 16)
        assert (sums.numpy() == a.min(1)).all()
        assert (firsts.numpy() == np.minimum.accumulate(a, 1)).all()


@triton.jit
def first_of_two(word, out):
    while tl.load(word, volatile=True) != 5:
        pass
    tl.store(out, 1)


@triton.jit
def second_of_two(word):
    tl.atomic_xchg(word, 5)


def test_kernels_of_different_streams_run_side_by_side() -> None:
    def program(rank: int) -> None:
        word, out = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        other = torch.cuda.Stream()
        first_of_two[(1,)](word, out)
        with torch.cuda.stream(other):
            second_of_two[(1,)](word)
        torch.cuda.synchronize()
        assert out.item() == 1

    run(1, program, check=False)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: add[(1,)](x, x, x, 4), TypeError, "missing a required argument: 'BLOCK'"),
        (lambda x: add[(1,)](x, x, x, 4, BLOCK=4, block=3), TypeError, "block"),
        (
            lambda x: add[(1,)](x, x, "x" * 3, object(), BLOCK=4),
            TypeError,
            "argument n of kernel 'add' is of type object",
        ),
        (lambda x: add[1, 1, 1, 1](x, x, x, 4, BLOCK=4), ValueError, "one to three dimensions"),
        (lambda x: add[(1,)](x, x, x, 4, BLOCK=4, num_warps=3), ValueError, "num_warps is a power of 2"),
        (
            lambda x: add[(99999,)](x, x, x, 4, BLOCK=4, launch_cooperative_grid=True),
            RuntimeError,
            "wants 99999 blocks of 128 threads at once, and [0-9]+ fit",
        ),
        (lambda x: add(x, x, x, 4, 4), RuntimeError, "Cannot call @triton.jit'd outside of the scope of a kernel"),
        (lambda x: triton.jit(fast=True), TypeError, "no option 'fast'"),
    ],
)
def test_launches_that_are_refused(call: Any, error: type[Exception], text: str) -> None:
    with world_of(1):
        x = torch.zeros(4)
        with pytest.raises(error, match=text):
            call(x)


CONFIGS = [triton.Config({"BLOCK": block}) for block in (16, 256, 64)]


@triton.autotune(CONFIGS, key=["n"], reset_to_zero=["total"], restore_value=["x"])
@triton.jit
def adding(x, total, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(x + i, mask=i < n, other=0.0)
        tl.atomic_add(total, tl.sum(value))
        tl.store(x + i, value + 1, mask=i < n)


@pytest.mark.parametrize("autotunes", [False, True])
def test_the_fastest_configuration_runs_where_the_run_looks_for_it(autotunes: bool) -> None:
    adding.cache.clear()
    with world_of(1) as world:
        world.autotunes = autotunes
        x, total = torch.zeros(500), torch.zeros(1)
        for call in range(3):
            adding[(1,)](x, total, 500)
            assert x.tolist() == [call + 1] * 500
            assert total.item() == 500 * sum(range(call + 1))
        assert adding.best_config.kwargs["BLOCK"] == (256 if autotunes else 16)
        assert len(adding.cache) == 1
        total += 5
        adding[lambda meta: (meta["BLOCK"] // meta["BLOCK"],)](x[:8].contiguous(), total, 8)
        assert len(adding.cache) == 2
        assert total.item() == 24  # 8 × 3: zeroed before the first launch for new values of the key


def test_pruning_by_a_model_keeps_the_best() -> None:
    prune = {"perf_model": lambda x, BLOCK, **_: -BLOCK, "top_k": 2}
    tuned = triton.autotune(CONFIGS, key=["n"], prune_configs_by=prune)(adding.fn)
    with world_of(1) as world:
        x, total = torch.zeros(500), torch.zeros(1)
        tuned[(1,)](x, total, 500)
        assert tuned.best_config.kwargs["BLOCK"] == 256
        world.autotunes = True
        tuned[(1,)](x, total, 400)
        assert tuned.best_config.kwargs["BLOCK"] == 256


class Counted(Autotuner):
    """A class as programs derive it from Triton's."""

    def __init__(
        self, fn: Any, arg_names: Any, configs: Any, key: Any, reset: Any, restore: Any, **options: Any
    ) -> None:
        super().__init__(fn, arg_names, configs, key, reset, restore, **options)
        self.calls: list[tuple[bool, ...]] = []
        assert not self.user_defined_pre_hook and self.user_defined_post_hook == ("post_hook" in options)
        self.pre_hook = lambda kwargs, reset_only=False: self.calls.append((kwargs["n"] == 500, reset_only))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Counts, and does what the base class does."""
        self.calls.append(())
        return super().run(*args, **kwargs)


@pytest.mark.parametrize("autotunes", [False, True])
def test_programs_derive_classes_from_the_autotuner(autotunes: bool) -> None:
    told: list[BaseException | None] = []
    post = lambda kwargs, exception: told.append(exception)  # noqa: E731
    tuned = Counted(adding.fn, adding.arg_names, CONFIGS, ["n"], ["total"], None, post_hook=post)
    with world_of(1) as world:
        world.autotunes = autotunes
        x, total = torch.zeros(500), torch.zeros(1)
        for _ in range(2):
            tuned[(1,)](x, total, 500)
    trials = 3 * autotunes
    assert tuned.calls == [(), *[(True, False)] * trials, (True, True), ()]
    assert told == [None] * trials


@triton.jit
def known_parts(out, ON: tl.constexpr):
    pid = tl.program_id(0)
    if pid == 0 or ON:
        tl.store(out + pid, 1)
    if pid == 0 and ON:
        tl.store(out + 4 + pid, 1)


@pytest.mark.parametrize(("on", "wanted"), [(True, [1, 1, 1, 1, 1, 0, 0, 0]), (False, [1, 0, 0, 0, 0, 0, 0, 0])])
def test_parts_of_and_and_or_that_are_known(on: bool, wanted: list[int]) -> None:
    with world_of(1):
        out = torch.zeros(8)
        known_parts[(4,)](out, on)
        assert out.tolist() == wanted
