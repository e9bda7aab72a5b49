"""Devices that are names: where tensors are, and that what is done to them is what the CPU does."""

import copy
import io
import pickle

import pytest

torch = pytest.importorskip("torch", reason="no PyTorch is installed here")
nn = torch.nn

MAKERS = {
    "ones": lambda d: torch.ones(2, 3, device=d),
    "empty": lambda d: torch.empty(0, device=d),
    "arange": lambda d: torch.arange(3, device=d),
    "tensor": lambda d: torch.tensor([[1.0]], device=d),
    "scalar": lambda d: torch.tensor(1, device=d),
    "as_tensor": lambda d: torch.as_tensor([1, 2], device=d),
    "asarray": lambda d: torch.asarray([1, 2], device=d),
    "randn": lambda d: torch.randn(2, device=d),
    "randint": lambda d: torch.randint(5, (2,), device=d),
    "randperm": lambda d: torch.randperm(5, device=d),
    "eye": lambda d: torch.eye(2, device=d),
    "full": lambda d: torch.full((), 2.0, device=d),
    "to": lambda d: torch.ones(2).to(d),
    "to_dtype": lambda d: torch.ones(2).to(d, torch.float16),
    "to_like": lambda d: torch.ones(2).to(torch.ones(1, device=d)),
    "zeros_like": lambda d: torch.zeros_like(torch.ones(2), device=d),
    "new_tensor": lambda d: torch.ones(2).new_tensor([1.0], device=d),
    "new_zeros": lambda d: torch.ones(2).new_zeros(2, device=d),
    "linear": lambda d: nn.Linear(2, 2, device=d).weight,
    "module": lambda d: nn.Linear(2, 2).to(d).weight,
    "parameter": lambda d: nn.Parameter(torch.ones(2, device=d)),
    "coo": lambda d: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,), device=d, check_invariants=True),
}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:2", "cpu"])
@pytest.mark.parametrize("maker", MAKERS)
def test_where_new_tensors_are(mode, maker, device):
    made = MAKERS[maker](device)
    want = torch.device("cuda:0" if device == "cuda" else device)
    assert made.device == want
    assert made.is_cuda is (want.type == "cuda") and made.is_cpu is (want.type == "cpu")
    assert made.get_device() == (want.index if want.index is not None else -1)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("maker", ["ones", "tensor", "as_tensor", "asarray", "randn", "linear"])
def test_a_device_as_a_context(mode, maker, device):
    other = "cpu" if device == "cuda" else "cuda"
    with torch.device(device):
        assert MAKERS[maker](None).device.type == device
        assert MAKERS[maker](other).device.type == other


def test_cpu_and_cuda(mode):
    a = torch.arange(6.0).reshape(2, 3)
    b = a.t().cuda()
    assert b.device.type == "cuda" and b.stride() == (1, 3)
    assert b.cpu().device.type == "cpu" and torch.equal(b.cpu(), a.t())
    assert b.cuda() is b and a.cpu() is a and b.to("cuda") is b and b.to("cuda:0") is b
    assert b.cpu().data_ptr() != b.data_ptr()
    assert b.to("cuda", copy=True).data_ptr() != b.data_ptr()
    assert b.to("cuda:1").device.index == 1
    assert a.to("meta").device.type == "meta"
    assert b.half().device.type == b.to(torch.int8).device.type == "cuda"
    assert a.to(device="cuda", dtype=torch.float64, non_blocking=True).dtype is torch.float64


def test_views_stay_where_their_base_is(mode):
    a = torch.arange(24.0, device="cuda").reshape(2, 3, 4)
    views = [
        a[0],
        a[:, 1:],
        a.t() if a.dim() == 2 else a.mT,
        a.view(-1),
        a.detach(),
        a.data,
        a.expand(2, 3, 4),
        *a.unbind(),
    ]
    views += [*a.split(1), a.unflatten(2, (2, 2)), a.as_strided((2,), (1,)), a.view(torch.int32), a.narrow(0, 0, 1)]
    assert all(
        v.device.type == "cuda" and v.untyped_storage().data_ptr() == a.untyped_storage().data_ptr() for v in views
    )


@pytest.mark.shows("PyTorch: tensors")
def test_results_are_where_operands_are(mode):
    a, b = torch.rand(4, 4, device="cuda"), torch.rand(4, 4, device="cuda:1")
    for made in (
        a + 1,
        1 - a,
        a @ a,
        a.sum(),
        a.sort()[1],
        a.max(0).values,
        a > 0.5,
        a[a > 0.5],
        a.nonzero(),
        a.clone(),
    ):
        assert made.device == a.device
    assert torch.stack([b, b]).device == b.device and torch.cat([b, b]).device == b.device
    assert all(t.device == b.device for t in torch._foreach_add([b, b], 1.0))
    assert (a + torch.tensor(2.0)).device == a.device
    out = torch.empty(0, device="cuda")
    assert torch.add(a, a, out=out).device == a.device and out.numel() == 16
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cuda:1!"):
        a + b


@pytest.mark.shows("PyTorch: gradients")
def test_gradients_are_where_their_tensors_are(mode):
    w = torch.ones(3, requires_grad=True)  # on the host
    x = torch.arange(3.0, device="cuda", requires_grad=True)
    (w.cuda() * x * 2).sum().backward()
    assert w.grad.device.type == "cpu" and w.grad.tolist() == [0, 2, 4]
    assert x.grad.device.type == "cuda" and x.grad.tolist() == [2, 2, 2]
    target = torch.zeros(3, device="cuda")
    w.grad = None
    target.copy_(w)
    target.sum().backward()
    assert w.grad.device.type == "cpu" and w.grad.tolist() == [1, 1, 1]
    y = (x.to("cuda:1") ** 2).cpu()
    x.grad = None
    y.sum().backward()
    assert x.grad.device.index == 0 and x.grad.tolist() == [0, 2, 4]


def models():
    return {
        "mlp": (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(3, 4)),
        "lstm": (nn.LSTM(4, 5, 2), torch.randn(3, 2, 4)),
        "gru": (nn.GRU(4, 5, bidirectional=True), torch.randn(3, 2, 4)),
        "conv": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2)), torch.randn(2, 3, 8, 8)),
        "transformer": (nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), torch.randn(2, 3, 8)),
        "embedding": (nn.Sequential(nn.Embedding(5, 4), nn.LayerNorm(4), nn.GELU()), torch.tensor([[1, 2], [3, 4]])),
    }


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, 0.01),
    "fused": lambda p: torch.optim.AdamW(p, 0.01, fused=True),
    "foreach": lambda p: torch.optim.AdamW(p, 0.01, foreach=True),
    "for": lambda p: torch.optim.AdamW(p, 0.01, foreach=False),
}


def trained(model, x, make):
    """Three steps; returns the losses."""
    optimizer, losses = make(model.parameters()), []
    for _ in range(3):
        out = model(x)
        loss = (out[0] if isinstance(out, tuple) else out).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.shows("PyTorch: modules and optimizers")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ["mlp", "lstm", "gru", "conv", "transformer", "embedding"])
def test_training_is_that_of_the_cpu(mode, name, optimizer):
    torch.manual_seed(3)
    model, x = models()[name]
    there = copy.deepcopy(model).cuda()
    here = trained(model, x, OPTIMIZERS[optimizer])
    assert trained(there, x.cuda(), OPTIMIZERS[optimizer]) == here
    for p, q in zip(model.parameters(), there.parameters(), strict=True):
        assert q.is_cuda and q.grad.is_cuda and torch.equal(p, q.cpu())


@pytest.mark.shows("PyTorch: torch.save and torch.load")
def test_saving_keeps_names(mode):
    state = {"a": torch.arange(3.0, device="cuda:1"), "b": torch.ones(2), "m": nn.Linear(2, 2).cuda().state_dict()}
    file = io.BytesIO()
    torch.save(state, file)

    def loaded(**kwargs):
        file.seek(0)
        found = torch.load(file, **kwargs)
        return [str(t.device) for t in (found["a"], found["b"], *found["m"].values())], found["a"].tolist()

    assert loaded() == (["cuda:1", "cpu", "cuda:0", "cuda:0"], [0, 1, 2])
    assert loaded(map_location="cpu") == (["cpu"] * 4, [0, 1, 2])
    assert loaded(map_location="cuda:2") == (["cuda:2"] * 4, [0, 1, 2])
    assert loaded(map_location={"cuda:1": "cuda:0"})[0] == ["cuda:0", "cpu", "cuda:0", "cuda:0"]
    assert loaded(map_location=lambda storage, where: storage)[0] == ["cpu"] * 4
    again = pickle.loads(pickle.dumps(state["a"]))
    assert again.device.index == 1 and again.tolist() == [0, 1, 2]
    twin = copy.deepcopy(state["a"])
    assert twin.device.index == 1 and twin.data_ptr() != state["a"].data_ptr()


@pytest.mark.shows("PyTorch: random numbers")
def test_generators(mode):
    a, b = torch.Generator("cuda").manual_seed(5), torch.Generator("cuda").manual_seed(5)
    assert torch.equal(torch.randn(4, device="cuda", generator=a), torch.randn(4, device="cuda", generator=b))
    state = a.get_state()
    drawn = torch.rand(3, device="cuda", generator=a)
    assert not torch.equal(drawn, torch.rand(3, device="cuda", generator=a))
    assert torch.equal(drawn, torch.rand(3, device="cuda", generator=torch.Generator("cuda").set_state(state)))
    torch.manual_seed(1)
    first = torch.rand(3), torch.rand(3, device="cuda"), nn.functional.dropout(torch.ones(32, device="cuda"))
    torch.manual_seed(1)
    second = torch.rand(3), torch.rand(3, device="cuda"), nn.functional.dropout(torch.ones(32, device="cuda"))
    assert all(map(torch.equal, first, second))
    before = torch.get_rng_state()
    torch.ones(3, device="cuda").normal_()
    assert torch.equal(before, torch.get_rng_state())  # the host's is another one
    with torch.random.fork_rng(devices=[0]):
        x = torch.rand(3, device="cuda")
    assert torch.equal(x, torch.rand(3, device="cuda"))
    assert isinstance(torch.Generator(), torch.Generator) and isinstance(a, torch.Generator)


def test_pinned_memory(mode):
    a = torch.ones(2).pin_memory()
    assert a.is_pinned() and not torch.ones(2).is_pinned() and a[0].is_pinned()
    assert a.cuda(non_blocking=True).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match=r"cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"):
        a.cuda().pin_memory()


def test_groups_of_tensors_are_by_device(mode):
    rows = [[torch.ones(1, device="cuda"), torch.ones(1), torch.ones(1, device="cuda"), torch.ones(1).half()]]
    groups = torch._C._group_tensors_by_device_and_dtype(rows, True)
    found = {(str(d), t): numbers for (d, t), (_, numbers) in groups.items()}
    assert found == {
        ("cuda:0", torch.float32): [0, 2],
        ("cpu", torch.float32): [1],
        ("cpu", torch.float16): [3],
    }


@pytest.mark.shows("PyTorch: autocast and GradScaler")
def test_autocast_and_scaler(mode):
    model, x = nn.Linear(4, 4).cuda(), torch.randn(2, 4, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        out = model(x)
        assert out.dtype is torch.bfloat16 and torch.softmax(out, 0).dtype is torch.float32
        assert (model(x) + 1).dtype is torch.bfloat16
        assert nn.Linear(4, 4)(x.cpu()).dtype is torch.float32  # autocast of cuda leaves the host alone
        with torch.autocast("cuda", enabled=False):
            assert model(x).dtype is torch.float32
    with torch.autocast("cpu"):
        assert nn.Linear(4, 4)(x.cpu()).dtype is torch.bfloat16
    scaler, optimizer = torch.amp.GradScaler("cuda"), torch.optim.SGD(model.parameters(), 0.1)
    before = model.weight.detach().clone()
    with torch.autocast("cuda"):
        loss = model(x).float().sum()
    scaler.scale(loss * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(before, model.weight) and scaler.get_scale() == 32768


def test_a_cast_parameter_is_kept_while_autocast_is_on(mode):
    model, x = nn.Linear(4, 4).cuda(), torch.randn(2, 4, device="cuda")
    with torch.autocast("cuda"):
        (model(x) + model(x)).sum().backward()
    full = model.weight.grad
    half = x.half().sum(0).expand(4, 4) * 2
    assert torch.allclose(full, half.float(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("kind", [None, "cpu"])
def test_operations_of_programs(mode, kind):
    """Such are on the device of their operands, whatever their kernels are for."""

    @torch.library.custom_op(f"torchemu_test::twice_{kind}", mutates_args=(), device_types=kind)
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x.clone() + x

    x = torch.arange(3.0, device="cuda")
    assert twice(x).device.type == "cuda" and twice(x).tolist() == [0, 2, 4]
    assert twice(x.cpu()).device.type == "cpu"


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_a_fused_optimizer_takes_its_rate_from_the_host(mode, kind):
    """Whatever shape the rate has: a GPU reads it from there."""
    weights = []
    for rate in (0.25, torch.tensor(0.25), torch.tensor([0.25])):
        weight = nn.Parameter(torch.tensor([1.0, -2.0], device="cuda"))
        weight.grad = torch.tensor([0.5, 4.0], device="cuda")
        kind([weight], lr=rate, fused=True).step()
        weights.append(weight.detach().tolist())
    assert weights[0] == weights[1] == weights[2] != [1.0, -2.0]


OVERRIDDEN = {
    "to": lambda x: x.to(torch.float64),
    "cuda": lambda x: x.cuda(),
    "cpu": lambda x: x.cpu(),
    "copy_": lambda x: torch.ones(2, 3).copy_(x),
    "type": lambda x: x.type(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "new_zeros": lambda x: x.new_zeros(2),
    "index_fill": lambda x: x.index_fill(0, torch.tensor([0]), 1.0),
    "quantile": lambda x: x.quantile(0.5),
}
"""Methods of tensors that know of devices, and calls of them."""

OVERRIDDEN_FUNCTIONS = {
    (torch, "zeros_like"): lambda x: torch.zeros_like(x),
    (torch, "randn_like"): lambda x: torch.randn_like(x, device="cuda"),
    (torch, "quantile"): lambda x: torch.quantile(x, 0.5),
    (torch, "dropout"): lambda x: torch.dropout(x, 0.5, True),
    (torch, "rms_norm"): lambda x: torch.rms_norm(x, (3,)),
    (nn.functional, "one_hot"): lambda x: nn.functional.one_hot(x, 3),
    (nn.functional, "scaled_dot_product_attention"): lambda x: nn.functional.scaled_dot_product_attention(
        query=torch.ones(2, 3), key=x, value=torch.ones(2, 3)
    ),
}
"""Functions that know of devices, and calls of them."""


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_classes_override_what_knows_of_devices(mode, device):
    """A class of tensors is told, by __torch_function__, the function that programs know, and nothing else before."""
    told = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            told.append(func)
            return "its own"

    x = torch.ones(2, 3, device=device).as_subclass(Own)
    told.clear()
    for name, call in OVERRIDDEN.items():
        assert (call(x), told) == ("its own", [getattr(torch.Tensor, name)]), name
        told.clear()
    for (owner, name), call in OVERRIDDEN_FUNCTIONS.items():
        assert (call(x), told) == ("its own", [getattr(owner, name)]), name
        told.clear()


def test_a_class_that_overrides_nothing_is_kept(mode):
    """Results are of the class, on their devices, as PyTorch makes them."""

    class Plain(torch.Tensor):
        pass

    x = torch.arange(3.0).as_subclass(Plain)
    y = x.cuda()
    for made, where in ((y, "cuda"), (y.cpu(), "cpu"), (torch.ones_like(y), "cuda"), (y.new_zeros(2), "cuda")):
        assert type(made) is Plain and made.device.type == where
    assert y.tolist() == [0.0, 1.0, 2.0]


def test_modes_of_functions_are_told_what_programs_know(mode):
    """A mode sees the functions in the place of PyTorch's."""
    from torch.overrides import TorchFunctionMode

    told = []

    class Noting(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            told.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 3, device="cuda")
    with Noting():
        y = torch.zeros_like(x).to("cpu")
    assert told[0] == torch.zeros_like and torch.Tensor.to in told
    assert y.device.type == "cpu" and y.tolist() == [[0.0] * 3] * 2
