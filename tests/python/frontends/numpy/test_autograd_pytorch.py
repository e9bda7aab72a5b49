"""The same gradients in PyTorch and here, where PyTorch is installed (no other test needs it)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld

import torchemu

pytorch = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with", exc_type=ImportError)


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> Iterator[None]:
    open_world()
    torchemu.set_default_device("cpu")
    yield
    torchemu.set_default_device(None)


# x is of shape (3, 4), w of (4, 3), v of (4,); all require gradients, and i = [2, 0, 2]. Each is an expression, or
# statements of which the last sets y.
PROGRAMS = """
torch.softmax(x @ w, -1).log().sum(0)
torch.nn.functional.gelu(x) * torch.nn.functional.silu(v)
torch.nn.functional.softmax(x * v, dim=0) - torch.nn.functional.log_softmax(x, dim=1)
(x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5) * v
x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * v
torch.baddbmm(v[:3], x.view(1, 3, 4), w.view(1, 4, 3), beta=0.5, alpha=2)
torch.einsum('ij,jk,j->ki', x, w, v)
x[i] @ w
x[:, i] + w[0]
x.transpose(0, 1).reshape(2, 6).chunk(3, 1)[1]
torch.cat([x, w.t(), v[None]]).cumsum(0)
torch.stack(x.unbind(1), 1).masked_fill(x > 0, 2.0)
torch.where(x > v, x, v) + torch.maximum(x, v) * torch.minimum(x, w.t())
torch.logsumexp(x, (0, 1)) + torch.norm(x) + torch.linalg.vector_norm(w, 3, 1).sum()
x.amax(1) * x.max(1)[0] + x.amin()
x.std(0) / (v.abs() + 1)
x.clamp(-0.5, 0.5) + x.clamp(min=v) + torch.relu(-x)
x.repeat(2, 1).view(2, 3, 4).sum(0) * x.expand(2, 3, 4)
torch.gather(x, 1, i[:, None]) * x.index_select(0, i)
x.scatter_add(1, i[:, None], w.t()[:, :1]).index_add(0, i, w.t())
x.triu(1) + w.t().tril(-1)
torch.topk(x, 2, 1)[0] * torch.sort(x, 1)[0][:, :2]
x.float() * v.half()
(x ** v.abs()).nan_to_num() + x.abs() ** 1.5 + 2.0 ** x
torch.erf(x) + torch.tanh(x) * torch.sigmoid(x) + torch.atan2(x, v)
y = x * 1; y[0] = v; y[:, 1] *= 2; y = y * y
y = x.clone(); u = y[1:]; u.mul_(v); y = y.exp() + u.sum()
y = x * 2; u = y.t(); y.add_(v); u[0].zero_(); y = u @ y
y = torch.zeros(5, 4, dtype=x.dtype); y[1:4] = x; y[i] = w.t(); y = y * y
y = x + 0; y.t_(); y.unsqueeze_(0); y = y * v[:, None]
y = x * 1; y.masked_fill_(y < 0, 0.1); y = y.sqrt()
y = x * 1; y.index_add_(0, i, w.t()); y.relu_(); y = y * v
y = x * v; y.copy_(w.t()); y = y * x
with torch.no_grad(): u = x * v
y = u * x + x.detach() * w.t()
y = (x + v).sum() * 2; y = y.expand(2, 2) * torch.ones(2, 2, dtype=x.dtype)
"""


def programs() -> list[str]:
    joined: list[str] = []
    for line in PROGRAMS.strip().splitlines():
        if joined and joined[-1].startswith("with"):
            joined[-1] += "\n" + line
        else:
            joined.append(line)
    return [p if p.startswith(("with", "y =")) else f"y = {p}" for p in joined]


def _run(torch: Any, program: str) -> list[Any]:
    random = np.random.default_rng(7)
    names: dict[str, Any] = {"torch": torch, "i": torch.tensor([2, 0, 2])}
    for name, shape in {"x": (3, 4), "w": (4, 3), "v": (4,)}.items():
        names[name] = torch.from_numpy(random.normal(size=shape)).requires_grad_()
    exec(program, names)
    y = names["y"]
    seed = torch.from_numpy(random.normal(size=tuple(y.shape))).to(y.dtype)
    y.backward(seed)
    grads = [names[name].grad for name in "xwv"]
    return [y.detach(), *grads]


@pytest.mark.parametrize("program", programs())
def test_gradients(program: str) -> None:
    ours, theirs = _run(torchemu, program), _run(pytorch, program)
    for name, a, b in zip(("y", "x", "w", "v"), ours, theirs, strict=True):
        assert (a is None) == (b is None), name
        if b is not None:
            short = b.dtype in (pytorch.float32, pytorch.float16) or "half" in program
            tolerance = {"rtol": 2e-3, "atol": 2e-3} if short else {"rtol": 1e-9, "atol": 1e-11}
            np.testing.assert_allclose(a.double().numpy(), b.double().numpy(), **tolerance, err_msg=name)
            assert a.stride() == b.stride() or name == "y", name


ERRORS = """
x.numpy()
x.add_(1)
x[0].mul_(2)
x.backward()
x.sum().backward(torch.ones(2))
torch.ones(1).backward()
torch.ones(2, dtype=torch.int64).requires_grad_()
torch.ones(2, dtype=torch.int64, requires_grad=True)
torch.add(x, 1, out=torch.zeros(3))
(x * 1).requires_grad_(False)
(x * 1).split(1)[0].add_(1)
(x * 1).detach()[0].detach_()
torch.autograd.grad(x.sum(), torch.ones(1, requires_grad=True))
torch.autograd.grad(x.sum(), torch.ones(1))
torch.autograd.backward([x.sum(), torch.ones(1)])
x.sum().backward(inputs=[])
torch.ones(1).register_hook(print)
(x * 1).register_post_accumulate_grad_hook(print)
torch.ones(1).retain_grad()
setattr(x, 'grad', 3)
setattr(x, 'grad', x)
setattr(x, 'grad', torch.ones(5))
x.resize_(7)
x.t_() if x.dim() == 2 else x.unsqueeze_(0)
y = x.exp(); y.sum().backward(); y.sum().backward()
y = x * 1; u = y.register_hook(lambda g: g[:1]); y.sum().backward()
y = x * 1; u = y.register_hook(lambda g: 'x'); y.sum().backward()
"""


def _failure(torch: Any, program: str) -> tuple[str, str]:
    names: dict[str, Any] = {"torch": torch, "x": torch.ones(3, requires_grad=True)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(program, names)
    except Exception as error:
        return type(error).__name__, str(error)
    return "nothing", ""


@pytest.mark.parametrize("program", ERRORS.strip().splitlines())
def test_errors(program: str) -> None:
    ours = _failure(torchemu, program)
    assert ours == _failure(pytorch, program)
    assert ours[0] != "nothing"


# -- what happens when


def hooks_in_order(torch: Any) -> Any:
    x, log = torch.ones(2, requires_grad=True), []
    y = x * 2
    y.register_hook(lambda g: (log.append("first"), g * 2)[1])
    y.retain_grad()
    y.register_hook(lambda g: (log.append("second"), g * 3)[1])
    y.grad_fn.register_prehook(lambda grads: log.append(("before", grads[0].tolist())))
    y.grad_fn.register_hook(lambda found, grads: log.append(("after", found[0].tolist(), grads[0].tolist())))
    x.register_hook(lambda g: log.append(("leaf", g.tolist())))
    x.register_post_accumulate_grad_hook(lambda t: log.append(("added", t.grad.tolist())))
    y.sum().backward()
    return log, y.grad.tolist(), x.grad.tolist()


def hooks_and_writes(torch: Any) -> Any:
    x, log = torch.ones(2, 2, requires_grad=True), []
    y = x * 1
    y.register_hook(lambda g: log.append(("y", g.tolist())))
    v = y[0]
    v.register_hook(lambda g: log.append(("v", g.tolist())))
    v.mul_(2)
    v.register_hook(lambda g: log.append(("v, written", g.tolist())))
    (v * 3 + y.sum()).sum().backward()
    return log, x.grad.tolist()


def hooks_of_inputs(torch: Any) -> Any:
    x, log = torch.ones(2, requires_grad=True), []
    y = x * 2
    y.register_hook(lambda g: g * 5)
    x.register_hook(lambda g: g * 7)
    x.register_post_accumulate_grad_hook(lambda t: log.append("added"))
    grads = torch.autograd.grad((y * 3).sum(), [y, x, y])
    return [g.tolist() for g in grads], x.grad, log


def a_hook_that_removes_itself(torch: Any) -> Any:
    x, log, handles = torch.ones(2, requires_grad=True), [], []
    y = x * 2
    handles.append(y.register_hook(lambda g: (log.append(1), handles[0].remove())[0]))
    y.register_hook(lambda g: log.append(2))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return log


def which_grad_is_kept(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    x.grad = torch.zeros(3)
    given = x.grad
    (x * 2).sum().backward()
    same = given is x.grad
    (x * x).sum().backward(create_graph=True)
    return same, given.tolist(), x.grad is given, x.grad.requires_grad


def inputs_of_backward(torch: Any) -> Any:
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    z = x * 2
    (z * w).sum().backward(inputs=[z])
    return x.grad, w.grad, z.grad.tolist()


def a_buffer_of_results(torch: Any) -> Any:
    x, whole = torch.ones(3, requires_grad=True), torch.zeros(2, 3)
    whole[0] = x
    first = whole.grad_fn.name()
    whole[1] = x * 2
    whole.retain_grad()
    (whole * whole).sum().backward()
    return first, whole.grad_fn.name(), x.grad.tolist(), whole.grad.tolist()


def parts_from_parts(torch: Any) -> Any:
    x = torch.arange(3.0, requires_grad=True)
    y = x * 1
    y[0] = y[1] * 2
    y[1] = y[0]
    z = y.clone()
    z[:] = z.flip(0)
    (y * torch.tensor([1.0, 10, 100]) + z).sum().backward()
    return x.grad.tolist(), y.tolist(), z.tolist()


def data_is_changed(torch: Any) -> Any:
    x = torch.ones(2, 2, requires_grad=True)
    x.data[0] = 5
    y = (x * x).sum()
    x.data.mul_(3)
    y.backward()
    return x.grad.tolist(), x._version


def packed_tensors(torch: Any) -> Any:
    x, log = torch.ones(3, requires_grad=True), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (log.append(tuple(t.shape)), t * 1)[1], lambda t: t * 2):
        y = (x * x).exp()
    y.sum().backward()
    return log, [round(v, 4) for v in x.grad.tolist()]


SCENARIOS = (
    hooks_in_order,
    hooks_and_writes,
    hooks_of_inputs,
    a_hook_that_removes_itself,
    which_grad_is_kept,
    inputs_of_backward,
    a_buffer_of_results,
    parts_from_parts,
    data_is_changed,
    packed_tensors,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_scenarios(scenario: Callable[[Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert scenario(torchemu) == scenario(pytorch)
