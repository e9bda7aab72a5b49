"""Time: what operations take, and that runs without data take as long as such with it."""

import copy

import pytest
from launched import noted

from torchemu import runtime

torch = pytest.importorskip("torch", reason="no PyTorch is installed here")
from torchemu.frontends.torch import device  # noqa: E402

nn = torch.nn
functional = torch.nn.functional


class Attention(nn.Module):
    def __init__(self, causal, dropout=0.0):
        super().__init__()
        self.inner, self.causal, self.dropout = nn.Linear(16, 48), causal, dropout

    def forward(self, x):
        q, k, v = self.inner(x).view(*x.shape[:2], 3, 4, 4).permute(2, 0, 3, 1, 4)
        return functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, dropout_p=self.dropout)


MODELS = {
    "mlp": lambda: (nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2)), torch.randn(3, 16)),
    "odd": lambda: (nn.Sequential(nn.Linear(7, 1), nn.Sigmoid()), torch.randn(1, 7)),
    "empty": lambda: (nn.Linear(4, 4), torch.randn(0, 4)),
    "conv": lambda: (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2)), torch.randn(2, 3, 8, 8)),
    "transformer": lambda: (nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True), torch.randn(2, 3, 8)),
    "attention": lambda: (Attention(False), torch.randn(2, 5, 16)),
    "causal": lambda: (Attention(True), torch.randn(2, 5, 16)),
    "embedding": lambda: (
        nn.Sequential(nn.Embedding(5, 4), nn.LayerNorm(4), nn.GELU(), nn.Dropout()),
        torch.ones(2, 2).long(),
    ),
    "norms": lambda: (
        nn.Sequential(nn.RMSNorm(8), nn.GroupNorm(3, 3), nn.Softmax(-1), nn.SiLU()),
        torch.randn(2, 3, 8),
    ),
}

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p),
    "fused": lambda p: torch.optim.AdamW(p, fused=True),
    "for": lambda p: torch.optim.Adam(p, foreach=False),
}


def test_recurrent_networks_run_without_data(mode):
    """They take as many products as the steps of a sequence, where the CPU takes all inputs of a layer at once."""
    from torchemu.frontends.torch import device

    with device.running(data=False):
        out, _ = nn.LSTM(4, 5, 2).cuda()(torch.randn(3, 2, 4).cuda())
        out.sum().backward()
    assert out.shape == (3, 2, 5)


def timed(torch, make, run):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    made = run(make)
    end.record()
    end.synchronize()
    return made, start.elapsed_time(end)


def step_of_mlp(torch, n):
    """The milliseconds of a forward pass, a backward pass and an optimizer's step."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(n, 4 * n), nn.ReLU(), nn.Linear(4 * n, n)).to("cuda")
    x, grad = torch.ones(64, n, device="cuda"), torch.ones(64, n, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=False)
    out, forward = timed(torch, model, lambda m: m(x))
    _, backward = timed(torch, out, lambda o: o.backward(grad))
    return forward, backward, timed(torch, optimizer, lambda o: o.step())[1]


@pytest.mark.parametrize("n", [8, 100, 512])
def test_a_step_takes_what_it_takes_on_the_other_front_end(n):
    from torchemu.frontends import numpy
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    with world.opened():
        other = step_of_mlp(numpy, n)
    with world.opened(), device.running():
        assert step_of_mlp(torch, n) == pytest.approx(other, rel=1e-9)


def step(model, x, optimizer, autocast):
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        out = model(x)
        out = out[0] if isinstance(out, tuple) else out
        loss = out.float().pow(2).mean() if out.numel() else out.sum()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def recorded(monkeypatch, model, x, make, autocast, data):
    """The launches of two steps, what they take, and the memory that is taken at most."""
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    launches = noted(monkeypatch)
    with world.opened(), device.running(data=data):
        model, x = copy.deepcopy(model).cuda(), x.cuda()
        optimizer = make(model.parameters())
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(2):
            step(model, x, optimizer, autocast)
        end.record()
        end.synchronize()
        return launches, start.elapsed_time(end), torch.cuda.max_memory_allocated()


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_without_data_it_takes_as_long(monkeypatch, name, optimizer, autocast):
    model, x = MODELS[name]()
    made = OPTIMIZERS[optimizer]
    with_data = recorded(monkeypatch, model, x, made, autocast, True)
    monkeypatch.undo()
    assert recorded(monkeypatch, model, x, made, autocast, False) == with_data


@pytest.mark.parametrize("data", [True, False])
def test_several_results_go_where_a_call_says(data):
    """Tensors that are given get the shape of the results, as PyTorch resizes them."""
    with runtime.opened(), device.running(data=data):
        x = torch.ones(4, 6, device="cuda")
        for call, shape in ((torch.sort, (4, 6)), (lambda x, out: torch.topk(x, 2, out=out), (4, 2))):
            values, places = torch.empty(0, device="cuda"), torch.empty(0, dtype=torch.int64, device="cuda")
            made = call(x, out=(values, places))
            assert made[0] is values and made[1] is places
            assert values.shape == places.shape == shape


WRONG = {
    "add_": lambda x, y: x.add_(y),
    "copy_": lambda x, y: x.copy_(y),
    "copy_ from the host": lambda x, y: x.copy_(y.cpu()),
    "copy_ to the host": lambda x, y: y.cpu().copy_(x),
    "a part": lambda x, y: x[:2].copy_(y),
    "several": lambda x, y: torch._foreach_add_([x, x], [x, y]),
    "lerp_": lambda x, y: x.lerp_(y, 0.5),
    "addmm_": lambda x, y: x.addmm_(x, y),
    "masked_fill_": lambda x, y: x.masked_fill_(y > 0, 1.0),
    "index_add_": lambda x, y: x.index_add_(0, torch.zeros(3, dtype=torch.int64, device="cuda"), y),
    "a type": lambda x, y: torch.ones(3, dtype=torch.int64, device="cuda").add_(torch.ones(3, device="cuda")),
    "the last of some": lambda x, y: x.add_(y.t()).mul_(2).copy_(y),
}


@pytest.mark.parametrize("call", WRONG)
@pytest.mark.parametrize("data", [True, False])
def test_operations_in_place_refuse_what_they_cannot_write(data, call):
    """Without data no elements are written, and shapes that do not fit one another are refused all the same."""
    with runtime.opened(), device.running(data=data):
        x, y = torch.ones(8, 4, device="cuda"), torch.ones(4, 8, device="cuda")
        for _ in range(2):  # the second time it is known
            with pytest.raises(RuntimeError):
                WRONG[call](x, y)
        x.add_(y.t()).mul_(2)
        assert x.shape == (8, 4)


class Permuted(nn.Module):
    """Normalization of channels as ConvNeXt has it."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


NETWORKS = {
    "residual": lambda: (
        nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(8, 4, 1)
        ),
        (2, 3, 32, 32),
    ),
    "depthwise": lambda: (
        nn.Sequential(nn.Conv2d(3, 8, 4, 4), Permuted(8), nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.GELU()),
        (2, 3, 32, 32),
    ),
    "transposed": lambda: (
        nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.SiLU(), nn.ConvTranspose2d(8, 6, 4, 2, 1), nn.AvgPool2d(2)),
        (2, 3, 16, 16),
    ),
    "volumes": lambda: (
        nn.Sequential(nn.Conv3d(3, 8, 3), nn.BatchNorm3d(8), nn.ReLU(), nn.ConvTranspose3d(8, 4, 2, 2)),
        (2, 3, 6, 6, 6),
    ),
}


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("name", NETWORKS)
def test_elements_have_the_same_order_without_data(name, last):
    """Which kernels normalize, and how long that takes, depends on where channels are."""

    def orders(data):
        with runtime.opened(), device.running(data=data):
            model, shape = NETWORKS[name]()
            kind = {4: torch.channels_last, 5: torch.channels_last_3d}[len(shape)] if last else torch.contiguous_format
            model = model.cuda().to(memory_format=kind)
            x = torch.ones(shape, device="cuda").to(memory_format=kind).requires_grad_()
            results = [x]
            for layer in model:
                results.append(layer(results[-1]))
            grads = torch.autograd.grad(results[-1].sum(), [*results[:-1], *model.parameters()])
            return [(t.shape, t.stride()) for t in (*results, *grads)]

    assert orders(False) == orders(True)
