"""Convolutions, pooling and normalizations of channels: against sums written out, gradients against differences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from nn_gradients import check
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.nn.functional as F  # noqa: N812 (its usual name)
from torchemu import nn

RNG = np.random.default_rng


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")


def normal(seed: int, *shape: int) -> np.ndarray:
    return RNG([seed, *shape]).standard_normal(shape)


# -- oracles: every sum written out


def places(n: int, k: int, s: int, p: int, d: int) -> int:
    return (n + 2 * p - d * (k - 1) - 1) // s + 1


def convolved(x: Any, w: Any, b: Any, s: Any, p: Any, d: Any, groups: int = 1) -> np.ndarray:
    ndim, kernel = w.ndim - 2, w.shape[2:]
    sizes = tuple(places(*each) for each in zip(x.shape[2:], kernel, s, p, d, strict=True))
    result = np.zeros((x.shape[0], w.shape[0], *sizes))
    outs, ins = w.shape[0] // groups, w.shape[1]
    for n, o, *at in np.ndindex(result.shape):
        total = 0.0 if b is None else b[o]
        for i, *k in np.ndindex((ins, *kernel)):
            where = [at[a] * s[a] - p[a] + k[a] * d[a] for a in range(ndim)]
            if all(0 <= where[a] < x.shape[2 + a] for a in range(ndim)):
                total += w[(o, i, *k)] * x[(n, o // outs * ins + i, *where)]
        result[(n, o, *at)] = total
    return result


def transposed(x: Any, w: Any, b: Any, s: Any, p: Any, more: Any, groups: int, d: Any) -> np.ndarray:
    ndim, kernel = w.ndim - 2, w.shape[2:]
    sizes = tuple((x.shape[2 + a] - 1) * s[a] - 2 * p[a] + d[a] * (kernel[a] - 1) + more[a] + 1 for a in range(ndim))
    result = np.zeros((x.shape[0], w.shape[1] * groups, *sizes))
    ins, outs = w.shape[0] // groups, w.shape[1]
    for n, i, *at in np.ndindex(x.shape):
        for o, *k in np.ndindex((outs, *kernel)):
            where = [at[a] * s[a] - p[a] + k[a] * d[a] for a in range(ndim)]
            if all(0 <= where[a] < sizes[a] for a in range(ndim)):
                result[(n, i // ins * outs + o, *where)] += w[(i, o, *k)] * x[(n, i, *at)]
    return result if b is None else result + b.reshape(-1, *[1] * ndim)


CONVOLUTIONS = [  # x, weight, stride, padding, dilation, groups
    ((2, 3, 5), (4, 3, 2), (1,), (0,), (1,), 1),
    ((1, 4, 6), (2, 2, 3), (2,), (1,), (2,), 2),
    ((2, 2, 5, 4), (3, 2, 3, 2), (1, 1), (1, 0), (1, 1), 1),
    ((1, 4, 5, 6), (4, 1, 2, 3), (2, 3), (1, 1), (1, 2), 4),
    ((2, 1, 1, 1), (2, 1, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((0, 2, 3, 3), (2, 2, 2, 2), (1, 1), (0, 0), (1, 1), 1),
    ((1, 2, 3, 2, 3), (2, 2, 2, 2, 2), (1, 1, 2), (1, 0, 1), (1, 1, 1), 1),
]


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions(case: Any, biased: bool) -> None:
    shape, kernel, s, p, d, groups = case
    x, w, b = normal(1, *shape), normal(2, *kernel), normal(3, kernel[0]) if biased else None
    function = (F.conv1d, F.conv2d, F.conv3d)[len(s) - 1]
    check(lambda *t: function(*t, s, p, d, groups), lambda *a: convolved(*a, s, p, d, groups), [x, w, b])


TRANSPOSED = [  # x, weight, stride, padding, output padding, groups, dilation
    ((2, 3, 4), (3, 2, 2), (2,), (0,), (1,), 1, (1,)),
    ((1, 4, 3, 2), (4, 1, 3, 2), (2, 1), (1, 0), (1, 0), 2, (1, 2)),
    ((1, 2, 2, 2, 1), (2, 2, 2, 1, 2), (1, 1, 2), (0, 0, 1), (0, 0, 1), 1, (1, 1, 1)),
]


@pytest.mark.parametrize("case", TRANSPOSED, ids=str)
def test_transposed_convolutions(case: Any) -> None:
    shape, kernel, s, p, more, groups, d = case
    x, w, b = normal(1, *shape), normal(2, *kernel), normal(3, kernel[1] * groups)
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[len(s) - 1]
    options = (s, p, more, groups, d)
    check(lambda *t: function(*t, *options), lambda *a: transposed(*a, *options), [x, w, b])


def test_words_for_padding_and_inputs_without_a_batch() -> None:
    x, w = normal(1, 2, 5, 6), normal(2, 3, 2, 3, 2)
    wanted = convolved(np.pad(x[None], ((0, 0), (0, 0), (1, 1), (0, 1))), w, None, (1, 1), (0, 0), (1, 1))[0]
    got = F.conv2d(torch.from_numpy(x), torch.from_numpy(w), padding="same")
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12, atol=1e-12)
    assert F.conv2d(torch.from_numpy(x), torch.from_numpy(w), padding="valid").shape == (3, 3, 5)


def test_short_floats_are_summed_as_float32() -> None:
    x, w = torch.tensor(normal(1, 2, 3, 6, 6)).bfloat16(), torch.tensor(normal(2, 4, 3, 3, 3)).bfloat16()
    wanted = convolved(x.double().numpy(), w.double().numpy(), None, (1, 1), (0, 0), (1, 1))
    got = F.conv2d(x, w)
    assert got.dtype is torch.bfloat16
    np.testing.assert_allclose(got.double().numpy(), wanted, rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: F.conv2d(x, torch.ones(4, 2, 3, 3)), r"expected input\[1, 3, 5, 5\] to have 2 channels, but got 3"),
        (lambda x: F.conv2d(x, torch.ones(4, 3, 6, 6)), r"\(5 x 5\). Kernel size: \(6 x 6\)"),
        (lambda x: F.conv2d(x[0, 0], torch.ones(4, 3, 3, 3)), r"Expected 3D \(unbatched\) or 4D \(batched\)"),
        (lambda x: F.conv2d(x.double(), torch.ones(4, 3, 3, 3)), r"Input type \(double\) and weight type \(float\)"),
        (lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3), torch.ones(3)), "bias to be 1-dimensional with 4 elements"),
        (lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3), stride=0), "non-positive stride is not supported"),
        (lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3), padding=-1), "negative padding is not supported"),
        (lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3), stride=2, padding="same"), "not supported for strided"),
        (lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3), stride=(1, 2, 3)), "stride"),
        (lambda x: F.conv_transpose2d(x, torch.ones(3, 1, 2, 2), output_padding=1), "output padding must be smaller"),
        (lambda x: F.max_pool2d(x, 6), "Output size is too small"),
        (lambda x: F.max_pool2d(x, 3, padding=2), "pad should be at most half of effective kernel size"),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=0), "divisor must be not zero"),
        (lambda x: F.max_pool2d(x[0, 0], 2), "non-empty 3D or 4D"),
        (lambda x: F.batch_norm(x, None, None), "Expected running_mean to be defined when training=False"),
        (lambda x: F.batch_norm(x, torch.ones(4), torch.ones(4)), "running_mean should contain 3 elements not 4"),
        (lambda x: F.group_norm(x, 2), "divisible by num_groups"),
    ],
)  # fmt: skip
def test_what_does_not_fit(call: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call(torch.ones(1, 3, 5, 5))


# -- pooling


def pooled(x: Any, k: Any, s: Any, p: Any, d: Any, ceil: bool, kind: str, inside: bool = False) -> np.ndarray:
    ndim = len(k)
    sizes = []
    for n, kk, ss, pp, dd in zip(x.shape[2:], k, s, p, d, strict=True):
        reach = dd * (kk - 1) + 1
        count = places(n, kk, ss, pp, dd)
        if ceil and (n + 2 * pp - reach) % ss and count * ss < n + pp:
            count += 1
        sizes.append(count)
    result = np.zeros((*x.shape[:2], *sizes))
    for n, c, *at in np.ndindex(result.shape):
        found, counted = [], 0
        for i in np.ndindex(*k):
            where = [at[a] * s[a] - p[a] + i[a] * d[a] for a in range(ndim)]
            counted += all(where[a] < x.shape[2 + a] + p[a] for a in range(ndim))
            if all(0 <= where[a] < x.shape[2 + a] for a in range(ndim)):
                found.append(x[(n, c, *where)])
        result[(n, c, *at)] = max(found) if kind == "max" else sum(found) / (len(found) if inside else counted)
    return result


POOLS = [
    ((2, 2, 7), (2,), (2,), (0,), (1,)),
    ((1, 2, 6, 5), (2, 3), (2, 2), (1, 1), (1, 1)),
    ((2, 1, 5, 5), (3, 3), (1, 2), (1, 0), (2, 1)),
    ((1, 1, 4, 3, 5), (2, 2, 3), (1, 2, 2), (0, 1, 1), (1, 1, 1)),
    ((1, 1, 1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
]


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("case", POOLS, ids=str)
def test_the_largest_of_windows(case: Any, ceil: bool) -> None:
    shape, k, s, p, d = case
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(k) - 1]
    x = normal(4, *shape)
    check(lambda t: function(t, k, s, p, d, ceil), lambda a: pooled(a, k, s, p, d, ceil, "max"), [x])
    found, where = function(torch.from_numpy(x), k, s, p, d, ceil, return_indices=True)
    lead = shape[0] * shape[1]
    flat = np.take_along_axis(x.reshape(lead, -1), where.numpy().reshape(lead, -1), 1)
    np.testing.assert_array_equal(flat.ravel(), found.numpy().ravel())


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("case", POOLS, ids=str)
def test_the_means_of_windows(case: Any, ceil: bool, inside: bool) -> None:
    shape, k, s, p, _ = case
    function, one = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[len(k) - 1], (1,) * len(k)
    check(
        lambda t: function(t, k, s, p, ceil, not inside),
        lambda a: pooled(a, k, s, p, one, ceil, "avg", inside),
        [normal(4, *shape)],
    )


def test_nan_and_infinities_in_windows() -> None:
    x = torch.tensor([[[float("-inf"), float("-inf"), 1.0, float("nan"), 2.0, 3.0]]])
    found, where = F.max_pool1d(x, 2, padding=1, return_indices=True)
    assert str(found.tolist()) == "[[[-inf, 1.0, nan, 3.0]]]"
    assert where.tolist() == [[[0, 2, 3, 5]]]


@pytest.mark.parametrize("places", [1, 3, 5, (2, None), (4, 7)])
def test_adaptive_means(places: Any) -> None:
    x = normal(5, 2, 3, 5, 7)
    wanted = places if isinstance(places, tuple) else (places, places)
    sizes = [n if m is None else m for n, m in zip((5, 7), wanted, strict=True)]

    def oracle(a: np.ndarray) -> np.ndarray:
        result = np.zeros((2, 3, *sizes))
        for i, j in itertools.product(*map(range, sizes)):
            rows = slice(i * 5 // sizes[0], -(-(i + 1) * 5 // sizes[0]))
            columns = slice(j * 7 // sizes[1], -(-(j + 1) * 7 // sizes[1]))
            result[:, :, i, j] = a[:, :, rows, columns].mean((2, 3))
        return result

    check(lambda t: F.adaptive_avg_pool2d(t, places), oracle, [x])


# -- normalizations


def normalized(x: np.ndarray, w: Any, b: Any, mean: Any = None, var: Any = None, eps: float = 1e-5) -> np.ndarray:
    axes = (0, *range(2, x.ndim))
    shape = (1, -1, *[1] * (x.ndim - 2))
    mean = x.mean(axes) if mean is None else mean
    var = ((x - mean.reshape(shape)) ** 2).mean(axes) if var is None else var
    result = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)
    return result * (1 if w is None else w.reshape(shape)) + (0 if b is None else b.reshape(shape))


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (3, 2, 2, 4), (1, 2, 1, 2, 2)])
@pytest.mark.parametrize("affine", [True, False])
def test_batches_are_normalized(shape: tuple[int, ...], affine: bool) -> None:
    x, w, b = normal(1, *shape), *[normal(i, shape[1]) if affine else None for i in (2, 3)]
    mean, var = normal(4, shape[1]), normal(5, shape[1]) ** 2 + 0.1
    check(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), normalized, [x, w, b])
    given = torch.from_numpy(mean), torch.from_numpy(var)
    check(lambda x, w, b: F.batch_norm(x, *given, w, b), lambda x, w, b: normalized(x, w, b, mean, var), [x, w, b])


def test_running_means() -> None:
    net, total, squares = nn.BatchNorm1d(3), np.zeros(3), np.ones(3)
    mean = nn.BatchNorm1d(3, momentum=None)
    batches = [normal(i, 6, 3).astype(np.float32) for i in range(4)]
    for x in batches:
        net(torch.from_numpy(x))
        mean(torch.from_numpy(x))
        total, squares = total * 0.9 + x.mean(0) * 0.1, squares * 0.9 + x.var(0, ddof=1) * 0.1
    np.testing.assert_allclose(net.running_mean.numpy(), total, rtol=1e-5)
    np.testing.assert_allclose(net.running_var.numpy(), squares, rtol=1e-5)
    np.testing.assert_allclose(mean.running_mean.numpy(), np.mean([x.mean(0) for x in batches], 0), rtol=1e-4)
    assert net.num_batches_tracked.item() == 4
    net.eval()
    got = net(torch.from_numpy(batches[0])).detach().numpy()
    np.testing.assert_allclose(got, normalized(batches[0], None, None, total, squares), rtol=1e-4, atol=1e-6)
    assert net.num_batches_tracked.item() == 4


def test_groups_and_instances() -> None:
    x, w, b = normal(1, 2, 4, 3), normal(2, 4), normal(3, 4)

    def grouped(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        parts = x.reshape(2, 2, 6)
        parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
        return parts.reshape(2, 4, 3) * w[:, None] + b[:, None]

    def alone(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        y = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
        return y * w[:, None] + b[:, None]

    check(lambda x, w, b: F.group_norm(x, 2, w, b), grouped, [x, w, b])
    check(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), alone, [x, w, b])


def test_ranks_normalize_their_batches_together() -> None:
    """As one rank with all of the batch: results, gradients, running means. The ranks' parts differ in size."""
    x, weights = normal(1, 7, 3, 2).astype(np.float32), normal(2, 7, 3, 2).astype(np.float32)
    parts = [slice(0, 2), slice(2, 7)]

    def run(net: nn.Module, part: slice, where: str) -> list[np.ndarray]:
        with torch.no_grad():
            net.weight.copy_(torch.tensor([1.0, 2.0, -0.5]))
        given = torch.tensor(x[part], device=where, requires_grad=True)
        result = net.to(where)(given)
        (result * torch.tensor(weights[part], device=where)).sum().backward()
        kept = [given.grad, net.weight.grad, net.bias.grad, net.running_mean, net.running_var]
        return [t.detach().cpu().numpy() for t in (result, *kept)]

    def program(rank: int) -> list[np.ndarray]:
        dist.init_process_group("nccl")
        net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3))
        assert isinstance(net, nn.SyncBatchNorm)
        return run(net, parts[rank], "ahbm")

    whole = run(nn.BatchNorm1d(3), slice(None), "cpu")
    torch.set_default_device(None)
    each = on_ranks(2, program)
    for i, joined in enumerate((np.concatenate, np.concatenate, sum, sum)):
        got = joined([each[0][i], each[1][i]])  # type: ignore[operator]
        np.testing.assert_allclose(got, whole[i], rtol=2e-5, atol=2e-6, err_msg=str(i))
    for rank in (0, 1):
        for i in (4, 5):
            np.testing.assert_allclose(each[rank][i], whole[i], rtol=1e-5)


# -- modules


def test_modules_say_what_they_are() -> None:
    assert repr(nn.Conv2d(2, 4, 3, padding="same", groups=2)) == (
        "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=same, groups=2)"
    )
    assert repr(nn.ConvTranspose2d(2, 4, 3, 2, 1, 1)) == (
        "ConvTranspose2d(2, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), output_padding=(1, 1))"
    )
    assert repr(nn.MaxPool2d(2)) == "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"
    assert repr(nn.BatchNorm2d(3)) == "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)"


def test_a_network_of_them() -> None:
    """Gradients through all of it, with the modules' own parameters."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.Tanh(), nn.MaxPool2d(2), nn.ConvTranspose2d(2, 2, 2),
        nn.GroupNorm(1, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    ).double()  # fmt: skip
    parameters = [p.detach().numpy() for p in net.parameters()]
    first, norm, back, groups = (parameters[i : i + 2] for i in (0, 2, 4, 6))

    def oracle(x: np.ndarray) -> np.ndarray:
        one, none = (1, 1), (0, 0)
        y = np.tanh(normalized(convolved(x, *first, one, one, one), *norm))
        y = transposed(pooled(y, (2, 2), (2, 2), none, one, False, "max"), *back, one, none, none, 1, one)
        parts = y.reshape(len(y), -1)
        parts = (parts - parts.mean(1, keepdims=True)) / np.sqrt(parts.var(1, keepdims=True) + 1e-5)
        return parts.reshape(y.shape).mean((2, 3)) * groups[0] + groups[1]

    check(net, oracle, [normal(1, 2, 1, 4, 4)])


def test_modules_refuse_as_pytorch_does() -> None:
    for call, text in (
        (lambda: nn.Conv2d(3, 4, 3, stride=2, padding="same"), "strided convolutions"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(3, 4, 3, padding="bad"), "Invalid padding string 'bad'"),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="bad"), "padding_mode must be one of"),
        (lambda: nn.BatchNorm2d(3)(torch.ones(2, 3)), r"expected 4D input \(got 2D input\)"),
        (lambda: nn.BatchNorm1d(3)(torch.ones(3)), r"expected 2D or 3D input \(got 1D input\)"),
        (lambda: nn.BatchNorm1d(3)(torch.ones(1, 3)), "Expected more than 1 value per channel"),
        (lambda: nn.GroupNorm(2, 3), "must be divisible by num_groups"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


@pytest.mark.parametrize("kind", ["BatchNorm1d", "LayerNorm", "RMSNorm", "MaxPool1d", "Dropout"])
def test_results_may_be_written_into(kind: str) -> None:
    """Their derivatives look at other things: an activation in place may follow, as it does in many networks."""
    module = getattr(nn, kind)(0.5 if kind == "Dropout" else 2)
    x = torch.from_numpy(normal(1, 3, 2)).float()
    grads = []
    for inplace in (False, True):
        given = x.clone().requires_grad_()
        torch.manual_seed(1)
        F.relu(module(given), inplace=inplace).square().sum().backward()
        grads.append(given.grad.tolist())
    assert grads[0] == grads[1]


def test_prefixes_of_names() -> None:
    from torchemu.nn.modules.utils import _pair, _quadruple, consume_prefix_in_state_dict_if_present

    state = {"module.a": 1, "b": 2, "module.c.module.d": 3}
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"a": 1, "b": 2, "c.module.d": 3}
    assert (_pair(3), _pair((1, 2)), _quadruple(0)) == ((3, 3), (1, 2), (0, 0, 0, 0))
