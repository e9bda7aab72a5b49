"""Tests of what layers, losses and optimizers take of their device: bytes and operations, counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld

import torchemu as torch
import torchemu.nn.functional as F  # noqa: N812 (its usual name)
from torchemu import nn, optim
from torchemu.frontends.numpy._tensor import dispatch
from torchemu.runtime.waiting import host_time

Launch = tuple[str, int, int, str]


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    """The kernels so far: name, bytes, operations, unit."""
    noted: list[Launch] = []
    launch = dispatch.launch

    def note(context: Any, name: str, nbytes: int, flops: int, unit: str, outputs: Any) -> None:
        noted.append((name, nbytes, flops, unit))
        launch(context, name, nbytes, flops, unit, outputs)

    monkeypatch.setattr(dispatch, "launch", note)
    return noted


ROWS, IN, OUT = 20, 30, 40


FORWARD: list[tuple[Callable[[], Any], Launch]] = [
    (
        lambda: F.linear(torch.ones(ROWS, IN), torch.ones(OUT, IN), torch.ones(OUT)),
        ("linear", 4 * (ROWS * IN + OUT * IN + OUT + ROWS * OUT), 2 * ROWS * IN * OUT, "float32"),
    ),
    (
        lambda: F.linear(torch.ones(2, 10, IN).half(), torch.ones(OUT, IN).half()),
        ("linear", 2 * (ROWS * IN + OUT * IN + ROWS * OUT), 2 * ROWS * IN * OUT, "float16"),
    ),
    (
        lambda: F.embedding(torch.zeros(ROWS, dtype=torch.int64), torch.ones(1000, IN)),
        ("embedding", 8 * ROWS + 2 * 4 * ROWS * IN, 0, "vector"),
    ),
    (
        lambda: F.layer_norm(torch.ones(ROWS, IN), (IN,), torch.ones(IN), torch.ones(IN)),
        ("native_layer_norm", 4 * (2 * ROWS * IN + 2 * IN + 2 * ROWS), 8 * ROWS * IN, "vector"),
    ),
    (
        lambda: F.dropout(torch.ones(ROWS, IN)),
        ("native_dropout", (4 + 4 + 1) * ROWS * IN, ROWS * IN, "vector"),
    ),
    (
        lambda: F.nll_loss(torch.ones(ROWS, IN), torch.zeros(ROWS, dtype=torch.int64)),
        ("nll_loss_forward", (8 + 4) * ROWS + 4 + 4, 2 * ROWS, "vector"),
    ),
]


@pytest.mark.parametrize(("call", "want"), FORWARD, ids=[want[0] for _, want in FORWARD])
def test_forward(launched: list[Launch], call: Callable[[], Any], want: Launch) -> None:
    call()
    assert launched[-1] == want


def test_cross_entropy_is_two_kernels(launched: list[Launch]) -> None:
    logits = torch.ones(ROWS, IN, requires_grad=True)
    target = torch.zeros(ROWS, dtype=torch.int64)
    launched.clear()
    loss = F.cross_entropy(logits, target)
    assert [name for name, *_ in launched] == ["log_softmax", "nll_loss_forward"]
    launched.clear()
    loss.backward()
    names = [name for name, *_ in launched if name != "full"]  # that is the gradient to begin with
    assert names == ["nll_loss_backward", "log_softmax_backward"]


def test_the_backward_pass_of_a_linear_layer_is_two_products(launched: list[Launch]) -> None:
    x, w = torch.ones(ROWS, IN, requires_grad=True), torch.ones(OUT, IN, requires_grad=True)
    y, grad = F.linear(x, w), torch.ones(ROWS, OUT)
    launched.clear()
    y.backward(grad)
    products = [(flops, unit) for _, _, flops, unit in launched if unit != "vector"]
    assert products == [(2 * ROWS * IN * OUT, "float32")] * 2


@pytest.mark.parametrize(
    ("make", "tensors", "flops"),
    [
        (lambda p: optim.SGD(p), 1, 6),
        (lambda p: optim.SGD(p, momentum=0.9), 2, 6),
        (lambda p: optim.Adam(p), 3, 16),
        (lambda p: optim.AdamW(p, amsgrad=True), 4, 16),
    ],
)
def test_a_step_is_one_kernel_a_parameter(
    launched: list[Launch], make: Callable[[Any], optim.Optimizer], tensors: int, flops: int
) -> None:
    """It reads and writes the parameter and its state, and reads the gradient."""
    params = [nn.Parameter(torch.ones(ROWS, IN)), nn.Parameter(torch.ones(OUT))]
    optimizer = make(params)
    for p in params:
        p.grad = torch.ones(p.shape)
    optimizer.step()
    launched.clear()
    optimizer.step()
    name = type(optimizer).__name__.lower().removesuffix("w")
    assert launched == [(name, 4 * (2 * tensors + 1) * n, flops * n, "vector") for n in (ROWS * IN, OUT)]


NARROW = """
name: narrow
system: {sips: {count: 1}}
sip: {cube_mesh: {w: 1, h: 1}}
cube: {hbm: {bandwidth: 10}, pe_layout: {pe_per_corner: 1, corners: [nw]}}
"""
"""A SIP whose memory is slower than its host."""


def test_neither_a_norm_nor_a_step_makes_the_host_wait(open_world: OpenWorld) -> None:
    open_world(NARROW)
    p = nn.Parameter(torch.ones(1 << 20))
    p.grad = torch.ones(1 << 20)
    optimizer = optim.Adam([p])
    before = host_time()
    total = p.grad.norm()
    optimizer.step()
    issued = host_time()
    assert total.item() == 1024
    assert issued < host_time(), "the norm is not known yet"
    known = host_time()
    p[0].item()
    assert before < issued < known < host_time()
