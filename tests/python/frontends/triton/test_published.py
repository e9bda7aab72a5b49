"""Published programs use more than their kernels: devices, tables of times, compiled kernels, tables of addresses,
the device's library, and words with flags."""

from __future__ import annotations

import gc
import math
import mmap
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_worlds import run, world_of

import torchemu as torch
import torchemu.frontends.triton.face as triton
import torchemu.frontends.triton.face.language as tl
import torchemu.frontends.triton_dist.face.utils as utils
from torchemu.frontends.triton.face.language.extra import libdevice
from torchemu.frontends.triton_dist.face import language as dl
from torchemu.frontends.triton_dist.face.language.extra import language_extra as extra
from torchemu.frontends.triton_dist.nvshmem import core


@pytest.fixture(autouse=True)
def as_programs_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch is this package, as in a run."""
    monkeypatch.setitem(sys.modules, "torch", torch)


RANDOM = np.random.default_rng(16)


def test_the_driver_knows_its_device() -> None:
    with world_of(1):
        active = triton.runtime.driver.active
        device = active.get_active_torch_device()
        assert torch.zeros(1, device=device).device == device == torch.zeros(1).cuda().device
        known = active.utils.get_device_properties(device.index)
        assert known["multiprocessor_count"] == torch.cuda.get_device_properties(device.index).multi_processor_count
        assert (known["warpSize"], active.get_current_target().backend) == (32, "cuda")
        assert known["max_num_regs"] // 32 > 0 and known["max_shared_mem"] > 0


@triton.jit
def scaled(out, x, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * FACTOR, mask=i < n)


def test_compiled_kernels_are_launched_with_and_without_their_constants() -> None:
    with world_of(1):
        x, out = torch.arange(100, dtype=torch.float32), torch.zeros(100)
        kernel = scaled.warmup(out, x, 100, FACTOR=3, BLOCK=32, num_warps=2, grid=(1,))
        kernel._init_handles()
        assert kernel.n_regs > 0 and kernel.metadata.shared > 0 and kernel.metadata.num_warps == 2
        assert out.tolist() == [0] * 100
        kernel[(4, 1, 1)](out, x, 100)
        assert out.tolist() == [3 * i for i in range(100)]
        kernel[(4, 1, 1)](out, x, 100, 5, 32)
        assert out.tolist() == [5 * i for i in range(100)]


def test_tables_of_times(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    @triton.testing.perf_report(
        triton.testing.Benchmark(
            x_names=["m", "n"], x_vals=[2, (3, 4)], line_arg="how", line_vals=["a", "b"], line_names=["A", "B"],
            plot_name="rates", args={"extra": 100}, ylabel="GB/s", x_log=True, styles=[("blue", "-")],
        )
    )  # fmt: skip
    def rate(m: int, n: int, how: str, extra: int) -> Any:
        return (m * n + extra, 0, 1) if how == "a" else m / (2 * n)

    assert rate.run(show_plots=True, print_data=True, save_path=str(tmp_path)) is None
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["rates:"],
        ["m", "n", "A", "B"],
        ["0", "2.0", "2.0", "104.0", "0.500000"],
        ["1", "3.0", "4.0", "112.0", "0.375000"],
    ]
    assert (tmp_path / "rates.csv").read_text().split() == ["m,n,A,B", "2.0,2.0,104.0,0.5", "3.0,4.0,112.0,0.375"]


@triton.jit
def summed(tables, sizes, outs, count, BLOCK: tl.constexpr):
    for g in range(tl.program_id(0), count, tl.num_programs(0)):
        x = tl.load(tables + g).to(tl.pointer_type(tl.float32))
        out = tl.load(outs + g).to(tl.pointer_type(tl.float32))
        n = tl.load(sizes + g)
        i = tl.arange(0, BLOCK)
        tl.store(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))


def test_tables_of_addresses() -> None:
    with world_of(1):
        arrays = [RANDOM.integers(-9, 9, n).astype(np.float32) for n in (1, 7, 64)]
        inputs = [torch.as_tensor(a) for a in arrays]
        results = [torch.zeros(3) for _ in arrays]
        tables = torch.tensor([x.data_ptr() for x in inputs])
        outs = torch.tensor([r[1:].data_ptr() for r in results])
        sizes = torch.tensor([len(a) for a in arrays], dtype=torch.int32)
        summed[(2,)](tables, sizes, outs, 3, 64)
        assert [r.tolist() for r in results] == [[0, a.sum(), 0] for a in arrays]


@triton.jit
def filled(tables, value, W: tl.constexpr):
    r = tl.arange(0, W)
    tl.store(tl.load(tables + r).to(tl.pointer_type(tl.int32)) + value, value)


def test_a_table_of_peers_tensors_that_nobody_keeps() -> None:
    found: dict[int, list[int]] = {}

    def program(rank: int) -> None:
        box = utils.nvshmem_create_tensor((4,), torch.int32)
        table = torch.tensor([core.get_peer_tensor(box, peer).data_ptr() for peer in range(4)])
        gc.collect()
        utils.nvshmem_barrier_all_on_stream()
        filled[(1,)](table, rank, 4)
        utils.nvshmem_barrier_all_on_stream()
        found[rank] = box.tolist()

    run(4, program)
    assert found == {rank: [0, 1, 2, 3] for rank in range(4)}


@triton.jit
def through_number(address, out):
    p = address.to(tl.pointer_type(tl.int32))
    tl.store(out + tl.arange(0, 4), tl.load(p + tl.arange(0, 4)) + 1)


def test_an_address_that_is_an_argument() -> None:
    with world_of(1):
        x, out = torch.arange(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
        through_number[(1,)](x.data_ptr(), out)
        assert out.tolist() == [1, 2, 3, 4]


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="MAP_32BIT is Linux's on x86-64")
def test_addresses_below_four_gigabytes() -> None:
    """The heap of a Python that is no position-independent executable lies there."""
    memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40)  # MAP_32BIT
    low = np.frombuffer(memory, np.int32, 4)
    low[:] = [5, 6, 7, 8]
    with world_of(1):
        x, out = torch.as_tensor(low), torch.zeros(4, dtype=torch.int32)
        assert x.data_ptr() == low.ctypes.data < 1 << 31
        through_number[(1,)](x.data_ptr(), out)
        assert out.tolist() == [6, 7, 8, 9]
        table = torch.tensor([x.data_ptr()])
        summed[(1,)](table, torch.tensor([0], dtype=torch.int32), torch.tensor([out.data_ptr()]), 1, 4)
        assert out.tolist() == [0, 7, 8, 9]


ORACLES: dict[str, Any] = {
    "asin": math.asin, "acos": math.acos, "atan": math.atan, "tan": math.tan, "sinh": math.sinh, "cosh": math.cosh,
    "asinh": math.asinh, "atanh": math.atanh, "log10": math.log10, "log1p": math.log1p, "expm1": math.expm1,
    "exp10": lambda x: 10**x, "cbrt": math.cbrt, "rcbrt": lambda x: 1 / math.cbrt(x), "rsqrt": lambda x: x**-0.5,
    "erfc": math.erfc, "tgamma": math.gamma, "lgamma": math.lgamma, "rint": round, "trunc": math.trunc,
    "fast_expf": math.exp, "sinpi": lambda x: math.sin(math.pi * x), "acosh": lambda x: math.acosh(x),
    "erfinv": None, "round": None, "tanh": math.tanh, "erf": math.erf, "exp": math.exp,
}  # fmt: skip


def _applied(name: str, x: np.ndarray, *others: Any) -> np.ndarray:
    found: np.ndarray = getattr(libdevice, name)(tl.tensor(x, tl.float32), *others).data
    return found


@pytest.mark.parametrize("name", ORACLES)
def test_functions_of_the_devices_library(name: str) -> None:
    x = np.linspace(0.03, 0.97, 41, dtype=np.float32) + (1 if name == "acosh" else 0)
    if name == "erfinv":
        back = np.vectorize(math.erf)(_applied(name, x).astype(np.float64))
        np.testing.assert_allclose(back, x, rtol=3e-7)
        return
    if name == "round":
        halves = np.array([-2.5, -0.5, 0.49999997, 0.5, 1.5, 2.5, 8388609.0], np.float32)
        assert _applied(name, halves).tolist() == [-3, -1, 0, 1, 2, 3, 8388609]
        return
    want = np.array([ORACLES[name](float(v)) for v in x], np.float32)
    np.testing.assert_array_almost_equal_nulp(_applied(name, x), want, 1)


def test_the_librarys_edges() -> None:
    x = np.array([0, -1, math.inf, -math.inf, math.nan], np.float32)
    np.testing.assert_array_equal(_applied("tgamma", x), [math.inf, math.nan, math.inf, math.nan, math.nan])
    np.testing.assert_array_equal(_applied("lgamma", x), [math.inf, math.inf, math.inf, math.inf, math.nan])
    assert _applied("isnan", x).tolist() == [False, False, False, False, True]
    assert _applied("isinf", x).tolist() == [False, False, True, True, False]
    np.testing.assert_array_equal(_applied("pow", x, 2), [0, 1, math.inf, math.inf, math.nan])
    ints = tl.tensor(np.array([0, 1, -1, 40], np.int32), tl.int32)
    assert libdevice.popc(ints).data.tolist() == [0, 1, 32, 2]
    assert libdevice.clz(ints).data.tolist() == [32, 31, 0, 26]
    assert libdevice.ffs(ints).data.tolist() == [0, 1, 1, 4]
    assert libdevice.brev(ints).data.tolist() == [0, -(1 << 31), -1, 0x14000000]
    assert libdevice.mulhi(ints, -2).data.tolist() == [0, -1, 0, -1]
    with pytest.raises(ValueError, match=r"libdevice\.asin takes float32 or float64, not int32"):
        libdevice.asin(ints)


@triton.jit
def with_flags(x, inbox, out, n, flag):
    rank, world = dl.rank(), dl.num_ranks()
    thread, threads, pid = extra.tid(0), extra.ntid(0), tl.program_id(0)
    if pid != rank:
        there = dl.symm_at(inbox, pid)
        for i in range(thread, n // 2, threads):
            extra.st_v4_u32(there + (rank * n + 2 * i) * 2, extra.ld(x + 2 * i), flag, extra.ld(x + 2 * i + 1), flag)
    else:
        for step in range(1, world):
            sender = (rank + step) % world
            for i in range(thread, n // 2, threads):
                place = inbox + (sender * n + 2 * i) * 2
                a, f, b, g = extra.load_v4_u32(place)
                while f != flag or g != flag:
                    a, f, b, g = extra.load_v4_u32(place)
                extra.st(out + sender * n + 2 * i, a)
                extra.st(out + sender * n + 2 * i + 1, b)


@pytest.mark.parametrize("reorder", [None, 3])
def test_data_and_flags_in_one_store(reorder: int | None) -> None:
    """Each half of the four words is stored at once, and all four are loaded at once: a flag never comes before its
    data, whatever moves."""

    def program(rank: int) -> None:
        n, world = 70, 3
        inbox = utils.nvshmem_create_tensor((world * n * 2,), torch.int32)
        inbox.fill_(0)
        utils.nvshmem_barrier_all_on_stream()
        for call in range(1, 4):
            x = torch.arange(n, dtype=torch.int32) * 5 + 1000 * rank + call
            out = torch.zeros(world * n, dtype=torch.int32)
            with_flags[(world,)](x, inbox, out, n, call, num_warps=1)
            got = out.tolist()
            for r in range(world):
                want = [0] * n if r == rank else [5 * i + 1000 * r + call for i in range(n)]
                assert got[r * n : (r + 1) * n] == want
            utils.nvshmem_barrier_all_on_stream()

    run(3, program, check=reorder is None, reorder=reorder)
