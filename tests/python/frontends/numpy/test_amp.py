"""torch.amp: which dtypes autocast gives to operations, and what their values are then; gradients; GradScaler."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from launch import launch, written
from ranks import on_ranks

import torchemu as torch
import torchemu.nn.functional as F  # noqa: N812 (its usual name)
from torchemu import nn
from torchemu.amp import GradScaler, custom_bwd, custom_fwd
from torchemu.frontends.numpy._tensor import autocasting, elementwise
from torchemu.utils.checkpoint import checkpoint

RNG = np.random.default_rng


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def normal(seed: int, *shape: int) -> np.ndarray:
    return RNG([seed, *shape]).standard_normal(shape).astype(np.float32)


def rounded(x: np.ndarray) -> np.ndarray:
    """To bfloat16, by its definition: the nearest of the float32 whose low 16 bits are zero, to even at halves."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    up = ((bits >> 16) & 1) + 0x7FFF
    return ((bits + up) & 0xFFFF0000).astype(np.uint32).view(np.float32)


# -- values: float64 on what the operands become


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


LOWERED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "matmul": (torch.matmul, np.matmul),
    "@": (lambda a, b: a @ b, np.matmul),
    "mm": (lambda a, b: a.mm(b), np.matmul),
    "bmm": (lambda a, b: torch.bmm(a[None], b[None]), lambda a, b: (a @ b)[None]),
    "linear": (lambda a, b: F.linear(a, b, b[0]), lambda a, b: a @ b.T + b[0]),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ki", a, b), lambda a, b: (a @ b).T),
    "a list": (lambda a, b: torch.einsum("ij,jk->ik", [a, b]), np.matmul),
    "addmm": (lambda a, b: torch.addmm(b, a, b), lambda a, b: b + a @ b),
    "baddbmm": (lambda a, b: torch.baddbmm(b[None], a[None], b[None]), lambda a, b: (b + a @ b)[None]),
    "by name": (lambda a, b: torch.matmul(input=a, other=b), np.matmul),
    "attention": (
        lambda a, b: F.scaled_dot_product_attention(a[None], b[None], b[None]),
        lambda a, b: (softmax(a @ b.T / 2) @ b)[None],
    ),
}
FLOAT32: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "exp": (torch.exp, np.exp),
    "log1p": (lambda x: (x * x).log1p(), lambda x: np.log1p(rounded(x * x).astype(np.float64))),
    "**": (lambda x: x**3, lambda x: x**3),
    "reflected **": (lambda x: 2**x, lambda x: 2**x),
    "reciprocal": (torch.reciprocal, np.reciprocal),
    "sum": (lambda x: x.sum(1), lambda x: x.sum(1)),
    "prod": (lambda x: x.prod(1), lambda x: x.prod(1)),
    "cumsum": (lambda x: x.cumsum(0), lambda x: x.cumsum(0)),
    "norm": (torch.norm, np.linalg.norm),
    "softmax": (lambda x: F.softmax(x, -1), softmax),
    "log_softmax": (lambda x: x.log_softmax(-1), lambda x: np.log(softmax(x))),
    "mse_loss": (lambda x: F.mse_loss(x, torch.zeros_like(x)), lambda x: np.mean(x * x)),
    "cross_entropy": (
        lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2, 3])),
        lambda x: -np.mean(np.log(softmax(x).diagonal())),
    ),
}
ON_HOST_AS_IT_IS = set(FLOAT32) - {"prod", "mse_loss", "cross_entropy"}


@pytest.mark.parametrize("where", ["cpu", "ahbm", "cuda"])
@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("float32", "bfloat16"), ("float16", "float32")])
@pytest.mark.parametrize("name", LOWERED)
def test_products_are_of_the_lower_dtype(name: str, dtypes: tuple[str, str], where: str) -> None:
    call, oracle = LOWERED[name]
    a, b = (torch.tensor(normal(i, 4, 4)).to(getattr(torch, kind)).to(where) for i, kind in enumerate(dtypes))
    with torch.autocast(where, dtype=torch.bfloat16):
        got = call(a, b)
    want = oracle(*(rounded(t.float().numpy()).astype(np.float64) for t in (a, b)))
    assert got.dtype is torch.bfloat16
    np.testing.assert_allclose(
        got.float().cpu().numpy(), want, rtol=2**-8, atol=2e-2 if name == "attention" else 2**-16
    )


@pytest.mark.parametrize("where", ["cpu", "ahbm"])
@pytest.mark.parametrize("name", FLOAT32)
def test_what_loses_too_much_is_of_float32(name: str, where: str) -> None:
    call, oracle = FLOAT32[name]
    x = torch.tensor(normal(7, 4, 4)).bfloat16().to(where)
    with torch.autocast(where, dtype=torch.bfloat16):
        got = call(x)
    as_it_is = where == "cpu" and name in ON_HOST_AS_IT_IS
    assert got.dtype is (torch.bfloat16 if as_it_is else torch.float32)
    want = oracle(x.float().cpu().numpy().astype(np.float64))
    np.testing.assert_allclose(got.float().cpu().numpy(), want, rtol=2**-7 if as_it_is else 1e-5, atol=2e-6)


def test_operands_meet_in_the_widest_dtype() -> None:
    low, wide = torch.ones(3, dtype=torch.bfloat16), torch.ones(3)
    with torch.autocast("cpu"):
        assert torch.cat([low, wide]).dtype is torch.stack([wide, low]).dtype is torch.float32
        assert torch.cat([low, low]).dtype is torch.bfloat16
        with pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
            torch.cat([low.half(), wide])
    with torch.autocast("ahbm", dtype=torch.bfloat16):
        low, wide = low.to("ahbm"), wide.to("ahbm")
        assert torch.dot(low, wide).dtype is torch.float32
        assert torch.dot(low, low).dtype is torch.bfloat16
        assert torch.addcmul(low, wide, low).dtype is torch.float32
        assert torch.zeros(3, dtype=torch.bfloat16, device="ahbm").scatter_add(
            0, torch.tensor([0, 0, 2], device="ahbm"), wide
        ).tolist() == [2, 0, 1]


def test_what_autocast_leaves_alone() -> None:
    x = torch.ones(2, 2)
    with torch.autocast("cpu"):
        assert (x + x).dtype is torch.float32
        assert (x.double() @ x.double()).dtype is torch.float64
        assert (x.long() @ x.long()).dtype is torch.int64
        assert (x.to("ahbm") @ x.to("ahbm")).dtype is torch.float32  # another device
        assert x.clone().mul_(x).dtype is torch.float32
        out = torch.empty(2, 2, dtype=torch.bfloat16)
        assert torch.matmul(x, x, out=out) is out
    with torch.autocast("ahbm", dtype=torch.bfloat16):
        y = x.to("ahbm").bfloat16()
        assert y.exp_().dtype is torch.bfloat16
        assert y.sum(dtype=torch.bfloat16).dtype is torch.bfloat16


ELEMENTWISE = {*elementwise.UNARY, *elementwise.BINARY, "addcdiv", "addcmul", "mse_loss", "softplus"}
"""Those that are known by name."""


def test_every_function_of_the_tables_is_marked() -> None:
    """One that is not would be left alone without anybody noticing."""
    for name in autocasting.NAMES - ELEMENTWISE:
        function = getattr(torch, name, None) or getattr(F, name, None)
        if function is not None and not (function.__doc__ or "").startswith("Not supported"):
            assert hasattr(function, "__wrapped__"), name


# -- state


def test_blocks_nest_and_end() -> None:
    x = torch.ones(2, 2)

    def now() -> tuple[Any, ...]:
        return (x @ x).dtype, torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

    off = torch.float32, False, torch.bfloat16
    assert now() == off
    with torch.autocast("cpu"):
        assert now() == (torch.bfloat16, True, torch.bfloat16)
        with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False):
            assert now() == (torch.float16, True, torch.float16)
            assert not torch.is_autocast_cache_enabled()
            with torch.autocast("cpu", enabled=False):
                assert now() == (torch.float32, False, torch.float16)
                with torch.autocast("ahbm"):
                    assert now()[:2] == (torch.float32, False)
            assert now() == (torch.float16, True, torch.float16)
        assert torch.is_autocast_cache_enabled()
        with pytest.raises(KeyError), torch.autocast("cpu", enabled=False):
            raise KeyError
        assert now() == (torch.bfloat16, True, torch.bfloat16)
    assert now() == off


def test_a_decorator_is_on_in_calls_only() -> None:
    @torch.autocast("cpu")
    def product(x: torch.Tensor, depth: int) -> Any:
        if depth:
            return product(x, depth - 1)
        return (x @ x).dtype

    assert product(torch.ones(2, 2), 3) is torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")


def test_each_rank_has_its_own() -> None:
    def program(rank: int) -> Any:
        torch.distributed.init_process_group("gloo")
        x = torch.ones(2, 2, device="cpu")
        with torch.autocast("cpu", enabled=rank == 1):
            torch.distributed.barrier()
            inside = (x @ x).dtype, torch.is_autocast_enabled("cpu")
            torch.distributed.barrier()
        return inside, (x @ x).dtype

    torch.set_default_device(None)
    assert on_ranks(2, program) == [
        ((torch.float32, False), torch.float32),
        ((torch.bfloat16, True), torch.float32),
    ]


def test_misuse() -> None:
    with pytest.raises(RuntimeError, match="device type at start of device string: tpu"):
        torch.autocast("tpu")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'cuda:0'"):
        torch.autocast("cuda:0")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"must be torch\.dtype, not int"):
        torch.set_autocast_dtype("cpu", 3)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported"):
        refused = torch.autocast("cpu", dtype=torch.float32)
    with refused:
        assert not torch.is_autocast_enabled("cpu")
    with pytest.warns(FutureWarning, match=r"`torch.cuda.amp.autocast\(args...\)` is deprecated"):
        torch.cuda.amp.autocast()
    with pytest.warns(FutureWarning, match=r"`torch.cuda.amp.GradScaler\(args...\)` is deprecated"):
        torch.cuda.amp.GradScaler()


def test_switches_without_a_block() -> None:
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)
    assert torch.is_autocast_cpu_enabled()
    assert (torch.ones(1, 1) @ torch.ones(1, 1)).dtype is torch.float16
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_cache_enabled(False)
    assert not torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_cache_enabled()
    assert not torch.is_autocast_enabled()


# -- gradients


def test_backward_runs_in_the_dtypes_of_forward() -> None:
    w, x = torch.tensor(normal(1, 4, 4), requires_grad=True), torch.tensor(normal(2, 3, 4))
    seen: list[Any] = []
    with torch.autocast("cpu"):
        y = F.linear(x, w)
        y.register_hook(lambda grad: seen.append(grad.dtype))
        y.float().sum().backward()
    y = F.linear(x.bfloat16(), w.bfloat16())
    again = torch.autograd.grad(y.float().sum(), w)[0]
    assert seen == [torch.bfloat16]
    assert w.grad is not None
    assert w.grad.dtype is torch.float32
    np.testing.assert_array_equal(w.grad.numpy(), again.numpy())


@pytest.mark.parametrize("caches", [True, False])
def test_a_parameter_is_converted_once(caches: bool) -> None:
    """With the cache a write into the parameter is not seen before the outermost block ends, as in PyTorch."""
    w, x = torch.ones(1, 1, requires_grad=True), torch.ones(1, 1)
    with torch.autocast("cpu", cache_enabled=caches):
        first = F.linear(x, w)
        with torch.autocast("cpu", cache_enabled=caches), torch.no_grad():
            w.mul_(2)
        assert F.linear(x, w).item() == (1 if caches else 2)
    assert first.item() == 1
    with torch.autocast("cpu"):
        assert F.linear(x, w).item() == 2


def test_what_is_calculated_without_gradients_is_not_kept_for_them() -> None:
    w, x = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
    with torch.autocast("cpu"):
        with torch.no_grad():
            F.linear(x, w)
        assert F.linear(x, w).requires_grad


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_repeats_under_the_same_autocast(reentrant: bool) -> None:
    def gradients(call: Callable[..., Any]) -> list[np.ndarray]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
        x = torch.tensor(normal(5, 3, 4), requires_grad=True)
        with torch.autocast("cpu"):
            y = call(net, x)
        y.float().square().sum().backward()
        return [t.grad.numpy() for t in (x, *net.parameters()) if t.grad is not None]

    plain = gradients(lambda net, x: net(x))
    repeated = gradients(lambda net, x: checkpoint(net, x, use_reentrant=reentrant))
    assert len(plain) == len(repeated) == 7
    for a, b in zip(plain, repeated, strict=True):
        np.testing.assert_array_equal(a, b)


def test_functions_of_ones_own() -> None:
    inside: list[Any] = []

    class Product(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(a, b)
            return a.mm(b)

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            a, b = ctx.saved_tensors
            found = grad.mm(b.t()), a.t().mm(grad)
            inside.append((torch.is_autocast_enabled("cpu"), found[0].dtype))
            return found

    class Wide(Product):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(a, b)
            inside.append((torch.is_autocast_enabled("cpu"), a.dtype))
            return a.mm(b)

    a = torch.tensor(normal(1, 3, 3), requires_grad=True)
    with torch.autocast("cpu"):
        low, wide = Product.apply(a, a), Wide.apply(a.bfloat16(), a)
    assert (low.dtype, wide.dtype) == (torch.bfloat16, torch.float32)
    low.sum().backward()
    wide.sum().backward()
    assert inside == [(False, torch.float32), (True, torch.bfloat16), (False, torch.float32)]


# -- GradScaler


def expected_scales(finite: list[bool], scale: float, interval: int) -> list[float]:
    scales, good = [], 0
    for each in finite:
        good = good + 1 if each else 0
        scale = scale if each else scale / 2
        if good == interval:
            scale, good = scale * 2, 0
        scales.append(scale)
    return scales


def test_steps_that_are_not_finite_are_left_out() -> None:
    values = [1.0, 2.0, float("inf"), 1.0, float("nan"), 1.0, -1.0, 3.0, 0.5, -float("inf")]
    p = nn.Parameter(torch.ones(3))
    optimizer, scaler = torch.optim.SGD([p], lr=0.25), GradScaler("cpu", init_scale=8.0, growth_interval=2)
    where, scales = 1.0, []
    for value in values:
        optimizer.zero_grad()
        scaler.scale((p * value).sum()).backward()
        if value == 3.0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([p], 1e9)
        assert scaler.step(optimizer) is None
        scaler.update()
        where -= 0.25 * value if np.isfinite(value) else 0
        assert p.tolist() == [where] * 3
        scales.append(scaler.get_scale())
    assert scales == expected_scales([bool(np.isfinite(v)) for v in values], 8.0, 2)


def test_a_scale_that_would_be_infinite_stays() -> None:
    p = nn.Parameter(torch.ones(1))
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
    for _ in range(2):
        scaler.scale(p.sum())
        p.grad = torch.zeros(1)
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_what_is_scaled() -> None:
    scaler = GradScaler("cpu", init_scale=4.0)
    assert scaler.scale(torch.ones(2)).tolist() == [4, 4]
    first, (second, third) = scaler.scale([torch.ones(1), (torch.ones(2), torch.zeros(0))])
    assert (first.tolist(), second.tolist(), third.tolist()) == ([4], [4, 4], [])
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)


def test_a_scaler_out_of_order() -> None:
    p = nn.Parameter(torch.ones(2))
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), GradScaler("cpu")
    for call in (lambda: scaler.step(optimizer), scaler.update, lambda: scaler.unscale_(optimizer)):
        with pytest.raises(AssertionError, match="but _scale is None"):
            call()
    scaler.scale(p.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer since the last update"):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled"):
        pickle.dumps(scaler)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, closure=lambda: 0)
    for factors, text in (({"growth_factor": 1.0}, "growth factor"), ({"backoff_factor": 1.0}, "backoff factor")):
        with pytest.raises(AssertionError, match=text):
            GradScaler("cpu", **factors)
    half = nn.Parameter(torch.ones(1, dtype=torch.float16))
    half.grad = torch.ones(1, dtype=torch.float16)
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.step(torch.optim.SGD([half], lr=1.0))


def test_the_state_of_a_scaler() -> None:
    p = nn.Parameter(torch.ones(1))
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), GradScaler("cpu", 16.0, 4.0, 0.25, 5)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 16.0, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 5, "_growth_tracker": 1
    }  # fmt: skip
    other = GradScaler("cpu")
    other.load_state_dict(state)
    assert other.state_dict() == pickle.loads(pickle.dumps(scaler)).state_dict() == state
    other.scale(p.sum())
    other.update(2.0)
    assert other.get_scale() == 2
    other.update(torch.tensor(3.0))
    assert other.get_scale() == 3
    with pytest.raises(AssertionError, match="new_scale should be a float or a 1-element"):
        other.update(torch.ones(2))
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})
    off = GradScaler("cpu", enabled=False)
    off.load_state_dict({})
    assert (off.state_dict(), off.get_scale(), off.is_enabled()) == ({}, 1.0, False)


def test_training_in_float16_on_all_ranks(tmp_path: Path) -> None:
    """A gradient that overflows on one rank is infinite on all after the mean, so all leave the step out."""
    text = """
    import torch, torch.nn.functional as F, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    net = DDP(torch.nn.Linear(4, 3).cuda(), device_ids=[rank])
    optimizer, scaler = torch.optim.AdamW(net.parameters()), torch.amp.GradScaler("cuda", 1024.0, growth_interval=2)
    for step in range(5):
        x = torch.full((2, 4), 6e4 if (rank, step) == (1, 3) else 0.5, device="cuda")
        with torch.autocast("cuda"):
            y = net(x)
            assert y.dtype is torch.float16
            loss = F.mse_loss(y, torch.ones(2, 3, device="cuda"))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        both = [None, None]
        dist.all_gather_object(both, (scaler.get_scale(), net.module.weight.tolist()))
        assert both[0] == both[1]
        if rank == 0:
            print(int(scaler.get_scale()))
    dist.destroy_process_group()
    """
    out = launch("--nproc-per-node", "2", written(tmp_path, text))
    assert (out.status, out.err) == (0, "")
    assert out.out.split() == ["1024", "2048", "2048", "1024", "1024"]


def test_no_warning_where_nothing_is_deprecated() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.autocast("cuda", dtype=torch.bfloat16), torch.amp.autocast("cpu"):
            pass
        GradScaler("cuda")
