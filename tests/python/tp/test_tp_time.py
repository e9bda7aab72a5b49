"""Tests of what products cost, and what tensor parallel layers do at once, in simulated time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, OpenWorld
from tp_ranks import on_tensor_parallel_ranks

import torchemu as torch
from torchemu import tp
from torchemu.frontends.numpy._tensor import dispatch
from torchemu.profiler import profile

TOPOLOGY = """
name: handy
system: {sips: {count: 4, connect: fully_connected}}
pe: {scratch_kib: 16}
host: {launch_overhead: 0}
"""
"""Launches take no time, so that times are those of kernels and collectives alone."""


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(TOPOLOGY)


# -- costs of products


def tiled(kind: str, m: int, n: int, k: int) -> int:
    """The bytes that [m, k]·[k, n] moves: a tile is the largest square whose float32 sums fit 16 KiB beside two pairs
    of panels of 32; the left operand is read once for each column of tiles, the right one for each row."""
    size = np.dtype(NUMPY[kind]).itemsize
    side = max(s for s in range(1, 200) if 4 * s * s + 4 * s * 32 * size <= 16 << 10)
    return size * (m * k * math.ceil(n / side) + k * n * math.ceil(m / side) + m * n)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("call", "products", "added"),
    [
        (lambda a, b, v: a @ b, [(70, 90, 40)], 0),
        (lambda a, b, v: a @ b[:, 0], [(70, 1, 40)], 0),
        (lambda a, b, v: a[0] @ b, [(1, 90, 40)], 0),
        (lambda a, b, v: a.expand(3, 70, 40) @ b, [(210, 90, 40)], 0),
        (lambda a, b, v: a.expand(3, 70, 40) @ b.expand(3, 40, 90), [(70, 90, 40)] * 3, 0),
        (lambda a, b, v: a.expand(3, 1, 70, 40) @ b.expand(2, 40, 90), [(70, 90, 40)] * 6, 0),
        (lambda a, b, v: torch.nn.functional.linear(a.expand(3, 70, 40), b.t()), [(210, 90, 40)], 0),
        (lambda a, b, v: torch.nn.functional.linear(a, b.t(), v[0]), [(70, 90, 40)], 90),
        (lambda a, b, v: a[:0] @ b, [(0, 90, 40)], 0),
    ],
)  # fmt: skip
def test_costs_of_products(
    monkeypatch: pytest.MonkeyPatch, kind: str, call: Callable[..., Any], products: list[Any], added: int
) -> None:
    launched: list[tuple[int, int, str]] = []
    launch = dispatch.launch

    def noted(context: Any, name: str, nbytes: int, flops: int, unit: str, outputs: Any) -> None:
        launched.append((nbytes, flops, unit))
        launch(context, name, nbytes, flops, unit, outputs)

    operands = [torch.ones(*shape, dtype=getattr(torch, kind)) for shape in ((70, 40), (40, 90), (70, 90))]
    monkeypatch.setattr(dispatch, "launch", noted)
    call(*operands)
    size = np.dtype(NUMPY[kind]).itemsize
    want = sum(tiled(kind, *mnk) for mnk in products) + added * size
    assert launched == [(want, sum(2 * m * n * k for m, n, k in products), kind)]


# -- what is done at once


@dataclass(frozen=True)
class Bar:
    """Something that a device does; times in microseconds."""

    name: str
    start: float
    end: float

    @property
    def time(self) -> float:
        """How long it takes."""
        return self.end - self.start

    def beside(self, other: Bar) -> float:
        """How long both are done."""
        return max(0.0, min(self.end, other.end) - max(self.start, other.start))


def backward_bars(sequence_parallel: bool) -> list[Bar]:
    """Returns what rank 0's device does in the backward pass of a column-parallel layer among 4 ranks."""

    def rank(r: int) -> list[Bar]:
        config = tp.ModelParallelConfig(
            tensor_model_parallel_size=4, sequence_parallel=sequence_parallel, params_dtype=torch.bfloat16
        )
        tp.model_parallel_cuda_manual_seed(1)
        layer = tp.ColumnParallelLinear(512, 2048, config=config, init_method=torch.nn.init.normal_, bias=False)
        tokens = 512 // 4 if sequence_parallel else 512
        x = torch.randn(tokens, 512, dtype=torch.bfloat16, requires_grad=True)
        y, _ = layer(x)
        grad = torch.ones_like(y)
        torch.cuda.synchronize()
        torch.distributed.barrier()
        with profile() as prof:
            y.backward(grad)
        return [Bar(e.name, e.start, e.end) for e in prof.events() if e.device_type == "CUDA"]

    bars: list[Bar] = on_tensor_parallel_ranks(4, rank)[0]
    return bars


def only(bars: list[Bar], text: str) -> Bar:
    (found,) = [bar for bar in bars if text in bar.name]
    return found


def test_the_gradient_of_the_input_is_reduced_while_that_of_the_weight_is_computed() -> None:
    bars = backward_bars(sequence_parallel=False)
    dgrad, wgrad, reduction = only(bars, "linear"), only(bars, "matmul"), only(bars, "AllReduce")
    assert dgrad.end == wgrad.start == reduction.start
    assert wgrad.beside(reduction) == wgrad.time > 0
    total = max(bar.end for bar in bars) - min(bar.start for bar in bars)
    assert total < dgrad.time + wgrad.time + reduction.time


def test_inputs_are_joined_while_their_gradient_is_computed() -> None:
    bars = backward_bars(sequence_parallel=True)
    dgrad, wgrad = only(bars, "linear"), only(bars, "matmul")
    joining, dividing = only(bars, "AllGather"), only(bars, "ReduceScatter")
    assert joining.start == dgrad.start and dgrad.beside(joining) == dgrad.time > 0
    assert wgrad.start >= joining.end
    assert wgrad.beside(dividing) == wgrad.time > 0
    total = max(bar.end for bar in bars) - min(bar.start for bar in bars)
    assert total < sum(bar.time for bar in bars) - dgrad.time


def test_a_row_parallel_layer_waits_for_its_sum() -> None:
    """Nothing is left to do beside it."""

    def rank(r: int) -> list[Bar]:
        config = tp.ModelParallelConfig(tensor_model_parallel_size=4)
        tp.model_parallel_cuda_manual_seed(1)
        layer = tp.RowParallelLinear(
            256, 512, config=config, init_method=torch.nn.init.ones_, bias=True, input_is_parallel=True,
            skip_bias_add=False,
        )  # fmt: skip
        with profile() as prof:
            layer(torch.ones(64, 64))
        return [Bar(e.name, e.start, e.end) for e in prof.events() if e.device_type == "CUDA"]

    bars = on_tensor_parallel_ranks(4, rank)[0]
    product, reduction, bias = only(bars, "linear"), only(bars, "AllReduce"), only(bars, "add")
    assert product.end <= reduction.start and reduction.end == bias.start
