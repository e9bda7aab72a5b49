"""Which dtype results have, conversions, defaults, devices, limits."""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, REAL, OpenWorld, same
from ranks import on_ranks
from tensor_oracle import FLOATS, INTEGERS, numbers, tensor, wrapped

import torchemu as torch


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


# -- promotion

# torch.promote_types of each two dtypes, as PyTorch 2.15 answers; "-": it refuses. Float8 types go with none.
ORDER = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
PROMOTED = """
bool     uint8    int8     int16    int32    int64    float16 bfloat16 float32 float64
uint8    uint8    int16    int16    int32    int64    float16 bfloat16 float32 float64
int8     int16    int8     int16    int32    int64    float16 bfloat16 float32 float64
int16    int16    int16    int16    int32    int64    float16 bfloat16 float32 float64
int32    int32    int32    int32    int32    int64    float16 bfloat16 float32 float64
int64    int64    int64    int64    int64    int64    float16 bfloat16 float32 float64
float16  float16  float16  float16  float16  float16  float16 float32  float32 float64
bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32 bfloat16 float32 float64
float32  float32  float32  float32  float32  float32  float32 float32  float32 float64
float64  float64  float64  float64  float64  float64  float64 float64  float64 float64
"""
TABLE = {
    (a, b): name
    for a, row in zip(ORDER, PROMOTED.strip().split("\n"), strict=True)
    for b, name in zip(ORDER, row.split(), strict=True)
}


@pytest.mark.parametrize(("pair", "want"), TABLE.items())
def test_two_dtypes_meet(pair: tuple[str, str], want: str) -> None:
    a, b = (getattr(torch, n) for n in pair)
    assert torch.promote_types(a, b).name == want
    x, y = torch.ones(2, dtype=a), torch.ones(2, dtype=b)
    assert torch.result_type(x, y).name == torch.mul(x, y).dtype.name == want
    assert torch.cat([x, y]).dtype.name == want
    assert (x / y).dtype.name == (want if "float" in want else "float32")
    assert (x < y).dtype is torch.bool


@pytest.mark.parametrize("wide", ["uint16", "uint32", "uint64"])
def test_wide_unsigned_integers_go_with_floats_only(wide: str) -> None:
    kind = getattr(torch, wide)
    for name, other in itertools.product(FLOATS, [kind]):
        assert torch.promote_types(getattr(torch, name), other).name == name
    for name in ("bool", "uint8", "int64"):
        with pytest.raises(RuntimeError, match=r"Promotion for uint16, uint32, uint64 types is not supported"):
            torch.promote_types(kind, getattr(torch, name))
    with pytest.raises(RuntimeError, match=r"Promotion for Float8 Types is not supported, attempted to promote"):
        torch.promote_types(torch.float8_e5m2, torch.float32)


def test_numbers_and_zero_dimensional_tensors_give_way() -> None:
    half, byte, truth = (torch.ones(2, dtype=d) for d in (torch.float16, torch.uint8, torch.bool))
    assert (half * 2.5).dtype is (half + torch.tensor(2.5, dtype=torch.float64)).dtype is torch.float16
    assert (byte + 1).dtype is (byte + torch.tensor(1)).dtype is torch.uint8
    assert (byte + 1.5).dtype is (truth + 1.5).dtype is torch.float32
    assert (byte + torch.tensor(1.5, dtype=torch.float64)).dtype is torch.float64
    assert (truth + 1).dtype is torch.int64
    assert (truth + torch.tensor(1, dtype=torch.int16)).dtype is torch.int16
    assert (torch.tensor(1) + torch.tensor([1], dtype=torch.int8)).dtype is torch.int8
    assert (torch.tensor(1, dtype=torch.int8) + 1.5).dtype is torch.float32
    assert torch.result_type(1, 1.5) is torch.float32
    # a number keeps its digits until the result is rounded
    assert (torch.tensor([1.0], dtype=torch.bfloat16) * 1.0078125).item() == 1.0078125
    assert (torch.tensor([256.0], dtype=torch.bfloat16) * 1.001).item() == 256.0


def test_results_go_into_what_can_hold_them() -> None:
    assert torch.can_cast(torch.int64, torch.int8) and torch.can_cast(torch.float64, torch.float16)
    assert not torch.can_cast(torch.float16, torch.int64) and not torch.can_cast(torch.uint8, torch.bool)
    assert torch.ones(1, dtype=torch.float16).add_(torch.ones(1, dtype=torch.float64)).dtype is torch.float16
    with pytest.raises(RuntimeError, match=r"result type Long can't be cast to the desired output type Bool"):
        torch.ones(1, dtype=torch.bool).add_(1)


def test_default_dtype(open_world: OpenWorld) -> None:
    assert torch.get_default_dtype() is torch.float32
    torch.set_default_dtype(torch.float64)
    kinds = [torch.ones(1), torch.tensor([1.5]), torch.arange(2.0), torch.tensor([1]) / 2, torch.tensor([1]).exp()]
    assert {t.dtype for t in kinds} == {torch.float64}
    assert (torch.tensor([1]) + 0.5).dtype is torch.rand(1).dtype is torch.Tensor(2).dtype is torch.float64
    assert repr(torch.ones(1, device="cpu")) == "tensor([1.])"
    assert repr(torch.ones(1, dtype=torch.float32, device="cpu")) == "tensor([1.], dtype=torch.float32)"
    for wrong in (torch.int32, "float64", torch.float8_e5m2):
        with pytest.raises(TypeError, match=r"invalid dtype object|only floating-point types"):
            torch.set_default_dtype(wrong)  # type: ignore[arg-type]
    open_world()  # a program of its own has settings of its own
    assert torch.ones(1).dtype is torch.float32


def test_ranks_have_settings_of_their_own() -> None:
    def program(rank: int) -> Any:
        torch.set_default_dtype(torch.float64 if rank else torch.float16)
        torch.set_default_device("cpu" if rank else None)
        torch.distributed.barrier()
        with torch.no_grad() if rank else torch.enable_grad():
            torch.distributed.barrier()
            return torch.ones(1).dtype.name, str(torch.ones(1).device), torch.is_grad_enabled()

    torch.distributed.init_process_group()
    answers = on_ranks(4, program)
    assert answers == [("float16", "ahbm:0", True), *[("float64", "cpu", False)] * 3]


# -- conversion


@pytest.mark.parametrize("target", REAL)
@pytest.mark.parametrize("source", REAL)
def test_conversions(source: str, target: str) -> None:
    x = tensor([0, 1, 2, 3, 6, 96], source)  # which all types have exactly
    converted = x.to(getattr(torch, target))
    assert converted.dtype.name == target
    assert [float(v) for v in numbers(converted)] == [float(bool(v) if target == "bool" else v) for v in numbers(x)]
    assert (converted is x) == (source == target)
    assert same(x.type(getattr(torch, target)), converted) and same(x.type_as(converted), converted)
    large = torch.cat([x] * 20_000) if "float8" not in source else x
    assert same(large.to(getattr(torch, target))[:6], converted)  # another way, on which the core converts


@pytest.mark.parametrize("target", INTEGERS)
def test_floats_become_integers_by_truncation(target: str) -> None:
    values = [1.9, -1.9, 0.999, -0.5, 255.9, -128.5, 40_000.0, 3e9, -3e9, 1e15]
    got = torch.tensor(values, dtype=torch.float64).to(getattr(torch, target))
    want = [wrapped(math.trunc(v), target) for v in values]
    if target == "int32":
        want = [math.trunc(v) if abs(v) < 2**31 else -(2**31) for v in values]  # as the processor has it
    assert got.tolist() == want
    nothing = torch.tensor([math.nan, math.inf, -math.inf]).to(getattr(torch, target)).tolist()
    assert nothing == [{"int64": -(2**63), "uint64": 2**63, "int32": -(2**31)}.get(target, 0)] * 3


@pytest.mark.parametrize("seed", range(3))
def test_doubles_become_bfloat16_by_one_rounding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 1 << 63, 2000, dtype=np.uint64)
    halfway = (values & ~np.uint64((1 << 45) - 1)) | np.uint64(1 << 44) | (values & np.uint64(1))
    doubles = ((halfway & np.uint64(0x800FFFFFFFFFFFFF)) | np.uint64(0x3FF0000000000000)).view(np.float64)
    got = torch.from_numpy(doubles.copy()).bfloat16().float().tolist()
    for x, y in zip(doubles.tolist(), got, strict=True):
        low = struct.unpack(">f", struct.pack(">I", struct.unpack(">I", struct.pack(">f", y))[0] & 0xFFFF0000))[0]
        assert low == y and abs(x - y) <= 2.0**-8 * 2.0 ** math.floor(math.log2(abs(x))), (x, y)


def test_short_casts() -> None:
    x = torch.tensor([1.7, -1.7])
    casts = {"bool": [1, 1], "int": [1, -1], "long": [1, -1], "short": [1, -1], "char": [1, -1], "byte": [1, 255]}
    for name, want in casts.items():
        assert getattr(x, name)().tolist() == want
    assert [getattr(x, n)().dtype.name for n in ("half", "bfloat16", "float", "double")] == [
        "float16", "bfloat16", "float32", "float64",
    ]  # fmt: skip
    assert x.float() is x and x.to(torch.float32, copy=True) is not x
    assert x.to(torch.tensor([1])).dtype is torch.int64
    assert x.to("cpu", torch.float64).dtype is torch.float64
    assert x.type() == "torch.ahbm.FloatTensor" and x.cpu().type() == "torch.FloatTensor"
    assert x.type("torch.LongTensor").type() == "torch.LongTensor"
    with pytest.raises(ValueError, match=r"invalid type: 'torch.FooTensor'"):
        x.type("torch.FooTensor")


# -- devices


def test_devices() -> None:
    d = torch.device
    assert str(d("cuda", 1)) == str(d("cuda:1")) == "cuda:1" and repr(d("cuda:1")) == "device(type='cuda', index=1)"
    assert repr(d("cpu")) == "device(type='cpu')" and d("cpu").index is None
    assert d("cuda:1") == d("ahbm", 1) == 1 and d("cuda") != d("cuda:0") and d("cpu") != d("cuda:0")
    assert d(2) == d("ahbm:2") and d(d("cuda:1")).type == "cuda"
    assert len({d("cuda:1"), d("ahbm:1"), d("cpu"), d("cpu")}) == 2
    for wrong, kind, text in [
        ("mps", RuntimeError, r"Expected one of cpu, ahbm, cuda device type at start of device string: mps"),
        ("cuda:x", RuntimeError, r"Invalid device string: 'cuda:x'"),
        ("cuda:-1", RuntimeError, r"Invalid device string"),
        (1.5, TypeError, r"device must be a torch.device"),
    ]:
        with pytest.raises(kind, match=text):
            d(wrong)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match=r"must not include an index"):
        d("cuda:1", 1)


def test_tensors_move_between_devices() -> None:
    x = torch.arange(3)
    host = x.cpu()
    assert (x.is_cuda, x.is_cpu, x.get_device()) == (True, False, 0)
    assert (host.is_cuda, host.is_cpu, host.get_device()) == (False, True, -1)
    assert host.cpu() is host and x.cuda() is x and x.to("ahbm") is x
    assert host.cuda(2).device == x.to("cuda:2").device == x.to(2).device == torch.device("ahbm:2")
    host.fill_(7)
    assert x.tolist() == [0, 1, 2]
    assert (host + x).device == x.device  # the host's memory is everybody's
    assert x.to(host).device == host.device
    with pytest.raises(ValueError, match=r"device 9 does not exist"):
        x.cuda(9)


def test_default_device() -> None:
    assert torch.get_default_device() == torch.device("ahbm", 0)
    with torch.device("cpu"):
        assert torch.ones(1).is_cpu and torch.tensor(1).is_cpu and torch.rand(1).is_cpu and torch.arange(2).is_cpu
        with torch.device("ahbm:1"):
            assert torch.ones(1).device == 1
        assert torch.ones(1, device="cuda:2").device == 2
    torch.set_default_device("cuda:3")
    assert torch.ones(1).device == torch.zeros_like(torch.ones(1)).device == 3
    torch.set_default_device(None)
    assert torch.ones(1).device == 0


# -- limits


@pytest.mark.parametrize("name", [n for n in NUMPY if "float" in n])
def test_limits_of_floats(name: str) -> None:
    info = torch.finfo(getattr(torch, name))
    kind = np.dtype(NUMPY[name])
    patterns = np.arange(1 << 8 * min(kind.itemsize, 2), dtype=f"u{min(kind.itemsize, 2)}")
    assert info.bits == 8 * kind.itemsize and info.dtype == name
    if kind.itemsize <= 2:
        with np.errstate(invalid="ignore"):
            every = patterns.view(kind).astype(np.float64)
        finite = every[np.isfinite(every)]
        assert (info.max, info.min) == (finite.max(), finite.min())
        assert 1 + info.eps == finite[finite > 1].min()
    assert info.tiny == info.smallest_normal > 0 and info == torch.finfo(getattr(torch, name))
    with pytest.raises(TypeError, match=r"finfo\(\) requires a floating point input type"):
        torch.finfo(torch.int32)


@pytest.mark.parametrize("name", INTEGERS)
def test_limits_of_integers(name: str) -> None:
    info = torch.iinfo(getattr(torch, name))
    bits, signed = info.bits, not name.startswith("u")
    assert (info.min, info.max) == (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    assert repr(torch.iinfo(torch.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    with pytest.raises(TypeError, match=r"iinfo\(\) requires an integer input type"):
        torch.iinfo(torch.float32)


# -- no gradients


def test_grad_modes() -> None:
    @torch.no_grad()
    def off() -> bool:
        return torch.is_grad_enabled()

    @torch.no_grad
    def also_off() -> bool:
        return torch.is_grad_enabled()

    @torch.no_grad()
    def steps() -> Any:
        got = yield torch.is_grad_enabled()
        yield got, torch.is_grad_enabled()

    assert not off() and not also_off() and torch.is_grad_enabled()
    running = steps()
    assert next(running) is False and torch.is_grad_enabled() and running.send("x") == ("x", False)
    with torch.no_grad():
        with torch.enable_grad():
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)


def test_tensors_have_no_gradients() -> None:
    x = torch.ones(2)
    assert (x.requires_grad, x.grad, x.grad_fn, x.is_leaf) == (False, None, None, True)
    assert x.requires_grad_(False) is x
    with pytest.raises(RuntimeError, match=r"does not require grad"):
        x.sum().backward()
    alias = x.detach()
    alias.fill_(3)
    assert x.tolist() == [3, 3] and alias is not x
